"""Compares runs with a baseline (differences, intervals, tests), and ranks systems.

The declared family: every run against the first one, the baseline, in micro and in macro F1, at
turn level, at dialogue level and for confirms only. Its p-values are corrected together by Holm's
method, which bounds the chance of any false positive in the family. Runs with the same labels on
every turn are one system: pass only one of them (:func:`.distinct_runs`).

The F1 of single labels at turn level is exploratory: these p-values are corrected by the method of
Benjamini and Hochberg, which bounds the expected share of false positives.

Without enough data there is no test, and the verdict is ``insufficient``. The minimum is 20 gold
labels, and for a single label also 10 discordant dialogues, on which the two runs have different
counts of it. Swapping other dialogues changes nothing, and nine discordant ones allow only 2^9
swaps.

References:
    Dror, Baumer, Shlomov and Reichart, "The Hitchhiker's Guide to Testing Statistical Significance
    in NLP", 2018; Miller, "Adding Error Bars to Evals" (arXiv 2411.00640); Holm, "A Simple
    Sequentially Rejective Multiple Test Procedure", 1979; Benjamini and Hochberg, "Controlling the
    False Discovery Rate", 1995; Cohen, Statistical Power Analysis, 1988, on detectable differences;
    for the tests see :mod:`~cradle_lib.scoring.paired_tests`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pandas as pd

from cradle_lib.arguments import Positive, Seed, checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.scoring.conventions import LEVELS, Conventions, Level
from cradle_lib.scoring.evaluate import Evaluation, evaluate
from cradle_lib.scoring.paired_tests import PERMUTATIONS, PairedTest, paired_tests
from cradle_lib.scoring.scores import ENOUGH, precision_recall_f1, tallies_at
from cradle_lib.scoring.signature import Signature, require_comparable, signed
from cradle_lib.statistics.bootstrap import percentiles
from cradle_lib.statistics.rates import Floats

ALPHA: Final = 0.05
POWER: Final = 0.8
# With fewer discordant dialogues no p-value stays significant after correction.
DISCORDANT: Final = 10
# Fewest discordant dialogues for which :func:`detectable` gives a difference.
MIN_DETECTABLE: Final = 20
COMPARED: Final = ("micro_f1", "macro_f1")
_UNDEFINED: Final = PairedTest(math.nan, math.nan, math.nan, math.nan, math.nan, 0)
# A smaller detectable difference is 0 apart from rounding.
_NO_SPREAD: Final = 1e-12
_COLUMNS: Final = (
    "level", "score", "label", "system", "baseline_score", "own_score", "value", "low", "high",
    "error", "p", "adjusted_p", "support", "discordant", "detectable", "verdict", "signature",
)  # fmt: skip


@dataclass(frozen=True)
class Comparison:
    """The comparison of runs with a baseline.

    Attributes:
        names: Names of the runs, the baseline first.
        signatures: The signature of each level, which the runs share.
        differences: The data frame of :meth:`to_frame`.
    """

    names: tuple[str, ...]
    signatures: dict[Level, Signature]
    differences: pd.DataFrame

    @property
    def dialogues(self) -> int:
        """Number of dialogues, which is the same for all runs."""
        return self.signatures["turn"].dialogues

    @property
    def power_note(self) -> str:
        """States the smallest difference that this number of dialogues can show."""
        wanted = self.differences.query("level == 'turn' and score == 'micro_f1'")
        sizes, most = wanted["detectable"].dropna(), wanted["discordant"].max()
        if sizes.empty:
            reason = "No difference varies over the dialogues"
            if wanted["p"].isna().all():
                reason = f"Fewer than {ENOUGH} labels are gold"
            elif most < MIN_DETECTABLE:
                needed = f"{most} of the {MIN_DETECTABLE} needed"
                reason = f"Runs differ from the baseline on too few dialogues ({needed})"
            return f"{reason}, so the detectable difference is unknown."
        low, high = (f"{100 * size:.1f}" for size in (sizes.min(), sizes.max()))
        pairs = ", depending on the pair" * (low != high)
        span = low if low == high else f"{low} to {high}"
        unknown = f" It is unknown for {len(wanted) - len(sizes)} of the {len(wanted)} pairs."
        return (
            f"With {self.dialogues:,} dialogues, the detectable difference is {span} points of "
            f"turn-level micro F1{pairs}: a true difference of this size is significant in 80 % of "
            f"samples, before correction.{unknown * (len(sizes) < len(wanted))}"
        )

    def to_frame(self) -> pd.DataFrame:
        """Gives every difference from the baseline as a tidy data frame.

        Returns:
            One row for each difference: the declared family by level, then the labels.

            - ``level`` (str): ``turn``, ``dialogue`` or ``confirm``.
            - ``score`` (str): ``micro_f1``, ``macro_f1``, or ``f1`` of a label.
            - ``label`` (str): the label; missing for the others.
            - ``system`` (str): the run that is compared with the baseline.
            - ``baseline_score``, ``own_score`` (float): the scores of the two, 0 to 1.
            - ``value``, ``low``, ``high`` (float): ``own_score`` minus ``baseline_score`` and its
              95 % interval, -1 to 1; NaN if no label is gold at the level, or the single label
              never, and bounds also if all dialogues are alike. The interval contains the
              differences that the test does not reject: 0 is outside it if and only if ``p`` is
              below 0.05.
            - ``error`` (float): standard error of the difference over dialogues; 0 where all
              dialogues are alike.
            - ``p``, ``adjusted_p`` (float): before and after correction: Holm's over the declared
              family, Benjamini and Hochberg's over the labels; NaN without a test.
            - ``support`` (int): number of gold labels that the score is based on.
            - ``discordant`` (int): dialogues on which the two runs have different counts in this
              score: summed over the labels for ``micro_f1``, of each label for ``macro_f1``.
            - ``detectable`` (float): the smallest true difference that is significant in 80 % of
              samples of this size, before correction; NaN without a test, with fewer than 20
              discordant dialogues, and if all dialogues are alike.
            - ``verdict`` (str): ``different`` if the adjusted p-value is below 0.05,
              ``insufficient`` if there is too little data for a test, else ``not shown``: never
              "equal".
            - ``signature`` (str): the scoring settings, which the two runs share.
        """
        return signed(self.differences.copy())


@checked
def compare(
    runs: Sequence[Predictions],
    *,
    names: Sequence[str] | None = None,
    conventions: Conventions | None = None,
    permutations: Positive = PERMUTATIONS,
    seed: Seed = 0,
    by_label: bool = True,
) -> Comparison:
    """Compares runs with the first one.

    Args:
        runs: Two or more runs over the same dialogues; the first is the baseline.
        names: Names of the runs; by default those in their records.
        conventions: Choices that the paper leaves open; the defaults if ``None``.
        permutations: Random permutations for p-values and intervals, at least 1. With at most 14
            discordant dialogues all permutations are used instead, so that p is exact. Fewer than
            20 random ones never show a difference.
        seed: Seed of the permutations.
        by_label: Also test the F1 of each label at turn level, which takes most of the time.

    Returns:
        The comparison.

    Raises:
        ScoringError: If there are fewer than two runs, two share a name, the conventions ask for
            the harmonic macro F1, their signatures differ, or they would be scored on different
            turns.
    """
    called = tuple(names) if names is not None else tuple(run.record.name for run in runs)
    if len(runs) < 2 or len(called) != len(runs) or len(set(called)) != len(runs):
        raise ScoringError(
            f"runs to compare: {', '.join(called) or 'none'}. Name two or more, each once."
        )
    if conventions is not None and conventions.macro_f1 != "mean":
        raise ScoringError(
            "the test is for the mean of the labels' F1, not for the harmonic macro F1. "
            "Compare without macro_f1=harmonic; `cradle score` gives both."
        )
    signatures: dict[Level, Signature] = {}
    rows: list[dict[str, Any]] = []
    for level in LEVELS:
        found = [evaluate(run, level=level, conventions=conventions, draws=0) for run in runs]
        signatures[level] = replace(_shared_signature(called, found), seed=seed)
        for name, other in zip(called[1:], found[1:], strict=True):
            about = {"level": level, "system": name, "signature": str(signatures[level])}
            labels = by_label and level == "turn"
            rows += [about | row for row in _tests(found[0], other, permutations, seed, labels)]
    return Comparison(called, signatures, _corrected(pd.DataFrame(rows)))


def _shared_signature(names: Sequence[str], found: Sequence[Evaluation]) -> Signature:
    """Gives the signature that evaluations share; refuses those that can't be compared."""
    signature = require_comparable(names, [each.signature for each in found])
    answered = [each.run.ok for each in found]
    if signature.unparsed == "exclude" and any((each != answered[0]).any() for each in answered):
        left_out = (f"{(~ok).sum()} for {name}" for name, ok in zip(names, answered, strict=True))
        raise ScoringError(
            "these runs can't be compared: unparsed='exclude' leaves out different turns of each "
            f"({', '.join(left_out)}). Compare with unparsed=miss or unparsed=none, which score "
            "the same turns of all runs."
        )
    return signature


def _tests(
    baseline: Evaluation, other: Evaluation, permutations: int, seed: int, by_label: bool
) -> list[dict[str, Any]]:
    """Tests micro and macro F1, and with ``by_label`` the F1 of each label; one row each."""
    support = baseline.support
    measured: list[tuple[str, str | None]] = [(score, None) for score in COMPARED]
    measured += [("f1", label) for label in support] if by_label else []
    found = [_UNDEFINED] * len(measured)
    if baseline.undefined_because is None:
        found = paired_tests(
            baseline.counts,
            other.counts,
            permutations=permutations,
            seed=seed,
            zero_division=baseline.signature.zero_division,
            by_label=by_label,
        )
    rows = []
    for (score, label), test in zip(measured, found, strict=True):
        one, two = (float(each.estimate(score, label).value) for each in (baseline, other))
        scores = {"baseline_score": one, "own_score": two, "value": two - one}
        gold = sum(support.values()) if label is None else support[label]
        if not gold:
            test = replace(_UNDEFINED, discordant=test.discordant)
        rows.append(asdict(test) | scores | {"score": score, "label": label, "support": gold})
    return rows


def _corrected(frame: pd.DataFrame) -> pd.DataFrame:
    """Corrects the p-values of the declared family and, separately, those of the labels."""
    frame = frame.sort_values("label", key=pd.Series.notna, kind="stable", ignore_index=True)
    of_labels = frame["label"].notna()
    few = of_labels & (frame["discordant"] < DISCORDANT)
    frame.loc[few | (frame["support"] < ENOUGH), "p"] = np.nan
    frame["adjusted_p"] = np.nan
    for chosen, method in ((~of_labels, "holm"), (of_labels, "fdr_bh")):
        frame.loc[chosen, "adjusted_p"] = adjust(frame.loc[chosen, "p"].to_numpy(), method)
    tested = frame.where(frame["p"].notna())
    frame["detectable"] = detectable(tested["error"].to_numpy(), tested["discordant"].to_numpy())
    frame["verdict"] = np.where(frame["adjusted_p"] < ALPHA, "different", "not shown")
    frame.loc[frame["adjusted_p"].isna(), "verdict"] = "insufficient"
    return frame[list(_COLUMNS)]


def detectable(error: Floats, discordant: Floats) -> Floats:
    """Computes the smallest true difference that a two-sided test finds with 80 % power.

    It is (z(1 - alpha / 2) + z(power)) times the standard error of the difference: about 2.8 times.
    NaN where the standard error is NaN or 0, and with fewer than 20 discordant dialogues: the
    test then finds such a difference too rarely. With 5 it never does, because the smallest
    p-value is 2 / 2^5; with 10 the power is about 70 %, with 20 about 75 %.
    """
    normal = NormalDist()
    found = (normal.inv_cdf(1 - ALPHA / 2) + normal.inv_cdf(POWER)) * error
    return np.where((found > _NO_SPREAD) & (discordant >= MIN_DETECTABLE), found, np.nan)


def adjust(p: Floats, method: str) -> Floats:
    """Corrects p-values for multiple testing. Shape (T,).

    ``holm`` keeps the chance of any false positive in the family below alpha, ``fdr_bh`` (Benjamini
    and Hochberg) the expected share of false positives. NaN stays NaN and does not count as a test.
    """
    adjusted: Floats = np.full(len(p), np.nan)
    # NaN comes last.
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]
    tests = len(order)
    if method == "holm":
        adjusted[order] = np.maximum.accumulate(p[order] * (tests - np.arange(tests)))
    else:
        scaled = p[order] * tests / np.arange(1, tests + 1)
        adjusted[order] = np.minimum.accumulate(scaled[::-1])[::-1]
    return adjusted.clip(max=1.0)


@checked
def rank_ranges(evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    """Ranks systems by micro F1, with the range of ranks in 95 % of the bootstrap draws.

    In each draw all systems are scored on the same dialogues and ranked again.

    Args:
        evaluations: Evaluations of any systems and levels. Those of one level over the same
            dialogues are ranked together. Except for decoding, their signatures must be the same.

    Returns:
        One row for each evaluation, by level and dialogues, the best system first.

        - ``system``, ``level``, ``coverage`` (str): as in :meth:`.Evaluation.to_frame`.
        - ``rank`` (Int64): 1 is the highest micro F1; tied systems share the best of their ranks.
          Missing, as is ``ranks``, if no label is gold at the level.
        - ``ranks`` (str): the middle 95 % of the ranks over the draws, such as ``1`` or ``2 to 4``.
          Systems that tie in a draw count with the best and the worst of their ranks. The range
          always contains the ranks in the corpus itself; without draws, and for a single dialogue,
          only these.
        - ``signature`` (str): the scoring settings.

    Raises:
        ScoringError: If evaluations that would be ranked together can't be compared.
    """
    groups: dict[tuple[str, str], list[Evaluation]] = {}
    for each in evaluations:
        groups.setdefault((each.signature.level, each.signature.corpus), []).append(each)
    rows = [row for group in groups.values() for row in _ranked(group)]
    columns = ["system", "level", "coverage", "rank", "ranks", "signature"]
    return signed(pd.DataFrame(rows, columns=columns).astype({"rank": "Int64"}))


def _ranked(group: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """Ranks the systems of one level that were scored over the same dialogues."""
    signature = _shared_signature([each.run.record.name for each in group], group)
    ranked = group[0].undefined_because is None
    tallies = [tallies_at(each.counts.rows, each.counts.level).sum(axis=1) for each in group]
    rows = np.stack(tallies, axis=1)
    ranks = partial(_ranks, zero_division=signature.zero_division)
    own = ranks(rows.sum(axis=0, dtype=np.float64))
    lows, highs = own["best"], own["worst"]
    if signature.draws and len(rows) > 1:
        drawn = percentiles(rows, ranks, draws=signature.draws, seed=signature.seed)
        # A percentile is NaN, and ignored, if a rank is the same in all draws.
        lows = np.floor(np.fmin(lows, drawn["best"][0]))
        highs = np.ceil(np.fmax(highs, drawn["worst"][1]))
    return [
        {
            "system": group[place].run.record.name,
            "level": signature.level,
            "coverage": group[place].run.coverage,
            "rank": int(own["best"][place]) if ranked else None,
            "ranks": _span(lows[place], highs[place]) if ranked else None,
            "signature": str(group[place].signature),
        }
        for place in np.argsort(own["best"], kind="stable")
    ]


def _span(low: float, high: float) -> str:
    return " to ".join(dict.fromkeys(f"{end:.0f}" for end in (low, high)))


def _ranks(totals: Floats, *, zero_division: float) -> dict[str, Floats]:
    """Computes the best and worst rank of each of S systems; totals have shape (..., S, 3)."""
    _, _, scores = precision_recall_f1(totals, zero_division)
    own, other = scores[..., :, None], scores[..., None, :]
    return {
        "best": 1.0 + (other > own).sum(axis=-1),
        "worst": 1.0 * (other >= own).sum(axis=-1),
    }
