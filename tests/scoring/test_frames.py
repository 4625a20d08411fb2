"""Frames of scores, confusions and errors, compared with scikit-learn and with plain loops."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.metrics import (
    f1_score,
    jaccard_score,
    multilabel_confusion_matrix,
    precision_score,
    recall_score,
)

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import BITS, LABELS
from cradle_lib.scoring.confusion import CELLS, Pairing, confusion_frame
from cradle_lib.scoring.error_types import error_counts, label_pairs
from cradle_lib.scoring.evaluate import evaluate

MakeCorpus = Callable[[Sequence[Sequence[tuple[str, int]]]], Corpus]
MakePredictions = Callable[..., Predictions]


def bits(masks: NDArray[np.uint16]) -> NDArray[np.bool_]:
    return np.array([[bool(mask & bit) for bit in BITS.values()] for mask in masks])


@pytest.fixture
def run(make_corpus: MakeCorpus, make_predictions: MakePredictions) -> Predictions:
    """Sixty dialogues of five turns; about half of the labels found, some tags made up."""
    chance = np.random.default_rng(11)
    size = 300
    one = np.where(chance.random(size) < 0.4, 1 << chance.integers(0, 16, size), 0)
    two = np.where(chance.random(size) < 0.1, 1 << chance.integers(0, 16, size), 0)
    gold = one | two
    spare = np.where(chance.random(size) < 0.2, 1 << chance.integers(0, 16, size), 0)
    tags = np.where(chance.random(size) < 0.5, gold, 0) | spare
    marks = chance.random(size) < 0.1
    corpus = make_corpus([[("U", int(m)) for m in part] for part in gold.reshape(60, 5)])
    outcomes = "".join("u" if lost else "o" for lost in marks)
    return make_predictions(corpus, np.where(marks, 0, tags).tolist(), outcomes)


def test_overall_scores_are_those_of_scikit_learn(run: Predictions) -> None:
    gold, tagged, readable = bits(run.corpus.gold), bits(run.masks), run.ok
    # Two empty sets have Jaccard 1, but an answer that can't be read earns nothing for it.
    earned = readable | gold.any(axis=1)
    pairs = list(zip(gold, tagged, strict=True))
    jaccard = [
        jaccard_score(g[None], t[None], average="samples", zero_division=1) for g, t in pairs
    ]
    expected = {
        "exact_match": np.mean([(g == t).all() for g, t in pairs] * earned),
        "jaccard": np.mean(jaccard * earned),
    }
    for average in ("micro", "macro"):
        for score in (precision_score, recall_score, f1_score):
            name = f"{average}_{score.__name__.removesuffix('_score')}"
            expected[name] = score(gold, tagged, average=average, zero_division=0)
    frame = evaluate(run, draws=50).to_frame()
    overall = frame[frame["label"].isna()].set_index("score")
    assert overall["value"].to_dict() == pytest.approx(expected)
    assert (overall["low"] <= overall["value"]).all()
    assert (overall["value"] <= overall["high"]).all()
    assert set(overall["unusable"]) == {int((~readable).sum())}


def test_scores_of_labels_are_those_of_scikit_learn(run: Predictions) -> None:
    gold, tagged = bits(run.corpus.gold), bits(run.masks)
    frame = evaluate(run, draws=0).to_frame()
    f1 = frame[frame["label"].notna() & (frame["score"] == "f1")]
    assert [*f1["label"]] == [*LABELS]
    assert [*f1["value"]] == pytest.approx(f1_score(gold, tagged, average=None, zero_division=0))
    assert [*f1["support"]] == gold.sum(axis=0).tolist()
    matrices = multilabel_confusion_matrix(gold, tagged)
    for row, [[_, fp], [fn, tp]] in zip(f1.itertuples(), matrices, strict=True):
        assert (row.tp, row.fp, row.fn) == (tp, fp, fn)


def test_the_confusion_frame_has_recall_on_its_diagonal(run: Predictions) -> None:
    gold, tagged = bits(run.corpus.gold), bits(run.masks)
    frame = confusion_frame(run)
    assert len(frame) == len(CELLS) * (len(CELLS) + 1)
    diagonal = frame[(frame["gold"] == frame["tagged"]) & (frame["gold"] != "none")]
    recall = recall_score(gold, tagged, average=None)
    assert [*diagonal["gold"]] == [*LABELS]
    assert [*diagonal["value"]] == pytest.approx(recall)
    found = multilabel_confusion_matrix(gold, tagged)[:, 1, 1]
    assert [*diagonal["count"]] == found.tolist()
    rows = frame[frame["gold"] != "none"].groupby("gold", observed=True)["count"].sum()
    assert rows.to_dict() == dict(zip(LABELS, gold.sum(axis=0).tolist(), strict=True))
    labels = frame[frame["tagged"].isin(LABELS)]
    columns = labels.groupby("tagged", observed=True)["count"].sum()
    assert columns.to_dict() == dict(zip(LABELS, tagged.sum(axis=0).tolist(), strict=True))


@pytest.mark.parametrize("pairing", ["one-to-one", "all"])
def test_unusable_answers_are_a_column_of_their_own(run: Predictions, pairing: Pairing) -> None:
    frame = confusion_frame(run, pairing=pairing)
    unusable = frame[frame["tagged"] == "unusable answer"].set_index("gold")["count"]
    gold = run.corpus.gold[~run.ok]
    assert unusable[[*LABELS]].tolist() == bits(gold).sum(axis=0).tolist()
    assert unusable["none"] == (gold == 0).sum()
    none = frame[(frame["tagged"] == "none") & (frame["gold"] == "none")]["count"]
    assert none.tolist() == [((run.corpus.gold == 0) & (run.masks == 0) & run.ok).sum()]
    pairs = label_pairs(run)
    assert ((pairs["tagged"] == "unusable answer") == (pairs["outcome"] != "ok")).all()


def test_a_label_that_is_never_gold_has_no_share(
    make_corpus: MakeCorpus, make_predictions: MakePredictions
) -> None:
    one, other = BITS["alert_ongoing"], BITS["alert_past"]
    corpus = make_corpus([[("U", one), ("U", one)]])
    frame = confusion_frame(make_predictions(corpus, [one, other]))
    shares = frame.set_index(["gold", "tagged"])["value"]
    assert shares["alert_ongoing", "alert_ongoing"] == shares["alert_ongoing", "alert_past"] == 0.5
    assert shares.drop("alert_ongoing").isna().all()


def test_errors_are_counted_as_a_loop_over_labels_counts_them(run: Predictions) -> None:
    gold, tagged = bits(run.corpus.gold), bits(run.masks)
    frame = error_counts(run).set_index("quantity")
    counts = frame["value"]
    assert counts["fp"] == (tagged & ~gold).sum()
    assert counts["fn"] == (gold & ~tagged).sum()
    assert counts["fp_alert_ongoing"] == (tagged & ~gold)[:, 0].sum()
    negative = ~gold.any(axis=1)
    share = tagged[negative].any(axis=1).mean()
    assert counts["gold_negative_turns_flagged"] == pytest.approx(share)
    assert frame["unit"].value_counts().to_dict() == {"count": 7, "share": 1}
    # What became of the alerts, read off the pairs.
    pairs = confusion_frame(run).set_index(["gold", "tagged"])["count"]
    alerts = ["alert_ongoing", "alert_past"]
    confirms = [label for label in LABELS if label not in alerts]
    assert counts["alert_to_none"] == sum(pairs[a, "none"] for a in alerts)
    assert counts["alert_to_confirm"] == sum(pairs[a, c] for a in alerts for c in confirms)
    assert (
        counts["alert_ongoing_to_si_passive_ongoing"]
        == pairs["alert_ongoing", "confirm_SI_passive_ongoing"]
    )


def test_every_turn_labelled_leaves_no_share_of_flagged_turns(
    make_corpus: MakeCorpus, make_predictions: MakePredictions
) -> None:
    corpus = make_corpus([[("U", BITS["alert_past"])]])
    frame = error_counts(make_predictions(corpus, [0])).set_index("quantity")
    assert frame["value"].isna().to_dict()["gold_negative_turns_flagged"]
    assert frame.loc[["fp", "fn", "alert_to_none"], "value"].tolist() == [0, 1, 1]
