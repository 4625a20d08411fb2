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

from collections.abc import Collection, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Final

import numpy as np

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.comparison.compared import Comparison
from cradle_lib.scoring.comparison.difference import (
    ENOUGH,
    Difference,
    exact_match_spread,
    mcnemar,
    number,
    require_comparable,
)
from cradle_lib.scoring.comparison.paired import PERMUTATIONS, PairedResult, compare_pairs
from cradle_lib.scoring.comparison.ranking import adjust, standings
from cradle_lib.scoring.core.conventions import LEVELS, Conventions, Level
from cradle_lib.scoring.core.evaluate import Estimate, Evaluation, evaluate
from cradle_lib.scoring.core.signature import Signature, shared
from cradle_lib.scoring.resampling.intervals import DRAWS

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

SCORES: Final = ("micro_f1", "macro_f1")


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
    return _compared(called, scored, signatures, permutations)


def _compared(
    names: tuple[str, ...],
    scored: dict[Level, list[Evaluation]],
    signatures: dict[Level, Signature],
    permutations: int,
) -> Comparison:
    results = {}
    for level, signature in signatures.items():
        both = partial(
            compare_pairs,
            [e.counts for e in scored[level]],
            seed=signature.seed,
            zero_division=signature.zero_division,
        )
        # Intervals are shown against the baseline only; tie groups need a test of every pair.
        spread = both(
            [(0, other) for other in range(1, len(names))], draws=signature.draws, permutations=0
        )
        tested_pairs = both(draws=0, permutations=permutations)
        results[level] = replace(spread, pairs=tested_pairs.pairs, p=tested_pairs.p)
    firsts = [place for place, (a, _) in enumerate(results["turn"].pairs) if a == 0]
    enough = {level: sum(scored[level][0].support.values()) >= ENOUGH for level in LEVELS}
    tested = {level: np.where(enough[level], results[level].p, np.nan) for level in LEVELS}
    adjusted = adjust(
        np.array([[tested[level][place, :2] for level in LEVELS] for place in firsts]), "holm"
    )
    return Comparison(
        names=names,
        signatures=signatures,
        permutations=permutations,
        estimates={
            (level, score): [
                Estimate(
                    float(getattr(e.scores, score)),
                    number(float(results[level].own_low[i, k])),
                    number(float(results[level].own_high[i, k])),
                )
                for i, e in enumerate(scored[level])
            ]
            for level in LEVELS
            for k, score in enumerate(SCORES)
        },
        family=tuple(
            _f1_difference(names, scored[level], results[level], place, k, float(adjusted[i, j, k]))
            for i, place in enumerate(firsts)
            for j, level in enumerate(LEVELS)
            for k in range(len(SCORES))
        ),
        labels=tuple(
            difference
            for place in firsts
            for difference in _label_differences(names, scored["turn"], results["turn"], place)
        ),
        exact_match=_exact_matches(names, scored["dialogue"], signatures["dialogue"]),
        leaderboards={
            (level, score): standings(
                [e.estimate(score).value for e in scored[level]],
                results[level].pairs,
                adjust(tested[level][:, k], "holm"),
            )
            for level in LEVELS
            for k, score in enumerate(SCORES)
        },
    )


def _f1_difference(
    names: Sequence[str],
    scored: Sequence[Evaluation],
    result: PairedResult,
    place: int,
    column: int,
    adjusted: float,
) -> Difference:
    """Column 0 is micro F1, column 1 macro F1, the others are labels."""
    a, b = result.pairs[place]
    support = scored[0].support
    label = scored[0].labels[column - len(SCORES)] if column >= len(SCORES) else None
    score = "f1" if label else SCORES[column]
    return Difference.make(
        level=scored[0].counts.level,
        score=score,
        label=label,
        systems=(names[a], names[b]),
        values=(scored[a].estimate(score, label).value, scored[b].estimate(score, label).value),
        bounds=(float(result.low[place, column]), float(result.high[place, column])),
        error=float(result.error[place, column]),
        support=support[label] if label else sum(support.values()),
        p=float(result.p[place, column]) if not np.isnan(adjusted) else adjusted,
        adjusted=adjusted,
    )


def _label_differences(
    names: Sequence[str], turns: Sequence[Evaluation], result: PairedResult, place: int
) -> list[Difference]:
    enough = np.array([n >= ENOUGH for n in turns[0].support.values()])
    adjusted = adjust(np.where(enough, result.p[place, len(SCORES) :], np.nan), "fdr_bh")
    return [
        _f1_difference(names, turns, result, place, column, float(chance))
        for column, chance in enumerate(adjusted, start=len(SCORES))
    ]


def _exact_matches(
    names: Sequence[str], scored: Sequence[Evaluation], signature: Signature
) -> tuple[Difference, ...]:
    baseline, *others = scored
    enough = signature.dialogues >= ENOUGH
    raw = np.array([mcnemar(baseline.counts, e.counts) if enough else np.nan for e in others])
    found = []
    for name, other, p, adjusted in zip(names[1:], others, raw, adjust(raw, "holm"), strict=True):
        low, high, error = exact_match_spread(
            baseline.counts, other.counts, draws=signature.draws, seed=signature.seed
        )
        found.append(
            Difference.make(
                level="dialogue",
                score="exact_match",
                label=None,
                systems=(names[0], name),
                values=(float(baseline.scores.exact_match), float(other.scores.exact_match)),
                bounds=(low, high),
                error=error,
                support=signature.dialogues,
                p=float(p),
                adjusted=float(adjusted),
            )
        )
    return tuple(found)
