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

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.statistics.rates import Floats

ALPHA: Final = 0.05


@dataclass(frozen=True, slots=True)
class Standing:
    """One line of a leaderboard.

    Attributes:
        system: Position of the system as it was given.
        value: Its score.
        group: Its tie group, counted from 1, the best first.
        best: The best place that it could have.
        worst: The worst place.
    """

    system: int
    value: float
    group: int
    best: int
    worst: int


def adjust(p: Floats, method: Literal["holm", "fdr_bh"]) -> Floats:
    """Corrects p-values for being many.

    Args:
        p: p-values; NaN where nothing was tested. Any shape.
        method: ``holm`` keeps the chance of any false alarm in the family below alpha,
            ``fdr_bh`` (Benjamini and Hochberg) the expected share of false alarms.

    Returns:
        Adjusted p-values; NaN stays NaN and does not count as a test.
    """
    adjusted = np.full(p.shape, np.nan)
    tested = ~np.isnan(p)
    if tested.any():
        # Takes a second to import, which no command should wait for that has no use for it.
        from statsmodels.stats.multitest import multipletests

        adjusted[tested] = multipletests(p[tested], method=method)[1]
    return adjusted


def standings(
    values: Sequence[float], pairs: NDArray[np.int64], p: Floats, alpha: float = ALPHA
) -> list[Standing]:
    """Orders systems into tie groups.

    Args:
        values: The score of each system, higher being better.
        pairs: Positions of the systems of each pair; all pairs. Shape (P, 2).
        p: Adjusted p-value of each pair; NaN, not tested, counts as a tie. Shape (P,).
        alpha: Level of significance.

    Returns:
        One standing for each system, the best first; equal scores keep the order given.

    Raises:
        ScoringError: If some pair of systems is missing.
    """
    size = len(values)
    differs = np.zeros((size, size), dtype=np.bool_)
    seen = np.eye(size, dtype=np.bool_)
    for (a, b), chance in zip(pairs, p, strict=True):
        differs[a, b] = differs[b, a] = chance < alpha and values[a] != values[b]
        seen[a, b] = seen[b, a] = True
    if not seen.all():
        raise ScoringError(
            f"{len(pairs)} pairs of {size} systems. A leaderboard needs a test of every pair."
        )
    order = sorted(range(size), key=lambda system: -values[system])
    found = []
    group = 1
    for place, system in enumerate(order):
        above, below = order[:place], order[place:]
        group += bool(above) and bool(differs[np.ix_(above, below)].all())
        found.append(
            Standing(
                system=system,
                value=float(values[system]),
                group=group,
                best=1 + sum(bool(differs[system, other]) for other in above),
                worst=size - sum(bool(differs[system, other]) for other in below),
            )
        )
    return found
