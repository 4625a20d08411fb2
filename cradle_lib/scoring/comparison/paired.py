"""Paired tests and intervals of differences between systems over the same dialogues.

Test. If two systems were equally good, it would not matter which of the two gave the tags of a
dialogue. So whole dialogues are swapped between them, each with probability one half, many
times over, and p is the share of swaps that make a difference at least as large as the one
seen, the observed one included: p = (1 + #{|t*| >= |t|}) / (1 + R). Turns are never swapped one
by one, because those of a dialogue depend on each other.

What is compared is the studentised difference t = d / se(d). Two systems of equal F1 need not be
alike: one may tag ten times as much as the other, and then swapped dialogues vary otherwise than
the real ones do. Measured in its own standard error, a difference has nearly the same distribution
in both cases; without that the level of the test is wrong wherever the two are not exchangeable.
The standard error is that of a ratio of sums over dialogues: with F = 2 T / S, a dialogue with t
true positives and s gold labels and tags moves F by (2 t - F s) / S.

Swaps can't show that p is smaller than 1 / (1 + R), which correction for hundreds of tests would
turn into nothing. Where no swap reaches the difference, p is taken from Student's distribution,
with one degree of freedom less than there are discordant dialogues, if that is smaller: the
studentised difference has it as its limit.

Interval. All differences that the same test would not reject: d -/+ q se(d), with q the 95th
percentile of |t*|. So 0 is outside it if and only if p, before any correction, is below 0.05.

References:
    Noreen, Computer-Intensive Methods for Testing Hypotheses (1989), on approximate
    randomization; Chung and Romano, "Exact and Asymptotically Robust Permutation Tests", Annals of
    Statistics 41, 2013, on studentising; Phipson and Smyth, "Permutation P-values Should Never Be
    Zero", 2010.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.core.counts import Counts
from cradle_lib.scoring.core.scores import split
from cradle_lib.statistics.bootstrap import CONFIDENCE, bounds
from cradle_lib.statistics.rates import Floats, f1, ratio
from cradle_lib.statistics.weighted_sums import draw_blocks, swap_blocks

PERMUTATIONS: Final = 10_000
# Equal tallies must count as equal, however their sums were rounded.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class PairedResult:
    """What is found about every pair of S systems. L is the number of labels at the level.

    The statistics along the last axis are micro F1, macro F1, then the F1 of each label. Shape
    (P, 2 + L) but for the first and the last two.

    Attributes:
        pairs: Positions of the two systems of each pair. Shape (P, 2).
        difference: The second system's F1 minus the first one's.
        low: Lower bounds of their 95 % intervals, at least -1; NaN where the standard error is 0.
        high: Upper bounds, at most 1.
        error: Standard error of the difference; 0 where all dialogues are alike.
        p: p-values.
        discordant: Dialogues on which the two have other counts: of any label, of any, then of
            each label.
        own_low: Lower bounds of each system's own scores; NaN without draws, or with a single
            dialogue, of which every draw is the same. Shape (S, 2 + L).
        own_high: Upper bounds. Shape (S, 2 + L).
    """

    pairs: NDArray[np.int64]
    difference: Floats
    low: Floats
    high: Floats
    error: Floats
    p: Floats
    discordant: NDArray[np.int64]
    own_low: Floats
    own_high: Floats


def compare_pairs(
    systems: Sequence[Counts],
    *,
    draws: int,
    permutations: int,
    seed: int = 0,
    zero_division: float = 0.0,
    by_label: int | None = None,
) -> PairedResult:
    """Compares every two of the systems, over the same dialogues and at one level.

    ``draws`` are behind the intervals of the systems' own scores, ``permutations``, at least 1,
    behind p-values and intervals of differences. So many pairs as ``by_label`` says, from the first
    one on, are tested label by label too (``None`` for all); the others have NaN there, and take
    half of the time. Systems that differ in level or number of dialogues are refused, and fewer
    than two.
    """
    if len(systems) < 2 or len({(c.level, len(c)) for c in systems}) != 1 or not len(systems[0]):
        found = ", ".join(f"{c.level} level over {len(c)} dialogues" for c in systems) or "none"
        raise ScoringError(
            f"systems to compare: {found}. There must be two or more, at one level and over "
            "the same dialogues."
        )
    chosen = list(combinations(range(len(systems)), 2))
    rows = np.stack([_f1_rows(counts) for counts in systems], axis=1)
    point = f1_scores(rows.sum(axis=0), zero_division)
    difference = np.array([point[b] - point[a] for a, b in chosen])
    low, high, error, p = (np.full(difference.shape, np.nan) for _ in range(4))
    discordant = np.zeros(difference.shape, dtype=np.int64)
    own_low, own_high = (np.full(point.shape, np.nan) for _ in range(2))
    if draws and len(systems[0]) > 1:
        drawn = np.concatenate(
            [f1_scores(totals, zero_division) for totals in draw_blocks(rows, draws, seed)]
        )
        own_low, own_high = bounds(drawn)
    for place, (a, b) in enumerate(chosen):
        differs = (rows[:, a] != rows[:, b]).any(axis=1)
        discordant[place, :2] = differs.any(axis=1).sum()
        discordant[place, 2:] = differs.sum(axis=0)
        pair = rows[:, [a, b]]
        each = by_label is None or place < by_label
        here = (place, slice(None if each else 2))
        _, error[here] = _studentised(pair, [np.zeros((len(rows), 1))], zero_division, each)
        swaps = swap_blocks(len(rows), permutations, seed)
        moved, _ = _studentised(pair, swaps, zero_division, each)
        seen = _quotient(difference[here], error[here])
        hits = np.count_nonzero(moved >= np.abs(seen) - _ROUNDING, axis=0)
        p[here] = _p_values(hits, permutations, seen, discordant[here])
        # So many swaps must reach a difference that p is 0.05: none, if there are few swaps.
        enough = math.ceil(round((1 - CONFIDENCE) * (1 + permutations), 6)) - 1
        reach = np.full(len(seen), np.inf)
        if enough:
            reach = -np.sort(-moved, axis=0)[enough - 1] + 2 * _ROUNDING
        alike = error[here] <= _ROUNDING
        reach = np.where(alike, np.nan, reach) * np.where(alike, 1.0, error[here])
        low[here] = np.maximum(difference[here] - reach, -1)
        high[here] = np.minimum(difference[here] + reach, 1)
    return PairedResult(
        np.array(chosen), difference, low, high, error, p, discordant, own_low, own_high
    )


def _studentised(
    pair: Floats, blocks: Iterable[NDArray[Any]], zero_division: float, each: bool
) -> tuple[Floats, Floats]:
    """Swaps dialogues and measures the difference in its own standard error.

    Dialogues with the same counts move a score by the same amount, so that they are counted and
    not looked at one by one. ``pair`` holds true positives, and gold labels plus tags, shape
    (N, 2 systems, 2, L); ``blocks`` zeros and ones, a column for each swap, shape (N, R) each.
    ``each`` says whether the F1 of each label is measured too.

    Gives the absolute value of the studentised difference after each swap, shape (all R, 2 + L) or
    (all R, 2); and its standard error after the last one, shape (2 + L,) or (2,).
    """
    n, labels = len(pair), pair.shape[-1]
    # As bytes, rows are told apart ten times as fast as number by number.
    keys = pair.reshape(n, -1).view(f"V{pair[0].nbytes}").ravel()
    _, first, which = np.unique(keys, return_index=True, return_inverse=True)
    kinds = pair[first]
    same = csr_array((np.ones(n), (which, np.arange(n))))
    size = same.sum(axis=1)[:, None]
    change = (kinds[:, 0] - kinds[:, 1]).reshape(len(kinds), -1)
    total = pair.sum(axis=0)[..., None]
    # What a kind adds to a score as it is, and with the two systems' counts exchanged.
    orders = np.stack([kinds, kinds[:, ::-1]])
    one_by_one = csr_array(orders.transpose(0, 1, 4, 2, 3).reshape(2 * len(kinds), -1) / labels)
    # Of all labels together, then of each one: the kinds that have any.
    columns = []
    for counts in [orders.sum(axis=-1), *(np.moveaxis(orders, -1, 0) if each else ())]:
        busy = np.flatnonzero(counts[0].any(axis=(1, 2)))
        columns.append((busy, counts[:, busy].reshape(-1, 4)))
    found = []
    for swaps in blocks:
        moved = same @ swaps.astype(np.float64)
        times = np.stack([size - moved, moved])
        given = (change.T @ moved).reshape(2, labels, -1)
        sides = np.stack([total[0] - given, total[1] + given])
        scores = f1_scores(np.moveaxis(sides, -1, 1), zero_division)
        # A dialogue with t and s moves F = 2 T / S by (2 t - F s) / S; the first system's counts
        # against it.
        sizes = np.concatenate([sides[:, 1].sum(axis=1)[:, None], sides[:, 1]], axis=1)
        weight = ratio(np.array([-1.0, 1.0])[:, None, None], sizes, 0.0)
        own = np.delete(np.moveaxis(scores, -1, 1), 1, axis=1)
        # A row of four for each column: shape (1 + L, 4, R).
        by = np.stack([2 * weight, -weight * own], axis=1).transpose(2, 0, 1, 3)
        by = by.reshape(1 + labels, 4, -1)
        moves: list[tuple[Any, Floats]] = [
            (busy, counts @ by[column]) for column, (busy, counts) in enumerate(columns)
        ]
        together: Any = one_by_one @ by[1:].reshape(4 * labels, -1)
        moves.insert(1, (slice(None), together))
        squares = []
        for busy, move in moves:
            part = times[:, busy]
            squares.append((move.reshape(part.shape) ** 2 * part).sum(axis=(0, 1)))
        error = np.sqrt(squares).T
        difference = scores[1, :, : error.shape[1]] - scores[0, :, : error.shape[1]]
        found.append(np.abs(_quotient(difference, error)))
    return np.concatenate(found), error[-1]


def _p_values(
    hits: NDArray[Any], permutations: int, seen: Floats, discordant: NDArray[np.int64]
) -> Floats:
    """Turns counts of swaps that make a difference at least as large as the one seen into p-values.

    (1 + hits) / (1 + permutations); where no swap comes near, the tail of Student's distribution if
    that is smaller.
    """
    # Takes a second to import, which no command should wait for that has no use for it.
    from scipy.stats import t as student

    shares = (1 + hits) / (1 + permutations)
    tails = 2 * student.sf(np.abs(seen), np.maximum(discordant - 1, 1))
    # A difference without any spread says nothing about how rare it is.
    beyond = (hits == 0) & (discordant > 1) & np.isfinite(seen)
    return np.where(beyond, np.minimum(shares, tails), shares)


def _quotient(difference: Floats, error: Floats) -> Floats:
    """Divides; a difference without any spread is infinitely many standard errors wide."""
    still = np.where(np.abs(difference) > _ROUNDING, np.copysign(np.inf, difference), 0.0)
    return np.where(error > _ROUNDING, ratio(difference, error), still)


def f1_scores(totals: Floats, zero_division: float = 0.0) -> Floats:
    """Computes micro F1, macro F1 and the F1 of each label. Shape (..., 2 + L).

    Of true positives, and gold labels plus tags, of each label. Shape (..., 2, L).
    """
    tp, sizes = np.moveaxis(totals, (-2, -1), (0, 1))
    labels = f1(tp, sizes, zero_division)
    micro = f1(tp.sum(axis=0), sizes.sum(axis=0), zero_division)
    return np.moveaxis(np.concatenate([[micro], [labels.mean(axis=0)], labels]), 0, -1)


def _f1_rows(counts: Counts) -> Floats:
    tp, fp, fn = np.moveaxis(split(counts.rows, counts.level)[0], -1, 0)
    return np.stack([tp, 2 * tp + fp + fn], axis=1)
