"""Tie groups: what a leaderboard may say when differences are uncertain.

Systems are ordered by their score. A line is drawn between two groups where every system above
it differs significantly from every system below it, after Holm's correction over all pairs. So
systems of one group share a place, and their order within it means nothing. Beside it stands the
range of places that a system could have: one more than the number of systems significantly better
than it, to the number of systems that are not significantly worse.

References:
    Bojar et al., "Findings of the 2016 Conference on Machine Translation", Sec 3 (clusters);
    Holm, "A Simple Sequentially Rejective Multiple Test Procedure", 1979; Benjamini and Hochberg,
    "Controlling the False Discovery Rate", 1995.
"""

from __future__ import annotations

from typing import Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.statistics.rates import Floats

ALPHA: Final = 0.05


def adjust(p: Floats, method: Literal["holm", "fdr_bh"]) -> Floats:
    """Corrects p-values, of any shape, for being many.

    ``holm`` keeps the chance of any false alarm in the family below alpha, ``fdr_bh`` (Benjamini
    and Hochberg) the expected share of false alarms. NaN stays NaN and does not count as a test.
    """
    adjusted = np.full(p.shape, np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        # Takes a second to import, which no command should wait for that has no use for it.
        from statsmodels.stats.multitest import multipletests

        adjusted[tested] = multipletests(p[tested], method=method)[1]
    return adjusted


def standings(values: Floats, pairs: NDArray[np.int64], p: Floats) -> pd.DataFrame:
    """Orders systems into tie groups, by their scores and the adjusted p-values of all pairs.

    Higher scores are better; a pair with NaN, not tested, is a tie.

    Returns:
        One row for each system, under its position, the best first; equal scores keep the order
        given. ``tie_group`` (int) is counted from 1, ``best_place`` and ``worst_place`` (int) are
        those that the system could have.

    Raises:
        ScoringError: If some pair of systems is missing.
    """
    size = len(values)
    differs = np.zeros((size, size), dtype=np.bool_)
    seen = np.eye(size, dtype=np.bool_)
    first, second = pairs.T
    shown = (p < ALPHA) & (values[first] != values[second])
    for one, other in ((first, second), (second, first)):
        differs[one, other], seen[one, other] = shown, True
    if not seen.all():
        raise ScoringError(
            f"{len(pairs)} pairs of {size} systems. A leaderboard needs a test of every pair."
        )
    order = np.argsort(-values, kind="stable")
    ordered = differs[np.ix_(order, order)]
    lines = [ordered[place:, :place].all() for place in range(1, size)]
    return pd.DataFrame(
        {
            "tie_group": np.cumsum([1, *lines]),
            "best_place": 1 + np.tril(ordered).sum(axis=1),
            "worst_place": size - np.triu(ordered).sum(axis=1),
        },
        index=order,
    )
