"""What a comparison found: differences from a baseline, tie groups, and what could be shown."""

from __future__ import annotations

from dataclasses import dataclass

import pandas as pd

from cradle_lib.scoring.core.conventions import Level
from cradle_lib.scoring.core.signature import Signature


@dataclass(frozen=True)
class Comparison:
    """Runs against a baseline.

    Attributes:
        names: Names of the runs, the baseline first.
        signatures: One for each level, which the runs share.
        permutations: Permutations behind each p-value.
        differences: As :meth:`to_frame` gives them.
        standings: As :meth:`leaderboard` gives them.
    """

    names: tuple[str, ...]
    signatures: dict[Level, Signature]
    permutations: int
    differences: pd.DataFrame
    standings: pd.DataFrame

    @property
    def dialogues(self) -> int:
        """How many dialogues all runs cover."""
        return self.signatures["turn"].dialogues

    @property
    def power_note(self) -> str:
        """Says which difference so many dialogues can show."""
        n = self.dialogues
        wanted = self.differences.query("level == 'turn' and score == 'micro_f1'")
        sizes = wanted["detectable"].dropna()
        if sizes.empty:
            if n == 1:
                return "A single dialogue can show no difference."
            why = "The differences do not vary over the dialogues"
            return f"{why}, so nothing is said about which difference {n:,} dialogues can show."
        low, high = (f"{100 * size:.1f}" for size in (sizes.min(), sizes.max()))
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
              95 % interval, -1 to 1; NaN for what was not computed, and where all dialogues are
              alike. For an F1 the interval holds what the test would not reject: 0 is outside it
              if and only if ``p`` is below 0.05.
            - ``p``, ``adjusted_p`` (float): before and after the one correction of the whole
              comparison; NaN without a test.
            - ``support`` (int): gold labels behind it, or dialogues for an exact match.
            - ``discordant`` (int): dialogues on which the two runs have other counts.
            - ``detectable`` (float): the smallest true difference that would be shown in four of
              five samples of this size, before correction; NaN if all dialogues are alike.
            - ``verdict`` (str): ``different`` if the adjusted p-value is below 0.05,
              ``insufficient`` if there was too little to test, else ``not shown``: never "equal".
            - ``signature`` (str): what the two scores depend on, and share.
        """
        return self.differences.copy()

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
        return self.standings.copy()
