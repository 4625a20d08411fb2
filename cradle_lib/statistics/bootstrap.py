"""95 % intervals by resampling dialogues: one bootstrap for every statistic of the library.

Conventions:
    The unit of resampling is the dialogue, because its turns depend on each other (a model even
    sees its own earlier predictions). A draw takes N of the N dialogues with replacement, and every
    statistic is computed from it. The interval runs from the 2.5th to the 97.5th percentile of the
    draws. The same seed and number of dialogues give the same draws for every statistic, so that
    the draws of two runs are paired.

Limits:
    A percentile interval measures how much a score would vary with other dialogues of the same
    kind. It covers neither the model's own randomness nor other populations. A rare label is
    missing from some draws, where its F1 is ``zero_division``; this makes intervals of macro F1
    wider and moves them off centre. A statistic outside its own percentile interval has no
    interval. For shares of few occurrences use :mod:`~cradle_lib.statistics.proportions`.

References:
    Efron and Tibshirani, An Introduction to the Bootstrap (1993), ch. 13 (percentile
    intervals); Miller, "Adding Error Bars to Evals" (arXiv 2411.00640), on clustered units.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from cradle_lib.arguments import Seed, checked
from cradle_lib.errors import ScoringError
from cradle_lib.statistics.rates import Floats
from cradle_lib.statistics.weighted_sums import draw_blocks

if TYPE_CHECKING:
    import pandas as pd

CONFIDENCE: Final = 0.95
#: Bootstrap draws of dialogues for an interval, unless a caller says otherwise.
DRAWS: Final = 10_000
# With a larger share of undefined draws, the others do not give a 95 % interval.
_UNDEFINED: Final = 0.05
# Larger differences, absolute and relative, are not due to rounding.
_ROUNDING: Final = 1e-12


class Estimate(NamedTuple):
    """A statistic with its 95 % interval, as three numbers or as three arrays.

    Attributes:
        value: The statistic; NaN where it is undefined. Shape (...).
        low: Lower bounds, of the same shape; NaN without an interval: without draws, for fewer
            than two dialogues, if all draws give the same value, if more than 5 % are undefined, or
            if the percentile interval does not contain the statistic.
        high: Upper bounds, likewise.
    """

    value: Floats
    low: Floats
    high: Floats

    def at(self, *place: int | slice) -> Estimate:
        """Selects estimates by their index in :attr:`value`."""
        return Estimate(*(part[place] for part in self))

    def to_frame(self, **axes: Collection[Any]) -> pd.DataFrame:
        """Gives the estimates as a data frame, one in each row.

        Args:
            **axes: For each axis its name and the names of its entries, the outermost first; a
                single entry for a single number.

        Returns:
            A column for each axis, and ``value``, ``low`` and ``high`` (float; NaN if undefined or
            not computed).
        """
        import pandas as pd

        places = pd.MultiIndex.from_product(list(axes.values()), names=list(axes))
        columns = {name: np.ravel(part) for name, part in self._asdict().items()}
        return pd.DataFrame(columns, places, dtype=np.float64).reset_index()


@checked
def bootstrap(
    rows: NDArray[Any],
    statistics: Callable[[Floats], Mapping[str, Floats]],
    *,
    draws: int,
    seed: Seed,
) -> dict[str, Estimate]:
    """Computes statistics of the summed rows, with their 95 % intervals.

    Args:
        rows: Counts, one row per dialogue. Shape (N, ...).
        statistics: Computes statistics by name from totals with any leading axes.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        The statistics by name.

    Raises:
        ScoringError: If the number of draws is negative.
    """
    if draws < 0:
        raise ScoringError(f"{draws} draws. Ask for at least 1, or for 0 to have no intervals.")
    values = statistics(rows.sum(axis=0, dtype=np.float64))
    ends = percentiles(rows, statistics, draws=draws, seed=seed) if draws and len(rows) > 1 else {}
    found = {}
    for name, value in values.items():
        nothing = np.full(np.shape(value), np.nan)
        low, high = ends.get(name, (nothing, nothing))
        outside = excludes(value, low, high)
        low, high = (np.where(outside, np.nan, end)[()] for end in (low, high))
        found[name] = Estimate(np.asarray(value)[()], low, high)
    return found


def percentiles(
    rows: NDArray[Any],
    statistics: Callable[[Floats], Mapping[str, Floats]],
    *,
    draws: int,
    seed: int,
) -> dict[str, tuple[Floats, Floats]]:
    """Finds the 2.5th and the 97.5th percentile of statistics over the draws.

    The arguments are those of :func:`bootstrap`. Both are NaN if all draws give the same value,
    such as a count of 0, or if more than 5 % are undefined.
    """
    drawn = [statistics(totals) for totals in draw_blocks(rows, draws, seed)]
    found = {}
    for name in drawn[0]:
        every = np.concatenate([block[name] for block in drawn])
        moves = (every != every[0]).any(axis=0)
        low, high = (np.where(moves, end, np.nan)[()] for end in bounds(every))
        found[name] = low, high
    return found


def excludes(value: Floats, low: Floats, high: Floats) -> NDArray[np.bool_]:
    """Whether an interval does not contain its statistic, beyond rounding; false for NaN."""
    outside = (value < low) | (value > high)
    near = [np.isclose(value, end, _ROUNDING, _ROUNDING) for end in (low, high)]
    return np.asarray(outside & ~near[0] & ~near[1])


def bounds(values: Floats) -> tuple[Floats, Floats]:
    """Finds the 2.5th and the 97.5th percentile, shape (...) each, of values of shape (draws, ...).

    Undefined draws, NaN, are left out; with more than 5 % of them both bounds are NaN. Infinities
    are values.
    """
    columns = values.reshape(len(values), -1)
    shares = [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2]
    ends = np.full((2, columns.shape[1]), np.nan)
    finite = np.isfinite(columns).all(axis=0)
    ends[:, finite] = np.quantile(columns[:, finite], shares, axis=0)
    for column in np.flatnonzero(~finite):
        defined = columns[~np.isnan(columns[:, column]), column]
        if len(defined) >= (1 - _UNDEFINED) * len(columns):
            # Between a number and infinity there is nothing to interpolate.
            ends[:, column] = np.quantile(defined, shares, method="inverted_cdf")
    low, high = ends.reshape(2, *values.shape[1:])
    return low, high
