from __future__ import annotations

import json
from collections.abc import Callable

import numpy as np
import pytest
from scipy.stats import kendalltau, rankdata
from sklearn.metrics import f1_score

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS
from cradle_lib.scoring.core.conventions import Conventions
from cradle_lib.scoring.core.evaluate import evaluate
from cradle_lib.scoring.core.scores import OVERALL
from cradle_lib.scoring.robustness.sensitivity import VARIANTS, Variant, sensitivity

AO, SHO, DVP = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"], BITS["confirm_DV_past"]


@pytest.fixture(scope="module")
def corpus(make_corpus: Callable[..., Corpus]) -> Corpus:
    """Thirty dialogues with every quirk: an orphan, a repeated label, a rare label."""
    quirky = [("U", AO), ("L", SHO), ("U", AO), ("U", SHO), ("U", 0)]
    return make_corpus([quirky, [("U", DVP), ("U", 0)], *[[("U", AO), ("U", 0)]] * 28])


@pytest.fixture(scope="module")
def runs(corpus: Corpus, make_predictions: Callable[..., Predictions]) -> list[Predictions]:
    generator = np.random.default_rng(3)
    size = len(corpus.gold)
    outcomes = "".join("u" if i % 9 == 8 else "o" for i in range(size))
    read = np.array([o == "o" for o in outcomes])
    found = np.where(generator.random(size) < 0.6, corpus.gold, 0) * read
    loud = (corpus.gold | np.where(generator.random(size) < 0.5, AO, 0)) * read
    return [make_predictions(corpus, m, outcomes) for m in (found, loud, 0 * found)]


def test_every_variant_scores_what_evaluate_scores(runs: list[Predictions]) -> None:
    found = sensitivity(runs, names=["a", "b", "c"])
    for v, variant in enumerate(VARIANTS):
        if variant.first or variant.frequent:
            continue
        for s, run in enumerate(runs):
            scored = evaluate(run, conventions=variant.conventions, draws=0)
            expected = [scored.estimate(name).value for name in OVERALL]
            assert found.values[v, s] == pytest.approx(expected, nan_ok=True)
    assert str(found.signature) == str(evaluate(runs[0], draws=0).signature)
    # Each convention matters somewhere, or it would not be shown.
    assert all((found.values[v] != found.values[0]).any() for v in range(1, len(VARIANTS)))


def test_counting_a_label_once_per_dialogue_ignores_repeats(
    corpus: Corpus, make_predictions: Callable[..., Predictions]
) -> None:
    run = make_predictions(corpus, [AO, AO, SHO, SHO, DVP, 0, *[0, AO] * 28])
    found = sensitivity([run], variants=[Variant("all"), Variant("once", first=True)])
    once = dict(zip(OVERALL, found.values[1, 0], strict=True))
    # Without repeats the first two dialogues are right: 3 of 31 gold labels are found, and 28
    # alerts come on the wrong turn. With the repeats there is one alert more on both sides.
    assert once["micro_recall"] == pytest.approx(3 / 31)
    assert once["micro_precision"] == pytest.approx(3 / 31)
    plain = dict(zip(OVERALL, found.values[0, 0], strict=True))
    assert plain["micro_recall"] == pytest.approx(4 / 32)
    assert plain["micro_precision"] == pytest.approx(4 / 33)


def test_macro_over_frequent_labels_is_that_of_scikit_learn(
    corpus: Corpus, runs: list[Predictions]
) -> None:
    found = sensitivity(runs, names="abc", variants=[Variant("often", frequent=True)])
    for s, run in enumerate(runs):
        # Only alert_ongoing occurs twenty times.
        truth, guess = ((m & AO) != 0 for m in (corpus.gold, run.masks))
        expected = f1_score(truth, guess, zero_division=0.0)
        assert found.of("macro_f1")[0, s] == pytest.approx(expected)


def test_ranks_flips_and_agreement_follow_from_the_values(runs: list[Predictions]) -> None:
    found = sensitivity(runs, names="abc")
    for score in OVERALL:
        values, ranks = found.of(score), found.ranks(score)
        flips = found.flips(score)
        for v, row in enumerate(values):
            assert ranks[v].tolist() == rankdata(-row).tolist()
            brute = sum(
                (values[0, a] - values[0, b]) * (row[a] - row[b]) < 0
                for a in range(3)
                for b in range(a)
            )
            assert flips[v] == brute
        if len(set(values[0])) == 3:
            assert found.agreement(score)[0] == pytest.approx(1)
    assert np.isnan(sensitivity(runs[:1]).agreement("micro_f1")).all()


def test_the_frame_is_what_evaluate_and_scipy_compute(runs: list[Predictions]) -> None:
    frame = sensitivity(runs, names="abc").to_frame()
    assert len(frame) == len(VARIANTS) * 3 * len(OVERALL)
    assert set(frame[["value", "change", "place", "tau"]].dtypes) == {np.dtype(float)}
    other = VARIANTS[4]
    of_default, of_other = (
        [evaluate(run, conventions=variant.conventions, draws=0) for run in runs]
        for variant in (VARIANTS[0], other)
    )
    for score in OVERALL:
        before, after = (
            [scored.estimate(score).value for scored in evaluations]
            for evaluations in (of_default, of_other)
        )
        rows = frame[(frame["convention"] == other.name) & (frame["score"] == score)]
        assert rows["system"].tolist() == [*"abc"]
        assert rows["value"].tolist() == pytest.approx(after)
        assert rows["change"].tolist() == pytest.approx(np.subtract(after, before))
        assert rows["place"].tolist() == rankdata([-value for value in after]).tolist()
        tau = kendalltau(before, after).statistic
        assert rows["tau"].tolist() == pytest.approx([tau] * 3, nan_ok=True)
        turned = sum(
            (before[a] - before[b]) * (after[a] - after[b]) < 0 for a in range(3) for b in range(a)
        )
        assert set(rows["turned_round"]) == {turned}
    assert frame.attrs["signature"] == str(evaluate(runs[0], draws=0).signature)


def test_a_run_without_a_score_has_no_place_and_takes_none_from_others(
    runs: list[Predictions], corpus: Corpus, make_predictions: Callable[..., Predictions]
) -> None:
    mute = make_predictions(corpus, [0] * len(corpus.gold), "u" * len(corpus.gold))
    variants = [Variant("default"), Variant("left out", Conventions(unparsed="exclude"))]
    found = sensitivity([mute, *runs[:2]], names="mab", variants=variants)
    assert found.ranks("jaccard")[1].tolist() == pytest.approx([np.nan, 2, 1], nan_ok=True)
    told = found.as_dict()["variants"]["left out"]
    assert (told["m"]["jaccard"], told["m"]["micro_f1"]) == (None, 0.0)


def test_it_is_strict_json_and_refuses_nothing_to_compare(runs: list[Predictions]) -> None:
    read = json.loads(json.dumps(sensitivity(runs, names="abc").as_dict(), allow_nan=False))
    assert set(read["variants"]["Default"]) == {"a", "b", "c"}
    with pytest.raises(ScoringError, match="0 runs"):
        sensitivity([])
