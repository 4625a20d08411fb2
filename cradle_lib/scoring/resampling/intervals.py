"""95 % intervals by resampling dialogues.

Conventions:
    The unit of resampling is the dialogue, because the turns in one depend on each other (a
    model even sees its own earlier tags). A draw takes N dialogues out of N with
    replacement; each score is computed anew from what was drawn; the interval runs from the
    2.5th to the 97.5th percentile of the draws.

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
from dataclasses import fields
from typing import Final

import numpy as np

from cradle_lib.scoring.core.counts import Counts
from cradle_lib.scoring.core.scores import Floats, Scores, scores
from cradle_lib.scoring.resampling.weighted_sums import draw_blocks

CONFIDENCE: Final = 0.95
DRAWS: Final = 10_000
# With more undefined draws than this an interval over the rest would not be a 95 % one.
_UNDEFINED: Final = 0.05


def resample(counts: Counts, *, draws: int = DRAWS, seed: int = 0) -> Iterator[Floats]:
    """Totals of every draw. Two runs over the same dialogues and seed share their draws.

    Args:
        counts: The counts of N dialogues.
        draws: Number of draws, at least 1.
        seed: Seed of the generator.

    Yields:
        Totals, for :func:`~cradle_lib.scoring.core.scores.scores`, some draws at a time. Shape
        (draws of the block, 51).

    Raises:
        ScoringError: If there is no dialogue, or no draw is asked for.
    """
    # All but the sums of Jaccard indices are whole numbers.
    parts = counts.rows[:, :-1].astype(np.int64), counts.rows[:, -1:]
    for pair in zip(*(draw_blocks(part, draws, seed) for part in parts), strict=True):
        yield np.concatenate(pair, axis=1)


def bounds(values: Floats) -> tuple[Floats, Floats]:
    """Finds the ends of 95 % intervals.

    Args:
        values: One statistic or more in every draw; NaN where it is undefined, infinities
            allowed. Shape (draws, ...).

    Returns:
        The 2.5th and the 97.5th percentile, each of shape (...). Undefined draws are left
        out; with more than 5 % of them both bounds are NaN.
    """
    draws = len(values)
    # Sorting whole columns at once is twice as fast as looking for two places in each.
    columns = np.sort(values.reshape(draws, -1).T, axis=1)
    tail = (1 - CONFIDENCE) / 2
    ends = np.stack([_between(columns, share * (draws - 1)) for share in (tail, 1 - tail)])
    for column in np.flatnonzero(~np.isfinite(columns[:, [0, -1]]).all(axis=1)):
        defined = columns[column, ~np.isnan(columns[column])]
        ends[:, column] = np.nan
        if len(defined) >= (1 - _UNDEFINED) * draws:
            # Between a number and infinity there is nothing to interpolate.
            ends[:, column] = np.quantile(defined, [tail, 1 - tail], method="inverted_cdf")
    low, high = ends.reshape(2, *values.shape[1:])
    return low, high


def interval(
    counts: Counts, *, draws: int = DRAWS, seed: int = 0, zero_division: float = 0.0
) -> tuple[Scores, Scores]:
    """Computes a 95 % interval of every score.

    Args:
        counts: The counts of N dialogues.
        draws: Number of draws, at least 1.
        seed: Seed of the generator.
        zero_division: As for :func:`~cradle_lib.scoring.core.scores.scores`.

    Returns:
        The lower and the upper bounds. With a single dialogue every draw is the same and both
        bounds equal the score, so that an evaluation shows none. Where there are draws without
        units to average over, which takes a corpus in which some dialogues have no scored turn,
        see :func:`bounds`.

    Raises:
        ScoringError: If there is no dialogue, or no draw is asked for.
    """
    drawn = [
        scores(totals, level=counts.level, zero_division=zero_division)
        for totals in resample(counts, draws=draws, seed=seed)
    ]
    ends = {
        field.name: bounds(np.concatenate([getattr(block, field.name) for block in drawn]))
        for field in fields(Scores)
    }
    low, high = (Scores(**{name: pair[end] for name, pair in ends.items()}) for end in (0, 1))
    return low, high


def _between(ascending: Floats, place: float) -> Floats:
    """Interpolates between two neighbours, and comes to what ``numpy.quantile`` comes to."""
    below = int(place)
    above = min(below + 1, ascending.shape[1] - 1)
    share = place - below
    start, end = ascending[:, below], ascending[:, above]
    with np.errstate(invalid="ignore"):
        step = end - start
        return end - step * (1 - share) if share >= 0.5 else start + step * share
