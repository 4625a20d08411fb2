from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import bootstrap, permutation_test

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.comparison.paired import compare_pairs, f1_scores
from cradle_lib.scoring.core.conventions import Level
from cradle_lib.scoring.core.counts import Counts, count
from cradle_lib.scoring.core.scores import scores
from cradle_lib.statistics import weighted_sums as resampling
from cradle_lib.statistics.bootstrap import bounds
from cradle_lib.statistics.weighted_sums import draw_blocks


def systems(number: int, dialogues: int, seed: int, level: Level = "turn") -> list[Counts]:
    """Systems of one kind: each finds half of the labels and makes up some of its own."""
    generator = np.random.default_rng(seed)
    owner = np.repeat(np.arange(dialogues), generator.integers(3, 9, size=dialogues))
    size = len(owner)
    bits = (1 << np.arange(16)).astype(np.uint16)
    gold = np.where(generator.random(size) < 0.3, generator.choice(bits, size), 0)
    found = []
    for _ in range(number):
        tags = np.where(generator.random(size) < 0.5, gold, 0)
        tags = tags | np.where(generator.random(size) < 0.1, generator.choice(bits, size), 0)
        pair = gold.astype(np.uint16), tags.astype(np.uint16)
        found.append(count(*pair, owner, dialogues, level=level))
    return found


@pytest.mark.parametrize("level", ["turn", "dialogue", "confirm"])
@pytest.mark.parametrize("zero", [0.0, 1.0])
def test_differences_are_those_of_the_scores(level: Level, zero: float) -> None:
    first, second = systems(2, 25, 0, level)
    found = compare_pairs([first, second], draws=0, permutations=0, zero_division=zero)
    one, other = (scores(c.total, level=level, zero_division=zero) for c in (first, second))
    expected = [other.micro_f1 - one.micro_f1, other.macro_f1 - one.macro_f1, *(other.f1 - one.f1)]
    assert found.difference[0] == pytest.approx(expected, abs=1e-12)
    assert np.isnan(found.p).all()
    assert np.isnan(found.low).all()


def test_p_equals_scipys_exact_permutation_test_on_few_dialogues() -> None:
    first, second = systems(2, 9, 5)
    rows = [c.tallies.sum(axis=1).astype(float) for c in (first, second)]

    def difference(a: NDArray[np.int64], b: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        # scipy permutes row numbers: below 9 the first system's row, from 9 the second's.
        pool = np.concatenate(rows)
        ta, tb = (pool[i.astype(int)].sum(axis=-2) for i in (a, b))
        fa, fb = (2 * t[..., 0] / (2 * t[..., 0] + t[..., 1] + t[..., 2]) for t in (ta, tb))
        return np.asarray(np.abs(fb - fa))

    exact = permutation_test(
        (np.arange(9), np.arange(9, 18)),
        difference,
        permutation_type="samples",
        vectorized=True,
        alternative="greater",
        n_resamples=np.inf,
    )
    found = compare_pairs([first, second], draws=0, permutations=40_000, seed=1)
    # 2^9 swaps are all that there are; ours are a sample of them with an error of about 0.0025.
    assert 0.02 < exact.pvalue < 0.98
    assert found.p[0, 0] == pytest.approx(exact.pvalue, abs=0.01)


def test_every_swap_is_counted_once_by_a_plain_loop() -> None:
    first, second = systems(2, 12, 2)
    found = compare_pairs([first, second], draws=0, permutations=50, seed=4)
    swaps = np.random.default_rng(4).integers(0, 2, size=(50, 12), dtype=np.uint8)
    observed = scores(second.total).macro_f1 - scores(first.total).macro_f1
    hits = 0
    for swap in swaps.astype(bool)[:, :, None]:
        a = np.where(swap, second.rows, first.rows).sum(axis=0)
        b = np.where(swap, first.rows, second.rows).sum(axis=0)
        hits += abs(scores(b).macro_f1 - scores(a).macro_f1) >= abs(observed) - 1e-12
    assert found.p[0, 1] == (1 + hits) / 51


def test_intervals_agree_with_scipys_paired_bootstrap() -> None:
    first, second = systems(2, 80, 3)

    def difference(index: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        one, other = (scores(c.rows[index].sum(axis=-2)).micro_f1 for c in (first, second))
        return other - one

    theirs = bootstrap(
        (np.arange(80),),
        difference,
        n_resamples=9999,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(5),
    )
    found = compare_pairs([first, second], draws=10_000, permutations=0)
    # Ends of two independent bootstraps: their own noise is about 0.001 here.
    assert found.low[0, 0] == pytest.approx(theirs.confidence_interval.low, abs=0.006)
    assert found.high[0, 0] == pytest.approx(theirs.confidence_interval.high, abs=0.006)
    assert found.error[0, 0] == pytest.approx(theirs.standard_error, rel=0.05)


def test_a_system_does_not_differ_from_itself() -> None:
    [system] = systems(1, 30, 0)
    found = compare_pairs([system, system], draws=100, permutations=100)
    assert not found.difference.any()
    assert (found.p == 1).all()
    assert not found.low.any()
    assert not found.error.any()


def test_a_clear_difference_has_the_smallest_p_there_is() -> None:
    [weak] = systems(1, 100, 0)
    tallies = weak.tallies.copy()
    tallies[..., 0] += tallies[..., 2]
    tallies[..., 1:] = 0
    perfect = Counts("turn", tallies, weak.sets)
    found = compare_pairs([weak, perfect], draws=200, permutations=999)
    assert found.p[0, 0] == 1 / 1000
    assert found.low[0, 0] > 0


def test_many_systems_are_compared_as_each_pair_would_be() -> None:
    three = systems(3, 20, 8)
    together = compare_pairs(three, draws=50, permutations=60, seed=2)
    assert together.pairs.tolist() == [[0, 1], [0, 2], [1, 2]]
    for place, (a, b) in enumerate(together.pairs):
        alone = compare_pairs([three[a], three[b]], draws=50, permutations=60, seed=2)
        for name in ("difference", "low", "high", "p"):
            assert np.array_equal(getattr(together, name)[place], getattr(alone, name)[0])


def test_blocks_of_swaps_give_the_same_p(monkeypatch: pytest.MonkeyPatch) -> None:
    two = systems(2, 20, 1)
    whole = compare_pairs(two, draws=0, permutations=70).p
    monkeypatch.setattr(resampling, "_KEPT", 0)
    monkeypatch.setattr(resampling, "_BLOCK", 100)
    assert np.array_equal(compare_pairs(two, draws=0, permutations=70).p, whole)


def test_different_dialogues_or_levels_are_refused() -> None:
    turn, dialogue = systems(1, 9, 0)[0], systems(1, 9, 0, "dialogue")[0]
    for wrong in ([turn], [turn, dialogue], [turn, systems(1, 8, 0)[0]]):
        with pytest.raises(ScoringError, match="over the same dialogues"):
            compare_pairs(wrong, draws=0, permutations=0)


def test_a_label_that_neither_side_knows_scores_what_the_convention_says() -> None:
    assert f1_scores(np.zeros((2, 14)), 1.0).tolist() == [1.0] * 16


def test_the_procedure_is_calibrated_on_equal_systems() -> None:
    """Of 500 pairs 5 % are rejected; 95 % of the intervals cover, of differences and scores.

    By micro and by macro F1, each within two points.
    """
    dialogues, trials = 150, 500
    # One large set of dialogues stands for all there are: what is true there is the truth.
    pool = np.stack([c.tallies for c in systems(2, 4000, 9)], axis=1)
    truth = float(micro_f1(pool.sum(axis=(0, 1, 2)).astype(float)))
    generator = np.random.default_rng(0)
    sets, places = np.zeros((dialogues, 3)), np.arange(dialogues)
    rejected, covered, held = np.zeros(2), np.zeros(2), 0
    for trial in range(trials):
        picked = pool[generator.integers(0, len(pool), size=dialogues)]
        # Equal by construction: a coin decides which of the two gave which tags.
        coin = generator.integers(0, 2, size=dialogues)
        pair = [Counts("turn", picked[places, side], sets) for side in (coin, 1 - coin)]
        found = compare_pairs(pair, draws=400, permutations=400, seed=trial)
        rejected += found.p[0, :2] < 0.05
        covered += (found.low[0, :2] <= 0) & (found.high[0, :2] >= 0)
        [drawn] = draw_blocks(pair[0].tallies.sum(1), 400, trial)
        low, high = bounds(micro_f1(drawn))
        held += low <= truth <= high
    assert (np.abs(rejected / trials - 0.05) <= 0.02).all()
    assert (np.abs(covered / trials - 0.95) <= 0.02).all()
    assert abs(held / trials - 0.95) <= 0.02


def micro_f1(tallies: NDArray[np.float64]) -> NDArray[np.float64]:
    return 2 * tallies[..., 0] / (2 * tallies[..., 0] + tallies[..., 1] + tallies[..., 2])
