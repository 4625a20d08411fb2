"""95 % intervals by resampling dialogues.

Conventions:
    The unit of resampling is the dialogue, because the turns in one depend on each other (a
    model even sees its own earlier tags). A draw takes N dialogues out of N with
    replacement; each score is computed anew from what was drawn; the interval runs from the
    2.5th to the 97.5th percentile of the draws.

How it is fast: a draw is a row of weights, how often each dialogue was taken. All draws
together are a matrix (draws, N), and one product with the dialogues' counts (N, 51) gives
all totals.

Limits:
    A percentile interval says how much a score would move with other dialogues of the same
    kind. It says nothing about the model's own randomness, nor about another population. A
    label that occurs in few dialogues is missing from some draws, where its F1 is
    ``zero_division``: intervals of macro F1 are wide, and off centre, for that reason too.

References:
    Efron and Tibshirani, An Introduction to the Bootstrap (1993), ch. 13 (percentile
    intervals); Miller, "Adding Error Bars to Evals" (arXiv 2411.00640), on clustered units.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.counts import Counts
from cradle_lib.scoring.scores import Scores, scores

CONFIDENCE: Final = 0.95
DRAWS: Final = 10_000
# Weights are made a block at a time: 8 MB of them fit into the processor's cache.
_BLOCK: Final = 1 << 20
# The draws of 600 dialogues, ten thousand of them, are kept for the next score: 48 MB.
_KEPT: Final = 1 << 23


def weights(n: int, draws: int, generator: np.random.Generator) -> Iterator[NDArray[np.float64]]:
    """Draws dialogues with replacement.

    The stream of numbers does not depend on the size of the blocks: the first hundred of
    ten thousand draws are the hundred draws of the same seed.

    Args:
        n: Number of dialogues, at least 1.
        draws: Number of draws.
        generator: Source of randomness.

    Yields:
        Blocks of rows; entry (b, i) says how often draw b took dialogue i. Each row sums to
        n. Shape (rows of the block, n).
    """
    step = max(1, _BLOCK // n)
    for start in range(0, draws, step):
        rows = min(step, draws - start)
        picks = generator.integers(0, n, size=(rows, n))
        picks += np.arange(rows)[:, None] * n
        taken = np.bincount(picks.ravel(), minlength=rows * n)
        yield taken.reshape(rows, n).astype(np.float64)


def resample(counts: Counts, *, draws: int = DRAWS, seed: int = 0) -> NDArray[np.float64]:
    """Totals of every draw. Two runs over the same dialogues and seed share their draws.

    Args:
        counts: The counts of N dialogues.
        draws: Number of draws, at least 1.
        seed: Seed of the generator.

    Returns:
        Totals, for :func:`~cradle_lib.scoring.scores.scores`. Shape (draws, 51).

    Raises:
        ScoringError: If there is no dialogue, or no draw is asked for.
    """
    if draws < 1 or not len(counts):
        raise ScoringError(f"{draws} draws from {len(counts)} dialogues. Both must be at least 1.")
    return draw_sums(counts.rows, draws, seed)


def draw_sums(rows: NDArray[Any], draws: int, seed: int) -> NDArray[Any]:
    """Adds up the rows of the dialogues in every draw.

    Args:
        rows: 32 or 64 bit floating-point numbers, one row per dialogue. Shape (N, C).
        draws: Number of draws.
        seed: Seed of the generator.

    Returns:
        Totals of the same type. Shape (draws, C).
    """
    n = len(rows)
    if n * draws <= _KEPT:
        return np.asarray(_kept_weights(n, draws, seed, rows.dtype) @ rows)
    blocks = weights(n, draws, np.random.default_rng(seed))
    return np.concatenate([block.astype(rows.dtype, copy=False) @ rows for block in blocks])


@lru_cache(maxsize=4)
def _kept_weights(n: int, draws: int, seed: int, dtype: np.dtype[Any]) -> NDArray[Any]:
    kept = np.empty((draws, n), dtype=dtype)
    end = 0
    for block in weights(n, draws, np.random.default_rng(seed)):
        kept[end : end + len(block)] = block
        end += len(block)
    kept.flags.writeable = False
    return kept


def interval(
    counts: Counts, *, draws: int = DRAWS, seed: int = 0, zero_division: float = 0.0
) -> tuple[Scores, Scores]:
    """Computes a 95 % interval of every score.

    Args:
        counts: The counts of N dialogues.
        draws: Number of draws, at least 1.
        seed: Seed of the generator.
        zero_division: As for :func:`~cradle_lib.scoring.scores.scores`.

    Returns:
        The lower and the upper bounds. With a single dialogue every draw is the same, and
        both bounds equal the score. A bound is NaN where a draw had no units to average
        over, which takes a corpus in which some dialogues have no scored turn.

    Raises:
        ScoringError: If there is no dialogue, or no draw is asked for.
    """
    totals = resample(counts, draws=draws, seed=seed)
    tail = (1 - CONFIDENCE) / 2
    drawn = scores(totals, level=counts.level, zero_division=zero_division)
    bounds = drawn.map(lambda values: np.quantile(values, [tail, 1 - tail], axis=0))
    return bounds.map(lambda pair: pair[0]), bounds.map(lambda pair: pair[1])
