from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score
from statsmodels.stats.multitest import multipletests

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS, LABELS
from cradle_lib.scoring.compare import DISCORDANT, Comparison, compare, detectable
from cradle_lib.scoring.evaluate import evaluate

AO, SHO = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"]
QUICK = {"permutations": 1999}


def corpus_of(make_corpus: Callable[..., Corpus], dialogues: int) -> Corpus:
    return make_corpus([[("U", AO), ("L", 0), ("U", SHO), ("U", 0)] for _ in range(dialogues)])


@pytest.fixture(scope="module")
def corpus(make_corpus: Callable[..., Corpus]) -> Corpus:
    return corpus_of(make_corpus, 40)


@pytest.fixture(scope="module")
def runs(corpus: Corpus, make_predictions: Callable[..., Predictions]) -> list[Predictions]:
    """Three runs: nothing, half of the confirms, everything."""
    gold = corpus.gold
    half = np.where(np.arange(len(gold)) % 2 == 0, gold & SHO, 0)
    half[1::6] = SHO
    return [make_predictions(corpus, masks) for masks in (0 * gold, half, gold)]


@pytest.fixture(scope="module")
def found(runs: list[Predictions]) -> Comparison:
    return compare(runs, names=["none", "half", "all"], **QUICK)


def family(found: Comparison) -> pd.DataFrame:
    frame = found.to_frame()
    return frame[frame["label"].isna()]


def of_labels(found: Comparison) -> pd.DataFrame:
    frame = found.to_frame()
    return frame[frame["label"].notna()]


def test_the_family_is_every_run_against_the_first_in_three_settings(found: Comparison) -> None:
    declared = family(found)
    assert [*zip(declared["level"], declared["system"], declared["score"], strict=True)] == [
        (level, system, score)
        for level in ("turn", "dialogue", "confirm")
        for system in ("half", "all")
        for score in ("micro_f1", "macro_f1")
    ]
    # The smallest p of 1,999 swaps is 1/2,000; Holm multiplies it by at most 12 tests.
    best = declared[declared["system"] == "all"]
    assert set(best["p"]) == {1 / 2000}
    assert best["adjusted_p"].between(1 / 2000, 12 / 2000).all()


def test_the_declared_family_and_the_labels_are_corrected_apart(found: Comparison) -> None:
    for tests, method, size in ((family(found), "holm", 12), (of_labels(found), "fdr_bh", 3)):
        tested = tests.dropna(subset="p")
        assert len(tested) == size
        expected = multipletests(tested["p"], method=method)[1]
        assert tested["adjusted_p"].to_numpy() == pytest.approx(expected)


def test_runs_with_the_same_labels_are_tested_once(
    runs: list[Predictions], make_predictions: Callable[..., Predictions]
) -> None:
    # The same masks as "all", and a run without one readable answer, which predicts nothing.
    unread = make_predictions(runs[0].corpus, runs[0].masks, "u" * len(runs[0].masks))
    names = ["none", "half", "all", "all again", "unread"]
    found = compare([*runs, replace(runs[2]), unread], names=names, **QUICK)
    assert found.names == ("none", "half", "all")
    assert found.same == {"all again": "all", "unread": "none"}
    assert [note.split(" has the same")[0] for note in found.notes] == ["all again", "unread"]
    alone = compare(runs, names=names[:3], **QUICK)
    pd.testing.assert_frame_equal(found.to_frame(), alone.to_frame())


def test_shipped_runs_with_the_same_labels_are_tested_once() -> None:
    corpus = load_corpus("surrogate", "test")
    folder = paths.SHIPPED_RUNS / corpus.name
    names = ["probe", "tuned", "tuned-constrained", "constrained"]
    shipped = [load_predictions(folder / f"smollm2-135m-{name}.jsonl", corpus) for name in names]
    found = compare(shipped, names=names, permutations=99)
    assert found.same == {"tuned-constrained": "tuned"}
    # Two distinct runs against the first, at three levels, by two scores.
    assert len(family(found)) == 2 * 3 * 2


def test_a_difference_is_that_of_the_two_scores(found: Comparison, runs: list[Predictions]) -> None:
    for d in family(found).itertuples():
        pair = [
            evaluate(run, level=d.level, draws=0).estimate(d.score).value
            for run in (runs[0], runs[found.names.index(d.system)])
        ]
        assert [d.baseline_score, d.own_score] == pair
        assert d.value == pytest.approx(pair[1] - pair[0])
        # Where all dialogues are alike there is no interval.
        assert math.isnan(d.low) or d.low <= d.value <= d.high


def test_labels_with_few_occurrences_have_an_interval_and_no_test(found: Comparison) -> None:
    labels = of_labels(found)
    assert len(labels) == 2 * len(LABELS)
    gold = labels["label"].isin(["alert_ongoing", "confirm_SH_ongoing"])
    assert labels["support"].tolist() == np.where(gold, 40, 0).tolist()
    # On alerts "half" and "none" agree in every dialogue: nothing can tell them apart.
    tested = gold & (labels["discordant"] >= DISCORDANT)
    assert gold.sum() - tested.sum() == 1
    assert ((labels["verdict"] != "insufficient") == tested).all()
    assert (labels["p"].notna() == tested).all()
    assert (labels["adjusted_p"].notna() == tested).all()


@pytest.mark.parametrize(("kept", "verdict"), [(9, "insufficient"), (10, "not shown")])
def test_a_label_is_tested_if_ten_dialogues_tell_the_runs_apart(
    runs: list[Predictions],
    make_predictions: Callable[..., Predictions],
    kept: int,
    verdict: str,
) -> None:
    gold = runs[2].corpus.gold
    # All alerts but some; the other run has these and lacks others, as many as can be.
    first, second = gold.copy(), gold.copy()
    first[0 : 3 * kept : 6] &= ~np.uint16(AO)
    second[3 : 3 * kept : 6] &= ~np.uint16(AO)
    pair = [make_predictions(runs[0].corpus, masks) for masks in (first, second)]
    found = of_labels(compare(pair, names="ab", permutations=99))
    row = found[found["label"] == "alert_ongoing"].iloc[0]
    assert (row["discordant"], row["verdict"]) == (kept, verdict)


def test_few_gold_labels_in_all_make_no_test_at_all(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = corpus_of(make_corpus, 9)
    silent, right = (make_predictions(corpus, m) for m in (0 * corpus.gold, corpus.gold))
    found = compare([silent, right], names=["silent", "right"], **QUICK)
    assert set(found.to_frame()["verdict"]) == {"insufficient"}


def test_different_signatures_are_refused_and_the_field_is_named(
    runs: list[Predictions],
    make_corpus: Callable[..., Corpus],
    make_predictions: Callable[..., Predictions],
) -> None:
    gold_history = replace(runs[2], record=runs[2].record.model_copy(update={"history": "gold"}))
    with pytest.raises(ScoringError, match="history is 'self' for a and 'gold' for b"):
        compare([runs[0], gold_history], names=["a", "b"], **QUICK)
    assert compare([runs[0], gold_history], names=["a", "b"], about=("history",), **QUICK)
    other = corpus_of(make_corpus, 39)
    with pytest.raises(ScoringError, match=r"corpus is .* dialogues is 40 for a and 39 for b"):
        compare([runs[0], make_predictions(other, 0 * other.gold)], names=["a", "b"], **QUICK)


def test_free_and_constrained_decoding_are_two_systems_that_may_be_compared(
    runs: list[Predictions],
) -> None:
    record = runs[2].record.model_copy(update={"decoding": {"mode": "constrained"}})
    constrained = replace(runs[2], record=record)
    found = compare([runs[2], constrained], names=["free", "constrained"], **QUICK)
    for signature in found.signatures.values():
        assert "|dec:constrained+free|" in str(signature)
    alone = compare(runs[1:], names=["half", "all"], **QUICK)
    assert "|dec:free|" in str(alone.signatures["turn"])


def test_runs_to_compare_must_be_two_with_names_of_their_own(runs: list[Predictions]) -> None:
    for wrong in (runs[:1], runs[:2]):
        with pytest.raises(ScoringError, match="Name two or more, each once"):
            compare(wrong)
    with pytest.raises(ScoringError, match="at least 1"):
        compare(runs, names=["a", "b", "c"], permutations=0)


def test_the_power_note_is_the_textbook_formula(
    runs: list[Predictions], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = runs[0].corpus
    kept = np.random.default_rng(4).random(len(corpus.gold)) < 0.5
    some = make_predictions(corpus, np.where(kept, corpus.gold, 0))
    found = compare([runs[0], some], names=["none", "some"], **QUICK)
    # z(.975) + z(.8) = 1.9600 + 0.8416.
    assert detectable(1.0) == pytest.approx(2.8016, abs=1e-4)
    [size] = family(found).query("level == 'turn' and score == 'micro_f1'")["detectable"]
    assert "With 40 dialogues" in found.power_note
    assert f"{100 * size:.1f} points" in found.power_note


def test_nothing_is_said_of_power_where_all_dialogues_are_alike(
    runs: list[Predictions], found: Comparison
) -> None:
    # All 40 dialogues are alike, so "all" minus "none" is 100 points in every sample of them.
    assert family(found).query("system == 'all'")["detectable"].isna().all()
    assert " 0.0 " not in found.power_note
    same = compare([runs[0], runs[2]], names=["none", "all"], **QUICK)
    assert same.power_note.startswith("The differences do not vary over the dialogues")


def test_where_all_dialogues_are_alike_no_difference_has_an_interval(
    runs: list[Predictions],
) -> None:
    twins = compare([runs[1], runs[1]], names=["one", "the same"], **QUICK).to_frame()
    of_runs = twins[twins["label"].isna()]
    assert set(of_runs["score"]) == {"micro_f1", "macro_f1"}
    assert (of_runs["value"] == 0).all()
    assert of_runs[["low", "high"]].isna().all(axis=None)


def test_what_a_comparison_is_about_must_be_part_of_a_signature(runs: list[Predictions]) -> None:
    with pytest.raises(ScoringError, match=r"'nonsense' is no part .* level, labels, history"):
        compare(runs, names="abc", about=("history", "nonsense"), **QUICK)


def test_the_frame_holds_differences_of_scores_that_scikit_learn_computes(
    found: Comparison, runs: list[Predictions]
) -> None:
    frame = found.to_frame()
    assert len(frame) == 2 * (6 + len(LABELS))
    numbers = ["baseline_score", "own_score", "value", "low", "high", "p", "adjusted_p"]
    assert set(frame[[*numbers, "detectable"]].dtypes) == {np.dtype(float)}
    truth = [[(m >> bit) & 1 for bit in range(16)] for m in runs[0].corpus.gold]
    turns = frame[frame["level"] == "turn"].set_index(["system", "score", "label"]).sort_index()
    for name, run in zip(found.names[1:], runs[1:], strict=True):
        guess = [[(m >> bit) & 1 for bit in range(16)] for m in run.masks]
        for average in ("micro", "macro"):
            score = f1_score(truth, guess, average=average, zero_division=0.0)
            [row] = turns.loc[(name, f"{average}_f1")].itertuples()
            # The baseline tags nothing.
            assert (row.baseline_score, row.own_score) == pytest.approx((0, score))
            assert row.value == pytest.approx(score)
        each = f1_score(truth, guess, average=None, zero_division=0.0)
        labels = frame[(frame["system"] == name) & frame["label"].notna()]
        assert labels["label"].tolist() == [*LABELS]
        assert labels["value"].to_numpy() == pytest.approx(each)
        assert labels["support"].tolist() == np.sum(truth, axis=0).tolist()
        few = (labels["support"] < 20) | (labels["discordant"] < DISCORDANT)
        assert (labels["adjusted_p"].isna() == few).all()
    assert set(frame["signature"]) == {str(s) for s in found.signatures.values()}
    plain = compare(runs, names="abc", permutations=9).to_frame()
    # So few swaps can't reject anything: nothing is outside the interval.
    assert not ((plain["low"] > 0) | (plain["high"] < 0)).any()
    assert set(plain[["low", "detectable"]].dtypes) == {np.dtype(float)}
