"""One difference between two runs: its size, its uncertainty, and what may be said of it.

References:
    McNemar, Psychometrika 12, 1947; Cohen, Statistical Power Analysis (1988), for the smallest
    difference that a test would usually find.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass, fields
from statistics import NormalDist
from typing import Any, Final, Literal

import numpy as np
from scipy.stats import binomtest

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.comparison.ranking import ALPHA
from cradle_lib.scoring.core.conventions import Level
from cradle_lib.scoring.core.counts import Counts
from cradle_lib.scoring.core.evaluate import Estimate
from cradle_lib.scoring.core.scores import ratio
from cradle_lib.scoring.core.signature import Signature
from cradle_lib.scoring.resampling.bootstrap import json_estimate
from cradle_lib.scoring.resampling.intervals import bounds
from cradle_lib.scoring.resampling.weighted_sums import draw_blocks

Verdict = Literal["different", "not shown", "insufficient"]
# Below this many occurrences a test says more about chance than about models.
ENOUGH: Final = 20
POWER: Final = 0.8
# The standard deviation of equal numbers is 0 but for rounding.
_NO_SPREAD: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Difference:
    """One run minus the baseline.

    Attributes:
        level: ``turn``, ``dialogue`` or ``confirm``.
        score: ``micro_f1``, ``macro_f1``, ``exact_match``, or ``f1`` of a label.
        label: The label, for an F1 of its own.
        baseline: Name of the baseline.
        system: Name of the other run.
        values: The scores of the two, the baseline's first.
        estimate: The difference with its 95 % interval.
        support: Gold labels behind it, or dialogues for an exact match.
        p: p-value; ``None`` if there was no test.
        adjusted: The same after correction; ``None`` if there was no test.
        detectable: The smallest true difference that would be shown in four of five samples
            of this size; ``None`` without draws, or if the difference is the same in all.
        verdict: ``different`` if the adjusted p-value is below 0.05, ``insufficient`` if
            there was too little to test, else ``not shown``: never "equal".
    """

    level: Level
    score: str
    label: str | None
    baseline: str
    system: str
    values: tuple[float, float]
    estimate: Estimate
    support: int
    p: float | None
    adjusted: float | None
    detectable: float | None
    verdict: Verdict

    @classmethod
    def make(
        cls,
        *,
        level: Level,
        score: str,
        label: str | None,
        systems: tuple[str, str],
        values: tuple[float, float],
        bounds: tuple[float, float],
        error: float,
        support: int,
        p: float,
        adjusted: float,
    ) -> Difference:
        """Puts a difference together from plain numbers, NaN for what was not computed."""
        low, high = (number(bound) for bound in bounds)
        verdict: Verdict = "different" if adjusted < ALPHA else "not shown"
        return cls(
            level=level,
            score=score,
            label=label,
            baseline=systems[0],
            system=systems[1],
            values=values,
            estimate=Estimate(values[1] - values[0], low, high),
            support=support,
            p=number(p),
            adjusted=number(adjusted),
            detectable=size if (size := detectable(error)) > _NO_SPREAD else None,
            verdict="insufficient" if math.isnan(adjusted) else verdict,
        )

    def as_dict(self) -> dict[str, Any]:
        """The parts by name, ready for strict JSON."""
        return {
            "level": self.level,
            "score": self.score,
            "label": self.label,
            "baseline": self.baseline,
            "system": self.system,
            "values": [number(value) for value in self.values],
            "difference": json_estimate(self.estimate),
            "support": self.support,
            "p": self.p,
            "adjusted": self.adjusted,
            "detectable": self.detectable,
            "verdict": self.verdict,
        }


def number(value: float) -> float | None:
    """Gives ``None`` for NaN."""
    return None if math.isnan(value) else float(value)


def require_comparable(
    names: Sequence[str], signatures: Sequence[Signature], *, about: Collection[str] = ()
) -> None:
    """Refuses to compare what was not scored in the same way.

    Args:
        names: Names of the runs.
        signatures: Their signatures, in the same order.
        about: Parts that may differ because the comparison is about them, such as
            ``("history",)``.

    Raises:
        ScoringError: Naming the runs, the part that differs and both values; or if ``about``
            names no part of a signature.
    """
    known = [field.name for field in fields(Signature)]
    for part in about:
        if part not in known:
            raise ScoringError(
                f"{part!r} is no part of a signature. Choose from {', '.join(known)}."
            )
    for name, signature in zip(names[1:], signatures[1:], strict=True):
        differing = signatures[0].differences(signature, allowed=about)
        if differing:
            parts = "; ".join(
                f"{part} is {getattr(signatures[0], part)!r} for {names[0]} and "
                f"{getattr(signature, part)!r} for {name}"
                for part in differing
            )
            raise ScoringError(
                f"these runs can't be compared: {parts}. Score both in the same way, over "
                "the same dialogues (`cradle compare --common`)."
            )


def detectable(error: float, alpha: float = ALPHA, power: float = POWER) -> float:
    """Gives the smallest true difference that a two-sided test would usually find.

    Args:
        error: Standard error of the difference.
        alpha: Level of the test.
        power: How often it should be found.

    Returns:
        (z(1 - alpha / 2) + z(power)) times the standard error: about 2.8 times.
    """
    normal = NormalDist()
    return (normal.inv_cdf(1 - alpha / 2) + normal.inv_cdf(power)) * error


def mcnemar(first: Counts, second: Counts) -> float:
    """Tests dialogue-level exact match with McNemar's exact test.

    Args:
        first: Dialogue-level counts of one run.
        second: Those of another run over the same dialogues.

    Returns:
        The two-sided p-value of the dialogues that only one of them matches exactly; 1 if
        there is none.
    """
    only_first = int((first.sets[:, 1] > second.sets[:, 1]).sum())
    only_second = int((second.sets[:, 1] > first.sets[:, 1]).sum())
    if not only_first + only_second:
        return 1.0
    return float(binomtest(only_first, only_first + only_second, 0.5).pvalue)


def exact_match_spread(
    first: Counts, second: Counts, *, draws: int, seed: int
) -> tuple[float, float, float]:
    """Resamples the difference in exact match.

    Args:
        first: Counts of one run.
        second: Those of another run over the same dialogues.
        draws: Bootstrap draws of dialogues; 0 for none.
        seed: Their seed.

    Returns:
        Lower and upper bound of the 95 % interval of second minus first, and the standard
        deviation over the draws with units; NaN without draws, or with a single dialogue.
    """
    if not draws or len(first) == 1:
        return math.nan, math.nan, math.nan
    rows = np.stack([c.sets[:, :2].astype(np.int64) for c in (first, second)], axis=1)
    moved = np.concatenate(
        [
            np.diff(ratio(totals[..., 1], totals[..., 0]), axis=1)[:, 0]
            for totals in draw_blocks(rows, draws, seed)
        ]
    )
    low, high = bounds(moved)
    defined = moved[~np.isnan(moved)]
    return float(low), float(high), float(defined.std()) if len(defined) else math.nan
