"""Sums over dialogues under many weightings at once: the work behind every interval and test.

A bootstrap draw is a row of weights, how often each dialogue was taken; a swap is a row of zeros
and ones, which dialogues change hands. Either way all totals are one product of a matrix of
weights (draws, N) with the counts of N dialogues (N, C).

How it is fast:
    Counts are whole numbers, most of them 0, because a label does not occur in most dialogues.
    So they are held as a sparse matrix, and added up as whole numbers of the narrowest type
    that no sum can overflow: 16 bits for the test split. Whole numbers are exact in any order.
    Weights are made once for all systems and statistics, in blocks that fit into the processor's
    cache, and statistics are computed block by block, so that no large array is ever in memory.
    The draws of one column lie side by side in memory, as sorting and arithmetic like it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cradle_lib.errors import ScoringError
from cradle_lib.statistics.rates import Floats

Weights = NDArray[np.integer[Any]]
_Source = Callable[[int, int, np.random.Generator], Iterator[Weights]]

_BLOCK: Final = 1 << 19
# The draws of 600 dialogues, ten thousand of them, are kept for the next sum: 12 MB.
_KEPT: Final = 1 << 23


def weights(n: int, draws: int, generator: np.random.Generator) -> Iterator[Weights]:
    """Draws ``n`` dialogues with replacement, so often.

    The stream of numbers does not depend on the size of the blocks: the first hundred of
    ten thousand draws are the hundred draws of the same seed.

    Yields:
        Blocks of rows; entry (b, i) says how often draw b took dialogue i. Each row sums to
        n. Shape (rows of the block, n).
    """
    for rows in _sizes(n, draws):
        picks = generator.integers(0, n, size=(rows, n))
        picks += np.arange(rows)[:, None] * n
        yield np.bincount(picks.ravel(), minlength=rows * n).reshape(rows, n)


def permutations(n: int, number: int, generator: np.random.Generator) -> Iterator[Weights]:
    """Decides which of ``n`` dialogues two systems swap, each with probability one half.

    Yields:
        Blocks of rows of zeros and ones, from a stream as in :func:`weights`. Shape (rows of
        the block, n).
    """
    for rows in _sizes(n, number):
        yield generator.integers(0, 2, size=(rows, n), dtype=np.uint8)


def draw_blocks(rows: NDArray[Any], draws: int, seed: int) -> Iterator[Floats]:
    """Adds up the rows, shape (N, ...), of the dialogues in every bootstrap draw.

    Yields:
        Totals of some draws at a time, exact for whole numbers. Shape (draws of the block, ...).

    Raises:
        ScoringError: If there is no dialogue, or no draw is asked for.
    """
    n = len(rows)
    if draws < 1 or not n:
        raise ScoringError(f"{draws} draws from {n} dialogues. Both must be at least 1.")
    flat = rows.reshape(n, -1).T
    whole = (flat == np.rint(flat)).all(axis=1)
    dtype = _holding_sums(flat[whole])
    counts, fractions = csr_array(flat[whole].astype(dtype)), flat[~whole].astype(np.float64)
    for block in _blocks(weights, n, draws, seed):
        totals = np.empty((len(flat), block.shape[1]))
        totals[whole] = counts @ block.astype(dtype, copy=False)
        totals[~whole] = fractions @ block.astype(np.float64)
        yield totals.T.reshape(-1, *rows.shape[1:])


def swap_blocks(n: int, number: int, seed: int) -> Iterable[Weights]:
    """Decides for each swap which of ``n`` dialogues two systems exchange, some swaps at a time.

    Returns:
        Blocks of zeros and ones. Shape (swaps of the block, n).

    Raises:
        ScoringError: If there is no dialogue, or no swap is asked for.
    """
    if number < 1 or not n:
        raise ScoringError(f"{number} swaps of {n} dialogues. Both must be at least 1.")
    return (block.T for block in _blocks(permutations, n, number, seed))


def _holding_sums(columns: NDArray[Any]) -> np.dtype[Any]:
    """The narrowest type for sums under weights that add up to at most the number of dialogues."""
    n = columns.shape[1]
    bound = n * int(np.abs(columns).max(initial=0))
    # A weight, and one below the bound, because a negative number has room for one more.
    return np.promote_types(np.int16, np.min_scalar_type(-max(bound, n) - 1))


def _sizes(n: int, draws: int) -> list[int]:
    # In multiples of four: a generator makes four small numbers from one large one.
    step = max(4, _BLOCK // n // 4 * 4)
    return [min(step, draws - start) for start in range(0, draws, step)]


def _blocks(source: _Source, n: int, draws: int, seed: int) -> Iterable[Weights]:
    """The weights, a column for each draw, so that the draws of a dialogue lie side by side."""
    if n * draws <= _KEPT:
        return _kept_blocks(source, n, draws, seed)
    return _columns(source, n, draws, seed)


@lru_cache(maxsize=6)
def _kept_blocks(source: _Source, n: int, draws: int, seed: int) -> tuple[Weights, ...]:
    return tuple(_columns(source, n, draws, seed))


def _columns(source: _Source, n: int, draws: int, seed: int) -> Iterator[Weights]:
    dtype = np.promote_types(np.int16, np.min_scalar_type(-n - 1))
    for block in source(n, draws, np.random.default_rng(seed)):
        turned = np.ascontiguousarray(block.T, dtype=dtype)
        turned.flags.writeable = False
        yield turned
