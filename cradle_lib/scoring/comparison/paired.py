"""Paired tests and intervals of differences between systems over the same dialogues.

Test. If two systems were equally good, it would not matter which of the two gave the tags of a
dialogue. So whole dialogues are swapped between them, each with probability one half, many
times over, and p is the share of swaps that make a difference at least as large as the one
seen, the observed one included: p = (1 + #{|d*| >= |d|}) / (1 + R). Turns are never swapped one
by one, because those of a dialogue depend on each other.

Interval. Dialogues are drawn with replacement, the same ones for both systems, and the
difference is taken draw by draw.

How it is fast: what each system hands over in every swap is summed once
(``weighted_sums``); the swaps are the same for all pairs, so that a pair costs
no further sum.

References:
    Noreen, Computer-Intensive Methods for Testing Hypotheses (1989), on approximate
    randomization; Riezler and Maxwell, "On Some Pitfalls in Automatic Evaluation and
    Significance Testing for MT", 2005, on its error rate; Phipson and Smyth, "Permutation
    P-values Should Never Be Zero", 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.core.counts import Counts
from cradle_lib.scoring.core.scores import labels_at
from cradle_lib.statistics.bootstrap import bounds
from cradle_lib.statistics.rates import Floats, f1
from cradle_lib.statistics.weighted_sums import draw_blocks, permutation_blocks

PERMUTATIONS: Final = 10_000


@dataclass(frozen=True, slots=True)
class PairedResult:
    """What is found about every pair of S systems. L is the number of labels at the level.

    The statistics along the last axis are micro F1, macro F1, then the F1 of each label.

    Attributes:
        pairs: Positions of the two systems of each pair. Shape (P, 2).
        difference: The second system's F1 minus the first one's. Shape (P, 2 + L).
        low: Lower bounds of their 95 % intervals; NaN without draws, or with a single
            dialogue, of which every draw is the same. Shape (P, 2 + L).
        high: Upper bounds. Shape (P, 2 + L).
        error: Standard deviation of the difference over the draws. Shape (P, 2 + L).
        p: p-values; NaN without permutations. Shape (P, 2 + L).
        own_low: Lower bounds of each system's own scores; NaN likewise. Shape (S, 2 + L).
        own_high: Upper bounds. Shape (S, 2 + L).
    """

    pairs: NDArray[np.int64]
    difference: Floats
    low: Floats
    high: Floats
    error: Floats
    p: Floats
    own_low: Floats
    own_high: Floats


def compare_pairs(
    systems: Sequence[Counts],
    pairs: Sequence[tuple[int, int]] | None = None,
    *,
    draws: int,
    permutations: int,
    seed: int = 0,
    zero_division: float = 0.0,
) -> PairedResult:
    """Compares systems pair by pair.

    Args:
        systems: Counts over the same N dialogues, in the same order and at one level.
        pairs: Which systems to compare; ``None`` for all pairs.
        draws: Bootstrap draws behind the intervals; 0 for none.
        permutations: Permutations behind the p-values; 0 for none.
        seed: Seed of both.
        zero_division: F1 of a label with neither gold labels nor tags.

    Returns:
        Differences, intervals and p-values.

    Raises:
        ScoringError: If the systems differ in level or number of dialogues, or there are
            fewer than two.
    """
    if len(systems) < 2 or len({(c.level, len(c)) for c in systems}) != 1 or not len(systems[0]):
        found = ", ".join(f"{c.level} level over {len(c)} dialogues" for c in systems) or "none"
        raise ScoringError(
            f"systems to compare: {found}. There must be two or more, at one level and over "
            "the same dialogues."
        )
    chosen = list(combinations(range(len(systems)), 2)) if pairs is None else list(pairs)
    skip = 16 - len(labels_at(systems[0].level))
    rows = np.stack([_f1_rows(counts, skip) for counts in systems], axis=1)
    total = rows.sum(axis=0, dtype=np.float64)
    point = f1_scores(total, zero_division)
    difference = np.array([point[b] - point[a] for a, b in chosen])
    low, high, error, p = (np.full(difference.shape, np.nan) for _ in range(4))
    own_low, own_high = (np.full(point.shape, np.nan) for _ in range(2))
    if draws and len(systems[0]) > 1:
        drawn = np.concatenate(
            [f1_scores(totals, zero_division) for totals in draw_blocks(rows, draws, seed)]
        )
        own_low, own_high = bounds(drawn)
        for place, (a, b) in enumerate(chosen):
            moved = drawn[:, b] - drawn[:, a]
            low[place], high[place] = bounds(moved)
            error[place] = moved.std(axis=0)
    if permutations:
        hits = np.ones(difference.shape)
        # Equal tallies must count as equal, however their sums were rounded.
        least = np.abs(difference) - 1e-12
        for given in permutation_blocks(rows, permutations, seed):
            kept = total - given
            for a in sorted({a for a, _ in chosen}):
                places = [place for place, pair in enumerate(chosen) if pair[0] == a]
                others = [chosen[place][1] for place in places]
                moved = f1_scores(kept[:, others] + given[:, [a]], zero_division)
                moved -= f1_scores(kept[:, [a]] + given[:, others], zero_division)
                hits[places] += np.count_nonzero(np.abs(moved) >= least[places], axis=0)
        p = hits / (1 + permutations)
    return PairedResult(np.array(chosen), difference, low, high, error, p, own_low, own_high)


def f1_scores(totals: Floats, zero_division: float = 0.0) -> Floats:
    """Computes micro F1, macro F1 and the F1 of each label.

    Args:
        totals: True positives, and gold labels plus tags, of each label. Shape (..., 2, L).
        zero_division: Value where there is neither gold label nor tag.

    Returns:
        Shape (..., 2 + L).
    """
    tp, sizes = np.moveaxis(totals, (-2, -1), (0, 1))
    labels = f1(tp, sizes, zero_division)
    micro = f1(tp.sum(axis=0), sizes.sum(axis=0), zero_division)
    return np.moveaxis(np.concatenate([[micro], [labels.mean(axis=0)], labels]), 0, -1)


def _f1_rows(counts: Counts, skip: int) -> NDArray[np.int64]:
    tallies = counts.tallies[:, skip:].astype(np.int64)
    tp = tallies[..., 0]
    return np.stack([tp, 2 * tp + tallies[..., 1] + tallies[..., 2]], axis=1)
