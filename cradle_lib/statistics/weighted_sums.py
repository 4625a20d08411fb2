"""Weighted sums over dialogues, from which all intervals and tests are computed.

A bootstrap draw weights each dialogue by how often it was taken. A swap weights it by 1 if two
systems exchange their predictions of it, and by 0 otherwise. The totals of all draws are the
product of the counts of N dialogues and a matrix of weights. The matrix is generated once for all
systems and scores, and used in blocks to limit the memory for totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.statistics.rates import Floats

Weights = NDArray[np.integer[Any]]
_Source = Callable[[np.random.Generator, int, int], Weights]

# Weights in a block.
_BLOCK: Final = 1 << 19
# Size of the largest cached matrix: ten thousand draws of 600 dialogues have 6 million weights.
_MAX_CACHED: Final = 1 << 23


def draw_blocks(rows: NDArray[Any], draws: int, seed: int) -> Iterator[Floats]:
    """Adds up the rows, shape (N, ...), of the dialogues in every bootstrap draw.

    Yields:
        Totals of some draws at a time, exact for whole numbers. Shape (draws of the block, ...).

    Raises:
        ScoringError: If there is no dialogue, or no draw is asked for.
    """
    blocks = _blocks(draw_weights, len(rows), draws, seed)
    columns = rows.reshape(len(rows), -1).T.astype(np.float64)
    # Fractions are summed separately, so that their rounding does not depend on other columns.
    integral = (columns == np.rint(columns)).all(axis=1)
    for weights in blocks:
        totals = np.empty((len(columns), weights.shape[1]))
        for kind in (integral, ~integral):
            totals[kind] = columns[kind] @ weights
        yield totals.T.reshape(-1, *rows.shape[1:])


def swap_blocks(n: int, number: int, seed: int) -> Iterator[Floats]:
    """Decides for each swap which of ``n`` dialogues two systems exchange.

    Yields:
        Zeros and ones of some swaps at a time. Shape (swaps of the block, n).

    Raises:
        ScoringError: If there is no dialogue, or no swap is asked for.
    """
    return (block.T for block in _blocks(swap_weights, n, number, seed))


def all_swaps(discordant: NDArray[np.bool_]) -> Iterator[Floats]:
    """Makes every swap that can change a difference, and first the one that exchanges nothing.

    Only discordant dialogues are exchanged, and the first of them never: exchanging all others
    instead gives the same difference with the other sign. With d of them there are 2^(d - 1) swaps.

    Yields:
        Zeros and ones of some swaps at a time. Shape (swaps of the block, N).
    """
    free = np.flatnonzero(discordant)[1:]
    size = max(1, _BLOCK // len(discordant))
    for start in range(0, 1 << len(free), size):
        numbers = np.arange(start, min(start + size, 1 << len(free)))
        swaps = np.zeros((len(numbers), len(discordant)))
        swaps[:, free] = numbers[:, None] >> np.arange(len(free)) & 1
        yield swaps


def draw_weights(generator: np.random.Generator, draws: int, n: int) -> Weights:
    """Draws ``n`` of ``n`` dialogues with replacement, and counts how often each was taken.

    Shape (draws, n); each row sums to n.
    """
    picks = generator.integers(0, n, size=(draws, n)) + n * np.arange(draws)[:, None]
    return np.bincount(picks.ravel(), minlength=draws * n).reshape(draws, n)


def swap_weights(generator: np.random.Generator, swaps: int, n: int) -> Weights:
    """Decides with probability one half whether each dialogue is swapped. Shape (swaps, n)."""
    return generator.integers(0, 2, size=(swaps, n), dtype=np.uint8)


def _blocks(source: _Source, n: int, number: int, seed: int) -> Iterable[Floats]:
    """Gives the weights of ``n`` dialogues, shape (n, draws or swaps of the block)."""
    if number < 1 or not n:
        raise ScoringError(f"{number} draws from {n} dialogues. Both must be at least 1.")
    generate = _cached if n * number <= _MAX_CACHED else _generated
    return generate(source, n, number, seed)


@lru_cache(maxsize=4)
def _cached(source: _Source, n: int, number: int, seed: int) -> tuple[Floats, ...]:
    return tuple(_generated(source, n, number, seed))


def _generated(source: _Source, n: int, number: int, seed: int) -> Iterator[Floats]:
    generator = np.random.default_rng(seed)
    # NumPy takes four small integers from one 32-bit number, and discards unused ones after each
    # call. With a multiple of four the weights do not depend on the block size.
    size = max(4, _BLOCK // n // 4 * 4)
    for start in range(0, number, size):
        block = source(generator, min(size, number - start), n)
        yield np.ascontiguousarray(block.T, dtype=np.float64)
