from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.stats import kendalltau, rankdata
from sklearn.metrics import f1_score

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.scores import OVERALL
from cradle_lib.scoring.sensitivity import VARIANTS, Variant, sensitivity

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


def values(frame: pd.DataFrame, convention: str, system: str) -> dict[str, float]:
    rows = frame[(frame["convention"] == convention) & (frame["system"] == system)]
    return dict(zip(rows["score"], rows["value"], strict=True))


def test_every_variant_scores_what_evaluate_scores(runs: list[Predictions]) -> None:
    found = sensitivity(runs, names=["a", "b", "c"])
    for variant in VARIANTS:
        if variant.first or variant.frequent:
            continue
        for name, run in zip("abc", runs, strict=True):
            scored = evaluate(run, conventions=variant.conventions, draws=0)
            expected = {score: scored.estimate(score).value for score in OVERALL}
            expected |= {score: pytest.approx(value) for score, value in expected.items()}
            told = values(found, "Default", name) | values(found, variant.name, name)
            assert told == expected
    assert found.attrs["signature"] == str(evaluate(runs[0], draws=0).signature)
    # Each convention matters somewhere, or it would not be shown.
    changed = found[found["change"] != 0]["convention"].unique().tolist()
    assert changed == [variant.name for variant in VARIANTS[1:]]


def test_a_convention_has_rows_for_the_scores_that_it_can_change(runs: list[Predictions]) -> None:
    found = sensitivity(runs, names="abc").groupby("convention")["score"].unique().map(set)
    of_units, of_labels = {"exact_match", "jaccard"}, set(OVERALL) - {"exact_match", "jaccard"}
    assert found["Default"] == set(OVERALL)
    assert found["Two empty sets score 0"] == {"jaccard"}
    assert found["0/0 is 1"] <= of_labels
    assert found["Unusable answers are none"] == of_units
    assert found["Macro F1 of macro precision and recall"] == {"macro_f1"}
    assert found["Macro over labels with 20+ gold labels"] <= {s for s in of_labels if "macro" in s}
    # Without unusable answers, what they count as changes nothing.
    usable = [replace(run, outcomes=np.zeros_like(run.outcomes)) for run in runs]
    assert not sensitivity(usable)["convention"].str.startswith("Unusable").any()


def test_counting_a_label_once_per_dialogue_ignores_repeats(
    corpus: Corpus, make_predictions: Callable[..., Predictions]
) -> None:
    run = make_predictions(corpus, [AO, AO, SHO, SHO, DVP, 0, *[0, AO] * 28])
    found = sensitivity([run], variants=[Variant("all"), Variant("once", first=True)])
    once = values(found, "once", "M")
    # Without repeats the first two dialogues are right: 3 of 31 gold labels are found, and 28
    # alerts come on the wrong turn. With the repeats there is one alert more on both sides.
    assert once["micro_recall"] == pytest.approx(3 / 31)
    assert once["micro_precision"] == pytest.approx(3 / 31)
    plain = values(found, "all", "M")
    assert plain["micro_recall"] == pytest.approx(4 / 32)
    assert plain["micro_precision"] == pytest.approx(4 / 33)


def test_macro_over_frequent_labels_is_that_of_scikit_learn(
    corpus: Corpus, runs: list[Predictions]
) -> None:
    found = sensitivity(runs, names="abc", variants=[Variant("often", frequent=True)])
    for name, run in zip("abc", runs, strict=True):
        # Only alert_ongoing occurs twenty times.
        truth, guess = ((m & AO) != 0 for m in (corpus.gold, run.masks))
        expected = f1_score(truth, guess, zero_division=0.0)
        assert values(found, "often", name)["macro_f1"] == pytest.approx(expected)


def test_the_frame_is_what_evaluate_and_scipy_compute(runs: list[Predictions]) -> None:
    frame = sensitivity(runs, names="abc")
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
        if np.allclose(before, after, rtol=0, atol=1e-12):
            assert rows.empty
            continue
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


def test_a_single_run_has_no_ranking_to_compare(runs: list[Predictions]) -> None:
    assert sensitivity(runs[:1])["tau"].isna().all()


def test_a_run_without_a_score_has_no_place_and_takes_none_from_others(
    runs: list[Predictions], corpus: Corpus, make_predictions: Callable[..., Predictions]
) -> None:
    mute = make_predictions(corpus, [0] * len(corpus.gold), "u" * len(corpus.gold))
    variants = [Variant("default"), Variant("left out", Conventions(unparsed="exclude"))]
    found = sensitivity([mute, *runs[:2]], names="mab", variants=variants)
    rows = found[(found["convention"] == "left out") & (found["score"] == "jaccard")]
    assert rows["place"].tolist() == pytest.approx([np.nan, 2, 1], nan_ok=True)
    told = values(found, "left out", "m")
    assert math.isnan(told["jaccard"])
    assert told["micro_f1"] == 0


def test_nothing_to_compare_is_refused() -> None:
    with pytest.raises(ScoringError, match="0 runs"):
        sensitivity([])
