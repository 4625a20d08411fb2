from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import bootstrap, permutation_test
from scipy.stats import t as student

from cradle_lib.scoring.conventions import Level
from cradle_lib.scoring.counts import Counts
from cradle_lib.scoring.paired_tests import PairedTest, paired_tests
from cradle_lib.scoring.scores import scores

from .made_runs import counted, systems


@pytest.mark.parametrize("level", ["turn", "dialogue", "confirm"])
@pytest.mark.parametrize("zero", [0.0, 1.0])
def test_differences_equal_those_of_the_scores(level: Level, zero: float) -> None:
    first, second = systems(2, 25, 0, level)
    found = paired_tests(first, second, permutations=1, zero_division=zero)
    one, other = (scores(c.total, level=level, zero_division=zero) for c in (first, second))
    expected = [other.micro_f1 - one.micro_f1, other.macro_f1 - one.macro_f1, *(other.f1 - one.f1)]
    assert column(found, "difference") == pytest.approx(expected, abs=1e-12)


def column(tests: list[PairedTest], name: str) -> NDArray[np.float64]:
    """Returns one attribute of every test: micro F1, macro F1, then each label."""
    return np.array([getattr(test, name) for test in tests])


def studentised(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Computes |d| / SE(d) of micro F1, macro F1 and each label, from tallies of shape (N, 16, 3).

    The standard error uses the influence of each dialogue, the first-order jackknife.
    """
    columns = []
    for x in (a, b):
        t, s = x[..., 0], 2 * x[..., 0] + x[..., 1] + x[..., 2]
        groups = [(t.sum(1), s.sum(1)), *zip(t.T, s.T, strict=True)]
        scores = [2 * u.sum() / v.sum() if v.sum() else 0.0 for u, v in groups]
        moves = [
            (2 * u - f * v) / v.sum() if v.sum() else 0 * u
            for (u, v), f in zip(groups, scores, strict=True)
        ]
        macro = np.mean(scores[1:]), np.mean(moves[1:], axis=0)
        columns.append(
            ([scores[0], macro[0], *scores[1:]], np.array([moves[0], macro[1], *moves[1:]]))
        )
    d = np.subtract(columns[1][0], columns[0][0])
    error = np.sqrt(((columns[1][1] - columns[0][1]) ** 2).sum(axis=1))
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.abs(d) / error
    return np.where(error > 1e-9, found, np.where(np.abs(d) > 1e-9, np.inf, 0.0))


@pytest.mark.parametrize("dialogues", [3, 9])
@pytest.mark.parametrize("place", [0, 1, 4])
def test_p_equals_scipys_exact_permutation_test_on_few_dialogues(
    dialogues: int, place: int
) -> None:
    first, second = systems(2, dialogues, 5)
    pool = np.concatenate([c.tallies for c in (first, second)]).astype(float)

    def statistic(a: NDArray[np.int64], b: NDArray[np.int64]) -> float:
        # scipy permutes row numbers: those of the first system's rows, then the second's.
        t = studentised(pool[a.astype(int)], pool[b.astype(int)])[place]
        return min(round(float(t), 9), 1e9)

    exact = permutation_test(
        (np.arange(dialogues), np.arange(dialogues, 2 * dialogues)),
        statistic,
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
    )
    for number, seed in ((10, 0), (10_000, 1)):
        found = paired_tests(first, second, permutations=number, seed=seed)[place]
        assert found.p == pytest.approx(exact.pvalue, abs=1e-12)
        # Two of 2^d swaps, opposite ones, always reach the difference.
        assert found.p >= 2.0 ** (1 - max(found.discordant, 1))


def test_p_values_equal_those_of_a_plain_loop() -> None:
    first, second = systems(2, 60, 2)
    found = paired_tests(first, second, permutations=50, seed=4)
    swaps = np.random.default_rng(4).integers(0, 2, size=(50, 60), dtype=np.uint8)
    one, other = (c.tallies.astype(float) for c in (first, second))
    observed = studentised(one, other)
    hits = np.zeros(18)
    for swap in swaps.astype(bool)[:, :, None, None]:
        moved = studentised(np.where(swap, other, one), np.where(swap, one, other))
        hits += moved >= observed - 1e-9
    # If no swap reaches the difference, p is the smaller tail probability of Student's t; if few
    # dialogues differ, p is exact.
    random = (column(found, "discordant") > 14) & (hits > 0)
    assert random[:2].all()
    assert column(found, "p")[random] == pytest.approx((1 + hits[random]) / 51)


@pytest.mark.parametrize(("permutations", "p"), [(19, 1 / 20), (99, 2 / 2**15)])
def test_no_p_value_is_below_the_smallest_possible_one(permutations: int, p: float) -> None:
    gold = np.full(15, 0xFFFF)
    # The second system finds one or two labels more in each dialogue, so that t is large.
    more = np.where(np.arange(15) % 2, 0x1FFF, 0x3FFF)
    first, second = (counted(gold, tags, range(15), 15) for tags in (0 * gold + 0x0FFF, more))
    micro = paired_tests(first, second, permutations=permutations)[0]
    assert micro.p == p
    assert (micro.low > 0) is (p < 0.05)


def test_the_standard_error_equals_that_of_scipys_bootstrap() -> None:
    first, second = systems(2, 80, 3)

    def difference(index: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        one, other = (scores(c.rows[index].sum(axis=-3)).micro_f1 for c in (first, second))
        return other - one

    theirs = bootstrap(
        (np.arange(80),),
        difference,
        n_resamples=9999,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(5),
    )
    found = paired_tests(first, second, permutations=4000)
    assert found[0].error == pytest.approx(theirs.standard_error, rel=0.05)
    # With 80 dialogues the studentised difference is nearly normal, and so is the bootstrap's.
    assert found[0].low == pytest.approx(theirs.confidence_interval.low, abs=0.012)
    assert found[0].high == pytest.approx(theirs.confidence_interval.high, abs=0.012)


def test_the_interval_excludes_zero_exactly_if_p_is_below_five_percent() -> None:
    pairs = [systems(2, size, seed) for seed in range(6) for size in (12, 40)]
    seen = set()
    for one, other in pairs:
        found = paired_tests(one, other, permutations=199, seed=1)
        low, high, p = (column(found, name) for name in ("low", "high", "p"))
        defined = ~np.isnan(low)
        outside = (low > 0) | (high < 0)
        assert np.array_equal(outside[defined], p[defined] < 0.05)
        seen |= set(outside[defined].tolist())
    assert seen == {True, False}


def test_a_clear_difference_has_the_tail_probability_of_student() -> None:
    [weak] = systems(1, 100, 0)
    perfect = Counts("turn", weak.rows.copy())
    perfect.tallies[..., 0] += perfect.tallies[..., 2]
    perfect.tallies[..., 1:] = 0
    found = paired_tests(weak, perfect, permutations=999)
    # No swap reaches the difference: p is the tail of Student's t, below 1 / (1 + permutations).
    t = found[0].difference / found[0].error
    assert found[0].p == pytest.approx(2 * student.sf(t, found[0].discordant - 1))
    assert found[0].p < 1 / 1000
    assert found[0].low > 0
