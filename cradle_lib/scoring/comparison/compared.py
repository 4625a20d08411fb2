"""What a comparison found: differences from a baseline, tie groups, and what could be shown."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pandas as pd

from cradle_lib.scoring.comparison.difference import Difference
from cradle_lib.scoring.comparison.ranking import ALPHA, Standing
from cradle_lib.scoring.core.conventions import LEVELS, Level
from cradle_lib.scoring.core.evaluate import Estimate
from cradle_lib.scoring.core.signature import Signature


@dataclass(frozen=True)
class Comparison:
    """Runs against a baseline.

    Attributes:
        names: Names of the runs, the baseline first.
        signatures: One for each level, which the runs share.
        permutations: Swaps behind each p-value.
        estimates: Each run's score with its interval, by level and score, in the order of
            the names.
        family: The declared family, in the order of runs, levels and scores.
        labels: F1 of each label at turn level.
        exact_match: Dialogue-level exact match.
        leaderboards: Standings by level and score, for all runs against each other.
    """

    names: tuple[str, ...]
    signatures: dict[Level, Signature]
    permutations: int
    estimates: dict[tuple[Level, str], list[Estimate]]
    family: tuple[Difference, ...]
    labels: tuple[Difference, ...]
    exact_match: tuple[Difference, ...]
    leaderboards: dict[tuple[Level, str], list[Standing]]

    @property
    def dialogues(self) -> int:
        """How many dialogues all runs cover."""
        return self.signatures["turn"].dialogues

    @property
    def power_note(self) -> str:
        """Says which difference so many dialogues can show."""
        sizes = [
            d.detectable
            for d in self.family
            if d.detectable is not None and (d.level, d.score) == ("turn", "micro_f1")
        ]
        n = self.dialogues
        if not sizes:
            why = "The scores do not vary over the draws"
            if not self.signatures["turn"].draws:
                why = "No draws"
            elif n == 1:
                return "A single dialogue can show no difference."
            return f"{why}, so nothing is said about which difference {n:,} dialogues can show."
        low, high = (f"{100 * size:.1f}" for size in (min(sizes), max(sizes)))
        span = low if low == high else f"{low} to {high}"
        return (
            f"With {n:,} dialogues, a true difference of {span} points of turn-level micro F1 "
            f"is shown in four of five samples, before any correction; smaller ones mostly "
            "go unseen."
        )

    def to_frame(self) -> pd.DataFrame:
        """Gives every difference from the baseline as a tidy data frame.

        Returns:
            One row for each difference: the declared family by level, exact match, then labels.

            - ``level`` (str): ``turn``, ``dialogue`` or ``confirm``.
            - ``score`` (str): ``micro_f1``, ``macro_f1``, ``exact_match``, or ``f1`` of a label.
            - ``label`` (str): the label; missing for the others.
            - ``system`` (str): the run that is compared with the baseline.
            - ``baseline_score``, ``own_score`` (float): the scores of the two, 0 to 1.
            - ``value``, ``low``, ``high`` (float): ``own_score`` minus ``baseline_score`` and its
              95 % interval, -1 to 1; NaN for what was not computed.
            - ``p``, ``adjusted_p`` (float): before and after correction; NaN without a test.
            - ``support`` (int): gold labels behind it, or dialogues for an exact match.
            - ``detectable`` (float): as in :class:`.Difference`; NaN if there is none.
            - ``verdict`` (str): ``different``, ``not shown`` or ``insufficient``.
            - ``signature`` (str): what the two scores depend on, and share.
        """
        ordered = sorted(self.family, key=lambda d: LEVELS.index(d.level))
        rows = [
            {
                **{name: getattr(d, name) for name in ("level", "score", "label", "system")},
                "baseline_score": d.values[0],
                "own_score": d.values[1],
                **d.estimate._asdict(),
                "p": d.p,
                "adjusted_p": d.adjusted,
                "support": d.support,
                "detectable": d.detectable,
                "verdict": d.verdict,
                "signature": str(self.signatures[d.level]),
            }
            for d in (*ordered, *self.exact_match, *self.labels)
        ]
        numbers = ("low", "high", "p", "adjusted_p", "detectable")
        return pd.DataFrame(rows).astype(dict.fromkeys(numbers, float))

    def leaderboard(self) -> pd.DataFrame:
        """Gives the tie groups as a tidy data frame.

        Returns:
            One row for each run, level and score, the best first.

            - ``level``, ``score``, ``system`` (str): as in :meth:`to_frame`.
            - ``tie_group`` (int): counted from 1; within a group the order means nothing.
            - ``best_place``, ``worst_place`` (int): which place the run could have.
            - ``value``, ``low``, ``high`` (float): its score and the 95 % interval, 0 to 1.
            - ``signature`` (str): what the score depends on.
        """
        rows = [
            {
                "level": level,
                "score": score,
                "system": self.names[standing.system],
                "tie_group": standing.group,
                "best_place": standing.best,
                "worst_place": standing.worst,
                **self.estimates[level, score][standing.system]._asdict(),
                "signature": str(self.signatures[level]),
            }
            for (level, score), table in self.leaderboards.items()
            for standing in table
        ]
        return pd.DataFrame(rows).astype({"low": float, "high": float})

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for strict JSON."""
        return {
            "systems": list(self.names),
            "baseline": self.names[0],
            "signatures": {level: str(s) for level, s in self.signatures.items()},
            "permutations": self.permutations,
            "alpha": ALPHA,
            "family": [d.as_dict() for d in self.family],
            "labels": [d.as_dict() for d in self.labels],
            "exact_match": [d.as_dict() for d in self.exact_match],
            "leaderboards": {
                f"{level}.{score}": [
                    {
                        "system": self.names[s.system],
                        "value": s.value,
                        "group": s.group,
                        "places": [s.best, s.worst],
                    }
                    for s in table
                ]
                for (level, score), table in self.leaderboards.items()
            },
            "power": self.power_note,
        }
