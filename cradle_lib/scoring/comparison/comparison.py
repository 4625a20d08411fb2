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

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.comparison.compared import Comparison
from cradle_lib.scoring.comparison.difference import (
    DISCORDANT,
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
from cradle_lib.statistics.rates import Floats

if TYPE_CHECKING:
    from cradle_lib.detection.journals.predictions import Predictions

SCORES: Final = ("micro_f1", "macro_f1")
# The standard deviation of equal numbers is 0 but for rounding.
_NO_SPREAD: Final = 1e-12
_COLUMNS: Final = (
    "level", "score", "label", "system", "baseline_score", "own_score", "value", "low", "high",
    "p", "adjusted_p", "support", "discordant", "detectable", "verdict", "signature",
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
    scored: dict[Level, list[Evaluation]] = {
        level: [evaluate(run, level=level, conventions=conventions, draws=0) for run in runs]
        for level in LEVELS
    }
    signatures = {}
    for level in LEVELS:
        own = [evaluation.signature for evaluation in scored[level]]
        require_comparable(called, own, about=about)
        signatures[level] = replace(shared(own, about=about), draws=draws, seed=seed)
    # The baseline's pairs come first; labels are tested at turn level.
    by_label = {"turn": len(runs) - 1}
    paired = {
        level: _paired(scored[level], signatures[level], permutations, by_label.get(level, 0))
        for level in LEVELS
    }
    family = _family(scored, paired)
    return Comparison(
        names=called,
        signatures=signatures,
        permutations=permutations,
        differences=_differences(called, scored, paired, signatures, family),
        standings=_standings(called, scored, paired, signatures, family[0]),
    )


def _paired(
    scored: Sequence[Evaluation], signature: Signature, permutations: int, by_label: int
) -> PairedResult:
    found = compare_pairs(
        [e.counts for e in scored],
        draws=signature.draws,
        permutations=permutations,
        seed=signature.seed,
        zero_division=signature.zero_division,
        by_label=by_label,
    )
    if sum(scored[0].support.values()) < ENOUGH:
        found.p[:] = np.nan
    rare = [n < ENOUGH for n in scored[0].support.values()]
    for_labels = found.p[:, len(SCORES) :]
    for_labels[found.discordant[:, len(SCORES) :] < DISCORDANT] = np.nan
    for_labels[:, rare] = np.nan
    return found


def _family(
    scored: Mapping[Level, Sequence[Evaluation]], paired: Mapping[Level, PairedResult]
) -> tuple[dict[Level, Floats], Floats, Floats, Floats]:
    """Corrects all p-values of a comparison together.

    Returns:
        Adjusted p-values of all pairs by micro and macro F1 of each level, shape (P, 2) each; those
        of exact match, uncorrected and adjusted, shape (S - 1,); and of each label at turn level,
        shape (S - 1, 16). The baseline's pairs come first.
    """
    baseline, *others = scored["dialogue"]
    enough = len(baseline.counts) >= ENOUGH
    exact = np.array([mcnemar(baseline.counts, e.counts) if enough else np.nan for e in others])
    labels = paired["turn"].p[: len(others), len(SCORES) :]
    parts = [*(paired[level].p[:, : len(SCORES)] for level in LEVELS), exact, labels]
    adjusted = adjust(np.concatenate([part.ravel() for part in parts]), "holm")
    ends = np.cumsum([part.size for part in parts])
    split = [
        piece.reshape(part.shape)
        for piece, part in zip(np.split(adjusted, ends[:-1]), parts, strict=True)
    ]
    return dict(zip(LEVELS, split, strict=False)), exact, split[-2], split[-1]


def _differences(
    names: Sequence[str],
    scored: Mapping[Level, Sequence[Evaluation]],
    paired: Mapping[Level, PairedResult],
    signatures: Mapping[Level, Signature],
    family: tuple[dict[Level, Floats], Floats, Floats, Floats],
) -> pd.DataFrame:
    others = range(1, len(names))
    overall, exact, adjusted_exact, labels = family
    aside = np.full(len(SCORES), np.nan)
    rows = [
        *(
            row
            for level in LEVELS
            for i in others
            for row in _f1_rows(scored[level], paired[level], i, overall[level][i - 1].tolist())
        ),
        *_exact_match_rows(scored["dialogue"], signatures["dialogue"], exact, adjusted_exact),
        *(
            row
            for i in others
            for row in list(
                _f1_rows(
                    scored["turn"],
                    paired["turn"],
                    i,
                    np.concatenate([aside, labels[i - 1]]).tolist(),
                )
            )[len(SCORES) :]
        ),
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
            "discordant": int(result.discordant[other - 1, column]),
        }


def _exact_match_rows(
    scored: Sequence[Evaluation], signature: Signature, p: Floats, adjusted: Floats
) -> Iterator[dict[str, Any]]:
    baseline, *others = scored
    for place, other in enumerate(others):
        low, high, error = exact_match_spread(
            baseline.counts, other.counts, draws=signature.draws, seed=signature.seed
        )
        differ = baseline.counts.sets[:, 1] != other.counts.sets[:, 1]
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
            "discordant": int(differ.sum()),
        }


def _standings(
    names: Sequence[str],
    scored: Mapping[Level, Sequence[Evaluation]],
    paired: Mapping[Level, PairedResult],
    signatures: Mapping[Level, Signature],
    adjusted: Mapping[Level, Floats],
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
            adjusted[level][:, k],
        )
    )
