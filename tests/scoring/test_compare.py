from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import f1_score
from statsmodels.stats.multitest import multipletests

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS, LABELS
from cradle_lib.scoring.compare import (
    DISCORDANT,
    Comparison,
    adjust,
    compare,
    detectable,
    rank_ranges,
)
from cradle_lib.scoring.evaluate import evaluate

AO, SHO = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"]
QUICK = {"permutations": 1999}
N, DRAWS, SEED = 12, 400, 3


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


def test_where_all_dialogues_are_alike_no_difference_has_an_interval(
    runs: list[Predictions],
) -> None:
    twins = compare([runs[1], runs[1]], names=["one", "the same"], **QUICK).to_frame()
    of_runs = twins[twins["label"].isna()]
    assert set(of_runs["score"]) == {"micro_f1", "macro_f1"}
    assert (of_runs["value"] == 0).all()
    assert of_runs[["low", "high"]].isna().all(axis=None)


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


chances = st.lists(st.floats(0, 1), min_size=1, max_size=9)


@settings(deadline=None, max_examples=30)
@given(chances)
def test_both_methods_agree_with_statsmodels(p: list[float]) -> None:
    for method in ("holm", "fdr_bh"):
        found = adjust(np.array([np.nan, *p]), method)
        assert found[1:] == pytest.approx(multipletests(p, method=method)[1])
        assert np.isnan(found[0])


@pytest.fixture(scope="module")
def rivals(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> list[Predictions]:
    generator = np.random.default_rng(5)
    corpus = make_corpus(
        [[("U", int(generator.choice([0, AO, SHO]))) for _ in range(4)] for _ in range(N)]
    )
    found = []
    for share in (0.9, 0.8, 0.6, 0.55, 0.0, 0.0):
        kept = generator.random(len(corpus.gold)) < share
        found.append(make_predictions(corpus, np.where(kept, corpus.gold, 0)))
    return found


def ranks_by_hand(rivals: list[Predictions], drawn: list[int]) -> list[tuple[int, int]]:
    """The best and the worst rank of each run over some dialogues, by plain counting."""
    scores = []
    for run in rivals:
        tp = errors = 0
        for dialogue in drawn:
            own = run.corpus.dialogue_of == dialogue
            for gold, tagged in zip(run.corpus.gold[own], run.masks[own], strict=True):
                tp += (int(gold) & int(tagged)).bit_count()
                errors += (int(gold) ^ int(tagged)).bit_count()
        scores.append(2 * tp / (2 * tp + errors) if tp + errors else 0.0)
    return [
        (1 + sum(other > own for other in scores), sum(other >= own for other in scores))
        for own in scores
    ]


def test_ranges_are_those_of_the_ranks_in_each_draw(rivals: list[Predictions]) -> None:
    found = rank_ranges([evaluate(run, draws=DRAWS, seed=SEED) for run in rivals])
    picks = np.random.default_rng(SEED).integers(0, N, size=(DRAWS, N))
    drawn = np.array([ranks_by_hand(rivals, pick.tolist()) for pick in picks])
    expected = []
    for place, (rank, _) in enumerate(ranks_by_hand(rivals, list(range(N)))):
        low = math.floor(np.quantile(drawn[:, place, 0], 0.025))
        high = math.ceil(np.quantile(drawn[:, place, 1], 0.975))
        expected.append((rank, low, high))
        inside = (drawn[:, place, 0] >= low) & (drawn[:, place, 1] <= high)
        assert inside.mean() >= 0.94
    # Systems change places in some draws, and the last two are equal in all of them.
    expected.sort(key=lambda row: row[0])
    assert expected[-2:] == [(5, 5, 6), (5, 5, 6)]
    assert [low < high for _, low, high in expected[:4]] == [True] * 4
    told = [(rank, f"{low}" if low == high else f"{low} to {high}") for rank, low, high in expected]
    assert [*found[["rank", "ranks"]].itertuples(index=False, name=None)] == told
