"""Paired tests and intervals of the difference between two systems over the same dialogues.

Test. If two systems were equally good, it would not matter which of them made the predictions of a
dialogue. So whole dialogues are swapped between them, each with probability one half, many times
over. p is the share of swaps with a difference at least as large as the observed one, which is
included: p = (1 + #{|t*| >= |t|}) / (1 + R). Single turns are never swapped, because the turns of a
dialogue depend on each other.

The compared statistic is the studentised difference t = d / se(d). Two systems with equal F1 need
not be alike: one may predict ten times as many labels, and then swapped dialogues vary in another
way than the real ones. Measured in its own standard error, the difference has nearly the same
distribution in both cases. The standard error is that of a ratio of sums over dialogues: with
F = 2 T / S, a dialogue with t true positives and s gold labels and predictions moves F by
(2 t - F s) / S.

Swaps cannot show a p-value below 1 / (1 + R). Where no swap reaches the difference, p is the tail
of Student's distribution with one degree of freedom less than there are discordant dialogues, if
that is smaller: it is the limit of the studentised difference.

Interval. All differences that the same test would not reject: d -/+ q se(d), with q the 95th
percentile of |t*|. So 0 is outside it if and only if p, before any correction, is below 0.05.

Limit. Where one system predicts ten times as much as the other and a label has 25 to 78 gold
occurrences, the actual level of the test is 7 to 11 % instead of 5 %.

References:
    Noreen, Computer-Intensive Methods for Testing Hypotheses (1989), on approximate
    randomization; Chung and Romano, "Exact and Asymptotically Robust Permutation Tests", Annals of
    Statistics 41, 2013, on studentising; Phipson and Smyth, "Permutation P-values Should Never Be
    Zero", 2010.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np

from cradle_lib.scoring.counts import Counts
from cradle_lib.scoring.scores import tallies_at
from cradle_lib.statistics.bootstrap import CONFIDENCE
from cradle_lib.statistics.rates import Floats, f1, ratio
from cradle_lib.statistics.weighted_sums import swap_blocks

PERMUTATIONS: Final = 10_000
# Equal tallies must count as equal, however their sums were rounded.
_ROUNDING: Final = 1e-9


@dataclass(frozen=True, slots=True)
class PairedTest:
    """The difference between two systems in one F1.

    Attributes:
        difference: The second system's F1 minus the first one's.
        low: Lower bound of its 95 % interval, at least -1; NaN where the standard error is 0.
        high: Upper bound, at most 1.
        error: Standard error of the difference; 0 where all dialogues are alike.
        p: p-value before any correction.
        discordant: Dialogues on which the two have other counts.
    """

    difference: float
    low: float
    high: float
    error: float
    p: float
    discordant: int


def paired_tests(
    first: Counts,
    second: Counts,
    *,
    permutations: int,
    seed: int = 0,
    zero_division: float = 0.0,
    by_label: bool = True,
) -> list[PairedTest]:
    """Tests the difference of two systems in micro F1, in macro F1, and in the F1 of each label.

    ``permutations``, at least 1, is the number of swaps. Without ``by_label`` only micro and macro
    F1 are tested. Both systems must be scored at one level over the same dialogues.
    """
    # True positives, and gold labels plus predictions. Shape (N, 2 systems, 2, L).
    pair = np.stack([_f1_counts(counts) for counts in (first, second)], axis=1)
    tested = [(pair.sum(axis=-1, keepdims=True), pair), (pair, pair)]
    if by_label:
        tested += [(pair[..., [label]],) * 2 for label in range(pair.shape[-1])]
    return [
        _test(counted, differing, permutations, seed, zero_division)
        for counted, differing in tested
    ]


def _test(
    pair: Floats, differing: Floats, permutations: int, seed: int, zero_division: float
) -> PairedTest:
    """Tests the mean F1 of some columns of counts."""
    # Takes a second to import, which a command without a test should not wait for.
    from scipy.stats import t as student

    n = len(pair)
    # Dialogues with the same counts move a score alike: they are counted, not looked at singly.
    kinds, kind_of, members = np.unique(pair, axis=0, return_inverse=True, return_counts=True)
    sizes = members[:, None].astype(np.float64)
    [difference], [error] = _studentised(kinds, sizes, np.zeros_like(sizes), zero_division)
    by_kind = np.argsort(kind_of.ravel(), kind="stable")
    starts = np.searchsorted(kind_of.ravel()[by_kind], np.arange(len(kinds)))
    found = []
    for swaps in swap_blocks(n, permutations, seed):
        swapped = np.add.reduceat(swaps.T[by_kind], starts, axis=0)
        t = _quotient(*_studentised(kinds, sizes - swapped, swapped, zero_division))
        found.append(np.abs(t))
    moved = np.concatenate(found)
    observed = abs(float(_quotient(difference, error)))
    hits = int(np.count_nonzero(moved >= observed - _ROUNDING))
    discordant = int((differing[:, 0] != differing[:, 1]).any(axis=(1, 2)).sum())
    p = (1 + hits) / (1 + permutations)
    # A difference without any spread says nothing about how rare it is.
    if hits == 0 and discordant > 1 and np.isfinite(observed):
        p = min(p, float(2 * student.sf(observed, discordant - 1)))
    # This many swaps must reach a difference for p to be 0.05; with few swaps, none can.
    enough = math.ceil(round((1 - CONFIDENCE) * (1 + permutations), 6)) - 1
    reach = math.inf
    if error <= _ROUNDING:
        reach = math.nan
    elif enough:
        reach = float(error * (-np.sort(-moved)[enough - 1] + 2 * _ROUNDING))
    low, high = np.maximum(difference - reach, -1), np.minimum(difference + reach, 1)
    return PairedTest(float(difference), float(low), float(high), float(error), p, discordant)


def _studentised(
    kinds: Floats, kept: Floats, swapped: Floats, zero_division: float
) -> tuple[Floats, Floats]:
    """Gives the difference in mean F1 with its standard error after each swap, shape (R,).

    ``kinds`` has true positives, and gold labels plus predictions, shape (K, 2 systems, 2, L);
    ``kept`` and ``swapped`` say how many dialogues of each kind are kept and swapped, shape (K, R).
    """
    labels = kinds.shape[-1]
    flat, exchanged = (part.reshape(len(kinds), -1) for part in (kinds, kinds[:, ::-1]))
    sides = (kept.T @ flat + swapped.T @ exchanged).reshape(-1, 2, 2, labels)
    scores = f1(sides[:, :, 0], sides[:, :, 1], zero_division)
    means = scores.mean(axis=-1)
    # The second system's counts move the difference up, the first system's down.
    weight = ratio(np.array([[-1.0], [1.0]]) / labels, sides[:, :, 1], 0.0)
    coefficients = np.stack([2 * weight, -weight * scores], axis=2).reshape(len(sides), -1).T
    squares = kept * (flat @ coefficients) ** 2 + swapped * (exchanged @ coefficients) ** 2
    return means[:, 1] - means[:, 0], np.sqrt(squares.sum(axis=0))


def _quotient(difference: Floats, error: Floats) -> Floats:
    """Divides; a difference without any spread is infinitely many standard errors wide."""
    still = np.where(np.abs(difference) > _ROUNDING, np.copysign(np.inf, difference), 0.0)
    return np.where(error > _ROUNDING, ratio(difference, error), still)


def _f1_counts(counts: Counts) -> Floats:
    tp, fp, fn = np.moveaxis(tallies_at(counts.rows, counts.level), -1, 0)
    return np.stack([tp, 2 * tp + fp + fn], axis=1)
