from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import bootstrap
from sklearn.metrics import accuracy_score, f1_score, jaccard_score

from cradle_lib.errors import ScoringError
from cradle_lib.scoring import intervals
from cradle_lib.scoring.counts import Masks, count
from cradle_lib.scoring.intervals import interval, resample, weights
from cradle_lib.scoring.scores import scores


def sample(dialogues: int = 40, seed: int = 1) -> tuple[Masks, Masks, NDArray[np.int64]]:
    generator = np.random.default_rng(seed)
    dialogue_of = np.repeat(np.arange(dialogues), generator.integers(3, 9, size=dialogues))
    turns = len(dialogue_of)
    one = (1 << generator.integers(0, 16, size=turns)).astype(np.uint16)
    gold = np.where(generator.random(turns) < 0.3, one, 0).astype(np.uint16)
    predicted = np.where(generator.random(turns) < 0.6, gold, 0).astype(np.uint16)
    predicted |= np.where(generator.random(turns) < 0.1, one, 0).astype(np.uint16)
    return gold, predicted, dialogue_of


def spread(masks: Masks) -> NDArray[np.int64]:
    return (masks[:, None] >> np.arange(16)) & 1


def test_a_draw_scores_like_scikit_learn_on_the_dialogues_that_were_drawn() -> None:
    gold, predicted, dialogue_of = sample()
    drawn = scores(resample(count(gold, predicted, dialogue_of, 40), draws=25, seed=7))
    block = next(weights(40, 25, np.random.default_rng(7)))
    for draw, taken in enumerate(block.astype(int)):
        rows = np.concatenate(
            [np.flatnonzero(dialogue_of == d) for d in np.repeat(np.arange(40), taken)]
        )
        truth, guess = spread(gold[rows]), spread(predicted[rows])
        for name, value in (
            ("exact_match", accuracy_score(truth, guess)),
            ("jaccard", jaccard_score(truth, guess, average="samples", zero_division=1.0)),
            ("micro_f1", f1_score(truth, guess, average="micro")),
            ("macro_f1", f1_score(truth, guess, average="macro", zero_division=0.0)),
        ):
            assert getattr(drawn, name)[draw] == pytest.approx(value, abs=1e-12)


def test_bounds_agree_with_scipys_percentile_bootstrap() -> None:
    gold, predicted, dialogue_of = sample(dialogues=80)
    counts = count(gold, predicted, dialogue_of, 80)

    def micro_f1(index: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        return scores(counts.rows[index].sum(axis=-2)).micro_f1

    theirs = bootstrap(
        (np.arange(80),),
        micro_f1,
        n_resamples=9999,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(5),
    ).confidence_interval
    low, high = interval(counts, draws=10_000, seed=0)
    # Ends of two independent bootstraps: their own noise is about 0.001 here.
    assert float(low.micro_f1) == pytest.approx(theirs.low, abs=0.005)
    assert float(high.micro_f1) == pytest.approx(theirs.high, abs=0.005)


def test_every_bound_brackets_its_score() -> None:
    gold, predicted, dialogue_of = sample()
    counts = count(gold, predicted, dialogue_of, 40)
    low, high = interval(counts, draws=2000)
    point = scores(counts.total)
    for name in ("exact_match", "jaccard", "micro_precision", "micro_recall", "micro_f1"):
        assert getattr(low, name) < getattr(point, name) < getattr(high, name)
    assert low.f1.shape == high.f1.shape == (16,)
    assert (low.f1 <= high.f1).all()


def test_the_same_seed_gives_the_same_bounds_and_another_seed_others() -> None:
    counts = count(*sample(), 40)
    first, again, other = (interval(counts, draws=200, seed=s)[0].micro_f1 for s in (3, 3, 4))
    assert first == again != other


def test_draws_depend_neither_on_their_number_nor_on_the_block_size(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    counts = count(*sample(), 40)
    long = resample(counts, draws=1000, seed=2)
    assert np.array_equal(resample(counts, draws=100, seed=2), long[:100])
    monkeypatch.setattr(intervals, "_KEPT", 0)
    for block in (1, 41, 333):
        monkeypatch.setattr(intervals, "_BLOCK", block)
        assert resample(counts, draws=1000, seed=2) == pytest.approx(long, abs=1e-9)


def test_kept_draws_are_those_that_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    counts = count(*sample(), 40)
    monkeypatch.setattr(intervals, "_BLOCK", 333)
    kept = resample(counts, draws=100, seed=71)
    monkeypatch.setattr(intervals, "_KEPT", 0)
    assert resample(counts, draws=100, seed=71) == pytest.approx(kept, abs=1e-9)


def test_a_draw_takes_as_many_dialogues_as_there_are_each_equally_often() -> None:
    taken = np.concatenate(list(weights(30, 4000, np.random.default_rng(0))))
    assert (taken.sum(axis=1) == 30).all()
    # Counts are binomial(30, 1/30): mean 1, variance 29/30.
    assert taken.mean(axis=0) == pytest.approx(np.ones(30), abs=0.08)
    assert taken.var() == pytest.approx(29 / 30, abs=0.02)


def test_one_dialogue_gives_no_width() -> None:
    gold, predicted, dialogue_of = sample(dialogues=1, seed=3)
    counts = count(gold, predicted, dialogue_of, 1)
    low, high = interval(counts, draws=50)
    assert low.jaccard == high.jaccard == scores(counts.total).jaccard


@pytest.mark.parametrize(("dialogues", "draws"), [(0, 10), (3, 0)])
def test_nothing_to_draw_is_refused(dialogues: int, draws: int) -> None:
    empty = np.zeros(0, dtype=np.uint16)
    counts = count(empty, empty, np.zeros(0, dtype=np.int64), dialogues)
    with pytest.raises(ScoringError, match="Both must be at least 1"):
        interval(counts, draws=draws)
