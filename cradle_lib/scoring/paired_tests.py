"""Paired tests and intervals of the difference between two systems over the same dialogues.

Test. If two systems were equally good, it would not matter which of them made the predictions of a
dialogue. So whole dialogues are swapped between them, each with probability one half, R times. p is
the share of swaps with a difference at least as large as the observed one, which counts as one of
them: p = (1 + #{|t*| >= |t|}) / (1 + R). Single turns are never swapped, because the turns of a
dialogue depend on each other.

Few discordant dialogues. Swapping a dialogue on which both systems have the same counts changes
nothing. The other d dialogues can be swapped in 2^d ways, of which each two opposite ones have the
same |t*|. For d up to 14 all of them are used instead of random ones: R = 2^(d - 1) - 1, and p is
exact. It is at least 2 / 2^d, so no difference is significant on five dialogues or fewer.

The test statistic is the studentised difference t = d / se(d). Systems with equal F1 can still
differ: if one predicts ten times as many labels, the variance of the difference changes by
swapping. Divided by its own standard error, the difference has nearly the same distribution before
and after. The standard error is that of a ratio of sums over dialogues: with F = 2 T / S, a
dialogue with t true positives and s gold labels and predictions moves F by (2 t - F s) / S.

Random swaps can't give a p-value below 1 / (1 + R). If none reaches the observed difference, p is
the two-sided tail of Student's t distribution if that is smaller, because t approaches this
distribution; its degrees of freedom are d - 1. No p is below 2 / 2^d. Fewer than 20 random swaps
are too few for significance or an interval, and then the tail is not used.

Interval. All differences that the same test would not reject: d -/+ q se(d), with q the 95th
percentile of |t*|. So 0 is outside it if and only if p, before any correction, is below 0.05.

Limitation. Where one system predicts ten times as much as the other and a label has 25 to 78 gold
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
from cradle_lib.statistics.weighted_sums import all_swaps, swap_blocks

PERMUTATIONS: Final = 10_000
# Up to this number of discordant dialogues all swaps are made: at most 2^13 different ones, which
# is less work than the default number of random ones.
_ALL_SWAPS: Final = 14
# Tolerance for rounding, so that equal tallies count as equal.
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
        discordant: Number of dialogues on which the two have different counts in this F1.
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

    ``permutations``, at least 1, is the number of random swaps; with at most 14 discordant
    dialogues all swaps are made instead. Without ``by_label`` only micro and macro F1 are tested.
    Both systems must be scored at one level over the same dialogues.
    """
    # True positives, and gold labels plus predictions. Shape (N, 2 systems, 2, L).
    pair = np.stack([_f1_counts(counts) for counts in (first, second)], axis=1)
    tested = [pair.sum(axis=-1, keepdims=True), pair]
    if by_label:
        tested += [pair[..., [label]] for label in range(pair.shape[-1])]
    return [_test(counted, permutations, seed, zero_division) for counted in tested]


def _test(pair: Floats, permutations: int, seed: int, zero_division: float) -> PairedTest:
    """Tests the mean F1 of the labels in ``pair``; shape as in :func:`paired_tests`."""
    # Imported here because it takes a second, and most commands run no test.
    from scipy.sparse import csr_array
    from scipy.stats import t as student

    n = len(pair)
    # Dialogues with equal counts have the same effect, so each kind is processed only once.
    kinds, kind_of, members = np.unique(pair, axis=0, return_inverse=True, return_counts=True)
    sizes = members[:, None].astype(np.float64)
    [difference], [error] = _studentised(kinds, sizes, np.zeros_like(sizes), zero_division)
    # One row for each kind, one column for each dialogue.
    is_of_kind = csr_array((np.ones(n), (kind_of.ravel(), np.arange(n))))
    differs = (pair[:, 0] != pair[:, 1]).any(axis=(1, 2))
    discordant = int(differs.sum())
    exact = discordant <= _ALL_SWAPS
    found = []
    for swaps in all_swaps(differs) if exact else swap_blocks(n, permutations, seed):
        swapped = np.asarray(is_of_kind @ swaps.T)
        t = _quotient(*_studentised(kinds, sizes - swapped, swapped, zero_division))
        found.append(np.abs(t))
    # The first of all swaps exchanges nothing.
    permuted = np.concatenate(found)[int(exact) :]
    observed = abs(float(_quotient(difference, error)))
    hits = int(np.count_nonzero(permuted >= observed - _ROUNDING))
    p = (1 + hits) / (1 + len(permuted))
    # Smallest number of hits at which p is 0.05 or more; 0 if there are too few permutations.
    enough = math.ceil(round((1 - CONFIDENCE) * (1 + len(permuted)), 6)) - 1
    if hits == 0 and not exact:
        # With a standard error of 0, t is infinite and has no tail.
        if enough and np.isfinite(observed):
            p = min(p, float(2 * student.sf(observed, discordant - 1)))
        p = max(p, 2.0 ** (1 - discordant))
    reach = math.inf
    if error <= _ROUNDING:
        reach = math.nan
    elif enough:
        reach = float(error * (-np.sort(-permuted)[enough - 1] + 2 * _ROUNDING))
    low, high = np.maximum(difference - reach, -1), np.minimum(difference + reach, 1)
    return PairedTest(float(difference), float(low), float(high), float(error), p, discordant)


def _studentised(
    kinds: Floats, kept: Floats, swapped: Floats, zero_division: float
) -> tuple[Floats, Floats]:
    """Computes the difference in mean F1 and its standard error after each swap. Shape (R,) each.

    ``kinds`` has true positives, and gold labels plus predictions, shape (K, 2 systems, 2, L);
    ``kept`` and ``swapped`` say how many dialogues of each kind are kept and swapped, shape (K, R).
    """
    labels = kinds.shape[-1]
    flat, exchanged = (part.reshape(len(kinds), -1) for part in (kinds, kinds[:, ::-1]))
    sides = (kept.T @ flat + swapped.T @ exchanged).reshape(-1, 2, 2, labels)
    scores = f1(sides[:, :, 0], sides[:, :, 1], zero_division)
    means = scores.mean(axis=-1)
    # A dialogue moves F by (2 t - F s) / S (see the module): that of the second system moves the
    # difference up, that of the first down.
    weight = ratio(np.array([[-1.0], [1.0]]) / labels, sides[:, :, 1], 0.0)
    coefficients = np.stack([2 * weight, -weight * scores], axis=2).reshape(len(sides), -1).T
    squares = kept * (flat @ coefficients) ** 2 + swapped * (exchanged @ coefficients) ** 2
    return means[:, 1] - means[:, 0], np.sqrt(squares.sum(axis=0))


def _quotient(difference: Floats, error: Floats) -> Floats:
    """Divides a difference by its standard error; x/0 is infinite, and 0/0 is 0."""
    degenerate = np.where(np.abs(difference) > _ROUNDING, np.copysign(np.inf, difference), 0.0)
    return np.where(error > _ROUNDING, ratio(difference, error), degenerate)


def _f1_counts(counts: Counts) -> Floats:
    tp, fp, fn = np.moveaxis(tallies_at(counts.rows, counts.level), -1, 0)
    return np.stack([tp, 2 * tp + fp + fn], axis=1)
