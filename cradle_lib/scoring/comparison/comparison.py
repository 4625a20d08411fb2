"""Who is really better: differences between runs, each with an interval and a test.

The declared family: every other run against the first one, the baseline, in the paper's three
settings (turn level, dialogue level, confirms only), by micro and by macro F1. Its p-values are
corrected together by Holm's method. The F1s of single labels are exploratory: Benjamini and
Hochberg's correction over the labels of one pair. Exact match is compared at dialogue level only,
by McNemar's exact test; at turn level it would treat the turns of a dialogue as independent.

Where fewer than 20 gold labels stand behind an F1, or fewer than 20 dialogues behind an exact
match, there is an interval and no test: the verdict is ``insufficient``.

References:
    Dror, Baumer, Shlomov and Reichart, "The Hitchhiker's Guide to Testing Statistical
    Significance in NLP", 2018; McNemar, Psychometrika 12, 1947; Miller, "Adding Error Bars to
    Evals" (arXiv 2411.00640); for :mod:`~cradle_lib.scoring.comparison.paired` see there.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.comparison.compared import Comparison
from cradle_lib.scoring.comparison.difference import (
    ENOUGH,
    detectable,
    exact_match_spread,
    mcnemar,
    require_comparable,
)
from cradle_lib.scoring.comparison.paired import PERMUTATIONS, PairedResult, compare_pairs
from cradle_lib.scoring.comparison.ranking import ALPHA, adjust, standings
from cradle_lib.scoring.core.conventions import LEVELS, Conventions, Level
from cradle_lib.scoring.core.evaluate import Evaluation, evaluate
from cradle_lib.scoring.core.signature import Signature, shared
from cradle_lib.statistics.bootstrap import DRAWS

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

SCORES: Final = ("micro_f1", "macro_f1")
# The standard deviation of equal numbers is 0 but for rounding.
_NO_SPREAD: Final = 1e-12
_COLUMNS: Final = (
    "level", "score", "label", "system", "baseline_score", "own_score", "value", "low", "high",
    "p", "adjusted_p", "support", "detectable", "verdict", "signature",
)  # fmt: skip


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
        draws: Bootstrap draws behind the intervals; 0 for none.
        permutations: Swaps behind the p-values, at least 1.
        seed: Seed of both.
        about: Parts of the signature that may differ, such as ``("history",)``.

    Returns:
        The comparison.

    Raises:
        ScoringError: If there are fewer than two runs, two share a name, no permutation is
            asked for, ``about`` names no part of a signature, or their signatures differ.
    """
    called = tuple(names) if names is not None else tuple(run.record.name for run in runs)
    if len(runs) < 2 or len(called) != len(runs) or len(set(called)) != len(runs):
        raise ScoringError(
            f"runs to compare: {', '.join(called) or 'none'}. Name two or more, each once."
        )
    if permutations < 1:
        raise ScoringError(f"{permutations} permutations. A test needs at least 1.")
    scored: dict[Level, list[Evaluation]] = {
        level: [evaluate(run, level=level, conventions=conventions, draws=0) for run in runs]
        for level in LEVELS
    }
    signatures = {}
    for level in LEVELS:
        own = [evaluation.signature for evaluation in scored[level]]
        require_comparable(called, own, about=about)
        signatures[level] = replace(shared(own, about=about), draws=draws, seed=seed)
    paired = {level: _paired(scored[level], signatures[level], permutations) for level in LEVELS}
    return Comparison(
        names=called,
        signatures=signatures,
        permutations=permutations,
        differences=_differences(called, scored, paired, signatures),
        standings=_standings(called, scored, paired, signatures),
    )


def _paired(scored: Sequence[Evaluation], signature: Signature, permutations: int) -> PairedResult:
    both = partial(
        compare_pairs,
        [e.counts for e in scored],
        seed=signature.seed,
        zero_division=signature.zero_division,
    )
    # Intervals are shown against the baseline only; tie groups need a test of every pair.
    against = [(0, other) for other in range(1, len(scored))]
    spread = both(against, draws=signature.draws, permutations=0)
    tested = both(draws=0, permutations=permutations)
    if sum(scored[0].support.values()) < ENOUGH:
        tested.p[:] = np.nan
    # All pairs begin with those of the first system, in the order of the others.
    return replace(spread, pairs=tested.pairs, p=tested.p)


def _differences(
    names: Sequence[str],
    scored: Mapping[Level, Sequence[Evaluation]],
    paired: Mapping[Level, PairedResult],
    signatures: Mapping[Level, Signature],
) -> pd.DataFrame:
    others = range(1, len(names))
    p = np.array([[paired[level].p[i - 1, : len(SCORES)] for level in LEVELS] for i in others])
    adjusted = adjust(p, "holm")
    rows = [
        *(
            row
            for j, level in enumerate(LEVELS)
            for i in others
            for row in _f1_rows(scored[level], paired[level], i, adjusted[i - 1, j])
        ),
        *_exact_match_rows(scored["dialogue"], signatures["dialogue"]),
        *(row for i in others for row in _label_rows(scored["turn"], paired["turn"], i)),
    ]
    frame = pd.DataFrame(rows)
    frame["system"] = [names[i] for i in frame["system"]]
    frame["detectable"] = frame.pop("error").map(detectable)
    frame.loc[~(frame["detectable"] > _NO_SPREAD), "detectable"] = np.nan
    frame["verdict"] = np.where(frame["adjusted_p"] < ALPHA, "different", "not shown")
    frame.loc[frame["adjusted_p"].isna(), "verdict"] = "insufficient"
    frame.loc[frame["adjusted_p"].isna(), "p"] = np.nan
    frame["value"] = frame["own_score"] - frame["baseline_score"]
    frame["signature"] = frame["level"].map({level: str(s) for level, s in signatures.items()})
    return frame[list(_COLUMNS)]


def _f1_rows(
    scored: Sequence[Evaluation], result: PairedResult, other: int, adjusted: Sequence[float]
) -> Iterator[dict[str, Any]]:
    """Rows of as many adjusted p-values as there are: micro F1, macro F1, then each label."""
    labels = scored[0].labels
    support = scored[0].support
    for column, chance in enumerate(adjusted):
        label = labels[column - len(SCORES)] if column >= len(SCORES) else None
        score = "f1" if label else SCORES[column]
        yield {
            "level": scored[0].counts.level,
            "score": score,
            "label": label,
            "system": other,
            "baseline_score": float(scored[0].estimate(score, label).value),
            "own_score": float(scored[other].estimate(score, label).value),
            "low": result.low[other - 1, column],
            "high": result.high[other - 1, column],
            "error": result.error[other - 1, column],
            "p": result.p[other - 1, column],
            "adjusted_p": chance,
            "support": support[label] if label else sum(support.values()),
        }


def _label_rows(
    turns: Sequence[Evaluation], result: PairedResult, other: int
) -> list[dict[str, Any]]:
    enough = np.array([n >= ENOUGH for n in turns[0].support.values()])
    overall = len(SCORES)
    adjusted = adjust(np.where(enough, result.p[other - 1, overall:], np.nan), "fdr_bh")
    padded = np.concatenate([np.full(overall, np.nan), adjusted])
    return list(_f1_rows(turns, result, other, padded.tolist()))[overall:]


def _exact_match_rows(
    scored: Sequence[Evaluation], signature: Signature
) -> Iterator[dict[str, Any]]:
    baseline, *others = scored
    enough = signature.dialogues >= ENOUGH
    p = np.array([mcnemar(baseline.counts, e.counts) if enough else np.nan for e in others])
    adjusted = adjust(p, "holm")
    for place, other in enumerate(others):
        low, high, error = exact_match_spread(
            baseline.counts, other.counts, draws=signature.draws, seed=signature.seed
        )
        yield {
            "level": "dialogue",
            "score": "exact_match",
            "label": None,
            "system": place + 1,
            "baseline_score": float(baseline.estimate("exact_match").value),
            "own_score": float(other.estimate("exact_match").value),
            "low": low,
            "high": high,
            "error": error,
            "p": p[place],
            "adjusted_p": adjusted[place],
            "support": signature.dialogues,
        }


def _standings(
    names: Sequence[str],
    scored: Mapping[Level, Sequence[Evaluation]],
    paired: Mapping[Level, PairedResult],
    signatures: Mapping[Level, Signature],
) -> pd.DataFrame:
    return pd.DataFrame(
        {
            "level": level,
            "score": score,
            "system": names[standing.system],
            "tie_group": standing.group,
            "best_place": standing.best,
            "worst_place": standing.worst,
            "value": standing.value,
            "low": result.own_low[standing.system, k],
            "high": result.own_high[standing.system, k],
            "signature": str(signatures[level]),
        }
        for level, result in paired.items()
        for k, score in enumerate(SCORES)
        for standing in standings(
            [float(e.estimate(score).value) for e in scored[level]],
            result.pairs,
            adjust(result.p[:, k], "holm"),
        )
    )
