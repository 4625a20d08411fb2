"""Bootstrap draws that many statistics share.

Everything about timing, alarms and cohorts is a function of counts that were added up over
dialogues, as scores are. So one matrix of weights serves all of them: the same seed and the
same number of dialogues give the same draws as ``intervals.resample``,
and a difference between two runs is taken draw by draw.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.core.evaluate import Estimate
from cradle_lib.scoring.core.scores import Floats
from cradle_lib.scoring.resampling.intervals import bounds
from cradle_lib.scoring.resampling.weighted_sums import draw_blocks


@dataclass(frozen=True, slots=True)
class Measured:
    """A statistic with its 95 % intervals.

    Attributes:
        value: The statistic. Shape (...).
        low: Lower bounds, of the same shape; ``None`` without draws, or from a single dialogue,
            of which every draw is the same.
        high: Upper bounds.
    """

    value: Floats
    low: Floats | None
    high: Floats | None

    def estimate(self, *place: int) -> Estimate:
        """Looks up one number and its interval, by its place in :attr:`value`."""
        low, high = (None if b is None else float(b[place]) for b in (self.low, self.high))
        return Estimate(float(self.value[place]), low, high)

    def part(self, *place: int | slice) -> Measured:
        """Takes some of the numbers with their intervals, by their place in :attr:`value`."""
        low, high = (None if b is None else b[place] for b in (self.low, self.high))
        return Measured(self.value[place], low, high)

    def to_frame(self, **axes: Collection[Any]) -> pd.DataFrame:
        """Lists the numbers, one in each row.

        Args:
            **axes: For each axis its name and what its places are called, the outermost first;
                one place for a single number.

        Returns:
            A column for each axis, and ``value``, ``low`` and ``high`` (float); NaN for what is
            undefined or was not computed.
        """
        places = pd.MultiIndex.from_product(list(axes.values()), names=list(axes))
        nothing = np.full(self.value.shape, np.nan)
        parts = {"value": self.value, "low": self.low, "high": self.high}
        columns = {
            name: np.ravel(nothing if part is None else part) for name, part in parts.items()
        }
        return pd.DataFrame(columns, places, dtype=np.float64).reset_index()


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
    if len(rows) == 1:
        draws = 0
    total = rows.sum(axis=0, dtype=np.float64)
    drawn: dict[str, list[Floats]] = {name: [] for name in statistics}
    for totals in draw_blocks(rows, draws, seed) if draws else ():
        for name, statistic in statistics.items():
            drawn[name].append(statistic(totals))
    found = {}
    for name, statistic in statistics.items():
        low, high = bounds(np.concatenate(drawn[name])) if draws else (None, None)
        found[name] = Measured(np.asarray(statistic(total)), low, high)
    return found


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
