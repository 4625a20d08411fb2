"""Bootstrap draws that many statistics share.

Everything about timing, alarms and cohorts is a function of counts that were added up over
dialogues, as scores are. So one matrix of weights serves all of them: the same seed and the
same number of dialogues give the same draws as :func:`~cradle_lib.scoring.intervals.resample`,
and a difference between two runs is taken draw by draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.evaluate import Estimate
from cradle_lib.scoring.intervals import CONFIDENCE, draw_sums

Floats = NDArray[np.float64]

# Whole numbers below this are exact in 32 bits, and their products twice as fast.
_EXACT: Final = 1 << 24
# With more undefined draws than this an interval over the rest would not be a 95 % one.
_UNDEFINED: Final = 0.05


@dataclass(frozen=True, slots=True)
class Measured:
    """A statistic with its 95 % intervals.

    Attributes:
        value: The statistic. Shape (...).
        low: Lower bounds, of the same shape; ``None`` without draws.
        high: Upper bounds.
    """

    value: Floats
    low: Floats | None
    high: Floats | None

    def estimate(self, *place: int) -> Estimate:
        """Looks up one number and its interval, by its place in :attr:`value`."""
        low, high = (None if b is None else float(b[place]) for b in (self.low, self.high))
        return Estimate(float(self.value[place]), low, high)


def measure(
    rows: NDArray[Any],
    statistics: Mapping[str, Callable[[Floats], Floats]],
    *,
    draws: int,
    seed: int,
) -> dict[str, Measured]:
    """Computes statistics of totals, and their intervals from the same rows.

    Args:
        rows: Counts, one row per dialogue. Shape (N, ...).
        statistics: Functions of totals that take any leading axes.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        The statistics by name.

    Raises:
        ScoringError: If the number of draws is negative, or there is nothing to draw from.
    """
    if draws < 0:
        raise ScoringError(f"{draws} draws. Ask for at least 1, or for 0 to have no intervals.")
    total = rows.sum(axis=0, dtype=np.float64)
    drawn = draw_totals(rows, draws=draws, seed=seed) if draws else None
    found = {}
    for name, statistic in statistics.items():
        low, high = (None, None) if drawn is None else bounds(statistic(drawn))
        found[name] = Measured(np.asarray(statistic(total)), low, high)
    return found


def draw_totals(rows: NDArray[Any], *, draws: int, seed: int) -> Floats:
    """Adds up the rows of the dialogues in every draw.

    Args:
        rows: Any counts, one row per dialogue. Shape (N, ...).
        draws: Number of draws, at least 1.
        seed: Seed of the generator.

    Returns:
        Totals. Shape (draws, ...).

    Raises:
        ScoringError: If there is no dialogue, or no draw is asked for.
    """
    n = len(rows)
    if draws < 1 or not n:
        raise ScoringError(f"{draws} draws from {n} dialogues. Both must be at least 1.")
    flat = rows.reshape(n, -1)
    whole = np.issubdtype(flat.dtype, np.integer)
    exact = whole and (not flat.size or n * int(np.abs(flat).max()) < _EXACT)
    flat = flat.astype(np.float32 if exact else np.float64)
    totals = np.zeros((draws, flat.shape[1]))
    # Most things never happen to most labels.
    used = flat.any(axis=0)
    totals[:, used] = draw_sums(np.ascontiguousarray(flat[:, used]), draws, seed)
    return totals.reshape(draws, *rows.shape[1:])


def bounds(values: Floats) -> tuple[Floats, Floats]:
    """Finds the ends of 95 % intervals.

    Args:
        values: One statistic or more in every draw; NaN where it is undefined, infinities
            allowed. Shape (draws, ...).

    Returns:
        The 2.5th and the 97.5th percentile, each of shape (...). Undefined draws are left
        out; with more than 5 % of them both bounds are NaN.
    """
    tail = (1 - CONFIDENCE) / 2
    flat = values.reshape(len(values), -1)
    ends = np.full((2, flat.shape[1]), np.nan)
    finite = np.isfinite(flat).all(axis=0)
    # Draws that lie side by side in memory are sorted in a third of the time.
    columns = np.ascontiguousarray(flat[:, finite].T)
    ends[:, finite] = np.quantile(columns, [tail, 1 - tail], axis=1, overwrite_input=True)
    for column in np.flatnonzero(~finite):
        defined = flat[~np.isnan(flat[:, column]), column]
        if len(defined) >= (1 - _UNDEFINED) * len(flat):
            # Between a number and infinity there is nothing to interpolate.
            ends[:, column] = np.quantile(defined, [tail, 1 - tail], method="inverted_cdf")
    low, high = ends.reshape(2, *values.shape[1:])
    return low, high


def json_estimate(estimate: Estimate) -> dict[str, float | str | None]:
    """Makes an estimate ready for strict JSON.

    Args:
        estimate: The estimate.

    Returns:
        Its parts by name; ``None`` for what is undefined or was not computed, ``"inf"`` and
        ``"-inf"`` for what has no end.
    """
    return {name: _plain(value) for name, value in estimate._asdict().items()}


def _plain(value: float | None) -> float | str | None:
    if value is None or math.isnan(value):
        return None
    return str(value) if math.isinf(value) else value


def ratio(above: Floats, below: Floats, otherwise: float = np.nan) -> Floats:
    """Divides, with a value of its own where the denominator is 0."""
    above, below = np.broadcast_arrays(above, below)
    filled = np.full(np.shape(below), otherwise, dtype=np.float64)
    return np.divide(above, below, out=filled, where=below != 0)


def middle(histogram: Floats, values: Floats) -> Floats:
    """Finds medians of values that were counted.

    Args:
        histogram: How often each value occurs. Shape (..., V).
        values: The values, ascending. Shape (V,).

    Returns:
        Medians, as ``numpy.median`` of the values written out; NaN where nothing was
        counted. Shape (...).
    """
    below = histogram.cumsum(axis=-1)
    size = below[..., -1:]
    lower = np.minimum((below < size / 2).sum(axis=-1), len(values) - 1)
    upper = np.minimum((below <= size / 2).sum(axis=-1), len(values) - 1)
    # Half of each, added: the mean of infinity and itself is infinity.
    found = values[lower] / 2 + values[upper] / 2
    return np.where(size[..., 0] > 0, found, np.nan)
