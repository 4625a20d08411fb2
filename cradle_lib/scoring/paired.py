"""Paired tests and intervals of differences between systems over the same dialogues.

Test. If two systems were equally good, it would not matter which of the two gave the tags of a
dialogue. So whole dialogues are swapped between them, each with probability one half, many
times over, and p is the share of swaps that make a difference at least as large as the one
seen, the observed one included: p = (1 + #{|d*| >= |d|}) / (1 + R). Turns are never swapped one
by one, because those of a dialogue depend on each other.

Interval. Dialogues are drawn with replacement, the same ones for both systems, and the
difference is taken draw by draw.

How it is fast: a system's contribution to all swaps is one product of the swap matrix (R, N)
with its counts (N, 32); a pair costs no further product. The swaps are the same for all pairs.

References:
    Noreen, Computer-Intensive Methods for Testing Hypotheses (1989), on approximate
    randomization; Riezler and Maxwell, "On Some Pitfalls in Automatic Evaluation and
    Significance Testing for MT", 2005, on its error rate; Phipson and Smyth, "Permutation
    P-values Should Never Be Zero", 2010.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import combinations
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.counts import Counts
from cradle_lib.scoring.draws import Floats, bounds, draw_totals, ratio
from cradle_lib.scoring.scores import labels_at

PERMUTATIONS: Final = 10_000
_KEPT: Final = 1 << 23


@dataclass(frozen=True, slots=True)
class PairedResult:
    """What is found about every pair of S systems. L is the number of labels at the level.

    The statistics along the last axis are micro F1, macro F1, then the F1 of each label.

    Attributes:
        pairs: Positions of the two systems of each pair. Shape (P, 2).
        difference: The second system's F1 minus the first one's. Shape (P, 2 + L).
        low: Lower bounds of their 95 % intervals; NaN without draws. Shape (P, 2 + L).
        high: Upper bounds. Shape (P, 2 + L).
        error: Standard deviation of the difference over the draws. Shape (P, 2 + L).
        p: p-values; NaN without permutations. Shape (P, 2 + L).
        own_low: Lower bounds of each system's own scores; NaN without draws. Shape
            (S, 2 + L).
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
        permutations: Swaps behind the p-values; 0 for none.
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
    if draws:
        drawn = f1_scores(draw_totals(rows, draws=draws, seed=seed), zero_division)
        own_low, own_high = bounds(drawn)
        for place, (a, b) in enumerate(chosen):
            moved = drawn[:, b] - drawn[:, a]
            low[place], high[place] = bounds(moved)
            error[place] = moved.std(axis=0)
    if permutations:
        swapped = _swapped(rows, permutations, seed)
        for place, (a, b) in enumerate(chosen):
            away = swapped[:, a] - swapped[:, b]
            moved = f1_scores(total[b] + away, zero_division)
            moved -= f1_scores(total[a] - away, zero_division)
            # Equal tallies must count as equal, however their sums were rounded.
            hits = np.abs(moved) >= np.abs(difference[place]) - 1e-12
            p[place] = (1 + hits.sum(axis=0)) / (1 + permutations)
    return PairedResult(np.array(chosen), difference, low, high, error, p, own_low, own_high)


def f1_scores(totals: Floats, zero_division: float = 0.0) -> Floats:
    """Computes micro F1, macro F1 and the F1 of each label.

    Args:
        totals: True positives, and gold labels plus tags, of each label. Shape (..., 2, L).
        zero_division: Value where there is neither gold label nor tag.

    Returns:
        Shape (..., 2 + L).
    """
    f1 = np.empty((*totals.shape[:-2], 2 + totals.shape[-1]))
    pooled = totals.sum(axis=-1)
    f1[..., 0] = ratio(2 * pooled[..., 0], pooled[..., 1], zero_division)
    f1[..., 2:] = ratio(2 * totals[..., 0, :], totals[..., 1, :], zero_division)
    f1[..., 1] = f1[..., 2:].mean(axis=-1)
    return f1


def _f1_rows(counts: Counts, skip: int) -> NDArray[np.int64]:
    tallies = counts.tallies[:, skip:].astype(np.int64)
    found = tallies[..., 0]
    return np.stack([found, 2 * found + tallies[..., 1] + tallies[..., 2]], axis=1)


def _swapped(rows: NDArray[np.int64], permutations: int, seed: int) -> Floats:
    """Sums the counts of the dialogues that a swap hands over. Shape (permutations, S, 2, L)."""
    n = len(rows)
    flat = rows.reshape(n, -1).astype(np.float32)
    if n * permutations <= _KEPT:
        moved = _swaps(n, permutations, seed) @ flat
    else:
        generator = np.random.default_rng(seed)
        step = max(1, _KEPT // n)
        sizes = [min(step, permutations - start) for start in range(0, permutations, step)]
        moved = np.concatenate([_draw_swaps(size, n, generator) @ flat for size in sizes])
    return moved.reshape(permutations, *rows.shape[1:]).astype(np.float64)


@lru_cache(maxsize=4)
def _swaps(n: int, permutations: int, seed: int) -> NDArray[np.float32]:
    return _draw_swaps(permutations, n, np.random.default_rng(seed))


def _draw_swaps(rows: int, n: int, generator: np.random.Generator) -> NDArray[np.float32]:
    return generator.integers(0, 2, size=(rows, n), dtype=np.uint8).astype(np.float32)
