"""Who is really better: differences between runs, each with an interval and a test.

The family: every test of a comparison. These are all pairs of runs by micro and by macro F1 in the
paper's three settings (turn level, dialogue level, confirms only), from which tie groups are made;
exact match of dialogues, by McNemar's exact test, and the F1 of each label, both against the first
run, the baseline. Their p-values are corrected together, once, by Holm's method: so what is called
different in one table is so in the others. Exact match is compared at dialogue level only; at turn
level a test would treat the turns of a dialogue as independent.

Where there is too little to tell two runs apart there is no test and the verdict is
``insufficient``: fewer than 20 gold labels behind an F1 or 20 dialogues behind an exact match, and
for a label fewer than 10 dialogues on which the two runs have other counts of it. Swapping those on
which they agree changes nothing, and of nine there are 2^9 swaps.

References:
    Dror, Baumer, Shlomov and Reichart, "The Hitchhiker's Guide to Testing Statistical
    Significance in NLP", 2018; McNemar, Psychometrika 12, 1947; Miller, "Adding Error Bars to
    Evals" (arXiv 2411.00640); for :mod:`~cradle_lib.scoring.comparison.paired` see there.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.comparison.difference import (
    DISCORDANT,
    ENOUGH,
    detectable,
    mcnemar,
    require_comparable,
)
from cradle_lib.scoring.comparison.paired import PERMUTATIONS, PairedResult, compare_pairs
from cradle_lib.scoring.comparison.ranking import ALPHA, adjust, standings
from cradle_lib.scoring.core.conventions import LEVELS, Conventions, Level
from cradle_lib.scoring.core.evaluate import Evaluation, evaluate
from cradle_lib.scoring.core.signature import Signature, signed
from cradle_lib.statistics.bootstrap import DRAWS, bounds
from cradle_lib.statistics.rates import Floats, ratio
from cradle_lib.statistics.weighted_sums import draw_blocks

if TYPE_CHECKING:
    from cradle_lib.detection.journals.predictions import Predictions

SCORES: Final = ("micro_f1", "macro_f1")
_COLUMNS: Final = (
    "level", "score", "label", "system", "baseline_score", "own_score", "value", "low", "high",
    "p", "adjusted_p", "support", "discordant", "detectable", "verdict", "signature",
)  # fmt: skip
_PLACES: Final = (
    "level", "score", "system", "tie_group", "best_place", "worst_place", "value", "low", "high",
    "signature",
)  # fmt: skip


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
        return signed(self.differences.copy())

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
        return signed(self.standings.copy())


def compare(
    runs: Sequence[Predictions],
    *,
    names: Sequence[str] | None = None,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    permutations: int = PERMUTATIONS,
    seed: int = 0,
    about: Collection[str] = (),
) -> Comparison:
    """Compares runs with the first one, and ranks them all.

    Args:
        runs: Two or more runs over the same dialogues; the first is the baseline.
        names: What to call them; the names in their records if ``None``.
        conventions: What the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws behind the intervals of scores and of exact match; 0 for none.
        permutations: Swaps behind p-values and intervals of differences in F1, at least 1.
        seed: Seed of both.
        about: Parts of the signature that may differ, such as ``("history",)``.

    Returns:
        The comparison.

    Raises:
        ScoringError: If there are fewer than two runs, two share a name, no permutation is
            asked for, the conventions ask for the harmonic macro F1, ``about`` names no part of
            a signature, or their signatures differ.
    """
    called = tuple(names) if names is not None else tuple(run.record.name for run in runs)
    if len(runs) < 2 or len(called) != len(runs) or len(set(called)) != len(runs):
        raise ScoringError(
            f"runs to compare: {', '.join(called) or 'none'}. Name two or more, each once."
        )
    if conventions is not None and conventions.macro_f1 != "mean":
        raise ScoringError(
            "the test is about the mean of the labels' F1, and not about the harmonic macro F1. "
            "Compare without macro_f1=harmonic; `cradle score` gives both."
        )
    if permutations < 1:
        raise ScoringError(f"{permutations} permutations. A test needs at least 1.")
    signatures: dict[Level, Signature] = {}
    tests, scores = [], []
    for level in LEVELS:
        scored = [evaluate(run, level=level, conventions=conventions, draws=0) for run in runs]
        agreed = require_comparable(called, [each.signature for each in scored], about=about)
        signatures[level] = replace(agreed, draws=draws, seed=seed)
        found = compare_pairs(
            [each.counts for each in scored],
            draws=draws,
            permutations=permutations,
            seed=seed,
            zero_division=agreed.zero_division,
            # The baseline's pairs come first; labels are tested at turn level.
            by_label=len(runs) - 1 if level == "turn" else 0,
        )
        tests.append(_f1_tests(scored, found))
        scores.append(_own_scores(scored, found))
        if level == "dialogue":
            exact_match = _exact_match_tests(scored, draws, seed)
    family = _corrected(pd.concat([*tests, exact_match], ignore_index=True))
    differences = _differences(family)
    board = _leaderboard(pd.concat(scores), family)
    lines = {level: str(signature) for level, signature in signatures.items()}
    for frame in (differences, board):
        frame["system"] = [called[place] for place in frame["system"]]
        frame["signature"] = frame["level"].map(lines)
    return Comparison(
        called, signatures, permutations, differences[list(_COLUMNS)], board[list(_PLACES)]
    )


def _f1_tests(scored: Sequence[Evaluation], found: PairedResult) -> pd.DataFrame:
    """One row for each pair of runs and each F1: micro, macro, then of each label."""
    support = scored[0].support
    total = sum(support.values())
    measured = pd.DataFrame(
        [(score, None, total) for score in SCORES]
        + [("f1", label, times) for label, times in support.items()],
        columns=["score", "label", "support"],
    )
    frame = pd.DataFrame(found.pairs, columns=["first", "system"]).merge(measured, how="cross")
    frame["level"] = scored[0].counts.level
    overall = [[each.scores[name].value for name in SCORES] for each in scored]
    values = np.hstack([overall, [each.scores["f1"].value for each in scored]])
    frame["baseline_score"], frame["own_score"] = values[found.pairs.T].reshape(2, -1)
    for name in ("low", "high", "error", "p", "discordant"):
        frame[name] = getattr(found, name).ravel()
    return frame


def _exact_match_tests(scored: Sequence[Evaluation], draws: int, seed: int) -> pd.DataFrame:
    """One row for each run and the baseline; all at dialogue level."""
    shares = [float(each.scores["exact_match"].value) for each in scored]
    sets = np.stack([each.counts.sets[:, :2] for each in scored], axis=1)
    missing: Floats = np.full(len(scored) - 1, np.nan)
    low, high, error = missing, missing, missing
    if draws and len(sets) > 1:
        drawn = [ratio(totals[..., 1], totals[..., 0]) for totals in draw_blocks(sets, draws, seed)]
        moved = np.concatenate([block[:, 1:] - block[:, :1] for block in drawn])
        low, high = bounds(moved)
        # Over the draws with units.
        defined = [column[~np.isnan(column)] for column in moved.T]
        error = np.array([column.std() if len(column) else np.nan for column in defined])
        low, high = (np.where(error > 0, bound, np.nan) for bound in (low, high))
    return pd.DataFrame(
        {
            "level": "dialogue",
            "score": "exact_match",
            "first": 0,
            "system": range(1, len(scored)),
            "baseline_score": shares[0],
            "own_score": shares[1:],
            "low": low,
            "high": high,
            "error": error,
            "p": [mcnemar(scored[0].counts, other.counts) for other in scored[1:]],
            "support": len(sets),
            "discordant": (sets[:, 1:, 1] != sets[:, :1, 1]).sum(axis=0),
        }
    )


def _corrected(tests: pd.DataFrame) -> pd.DataFrame:
    """Corrects all p-values of a comparison together; those of too little data are no test."""
    few = tests["label"].notna() & (tests["discordant"] < DISCORDANT)
    tests.loc[few | (tests["support"] < ENOUGH), "p"] = np.nan
    return tests.assign(adjusted_p=adjust(tests["p"].to_numpy(), "holm"))


def _differences(family: pd.DataFrame) -> pd.DataFrame:
    own = family[(family["first"] == 0) & (family["label"].isna() | (family["level"] == "turn"))]
    frame = own.sort_values("label", key=pd.Series.notna, kind="stable", ignore_index=True)
    frame["detectable"] = detectable(frame["error"].to_numpy())
    frame["verdict"] = np.where(frame["adjusted_p"] < ALPHA, "different", "not shown")
    frame.loc[frame["adjusted_p"].isna(), "verdict"] = "insufficient"
    frame["value"] = frame["own_score"] - frame["baseline_score"]
    return frame


def _own_scores(scored: Sequence[Evaluation], found: PairedResult) -> pd.DataFrame:
    """One row for each run, by its place, and score."""
    return pd.concat(
        pd.DataFrame(
            {
                "level": scored[0].counts.level,
                "score": score,
                "value": [float(each.scores[score].value) for each in scored],
                "low": found.own_low[:, k],
                "high": found.own_high[:, k],
            }
        )
        for k, score in enumerate(SCORES)
    )


def _leaderboard(scores: pd.DataFrame, family: pd.DataFrame) -> pd.DataFrame:
    setting = ["level", "score"]
    tested = family.groupby(setting)
    boards = []
    for names, own in scores.groupby(setting, sort=False):
        pairs = tested.get_group(names)
        places = standings(
            own["value"].to_numpy(),
            pairs[["first", "system"]].to_numpy(),
            pairs["adjusted_p"].to_numpy(),
        )
        boards.append(places.join(own))
    return pd.concat(boards).rename_axis("system").reset_index()
