"""Confusion matrices, compared with scikit-learn and with plain loops."""

from __future__ import annotations

import random

import pytest
from hypothesis import given, settings
from sklearn.metrics import confusion_matrix

from cradle_lib.annotation import Annotation, Annotations
from cradle_lib.labels import BITS, LABELS
from cradle_lib.scoring.analyses.confusion import Pairing, annotator_confusion, confusion_frame
from cradle_lib.scoring.label_pairs import CELLS, pair

from ...annotation.hand_study import corpus_of, hand_study
from ..made_runs import AO, AP, Turns, bits, dialogues, noisy_run, run_of


@pytest.mark.parametrize("pairing", ["one-to-one", "all"])
@settings(deadline=None, max_examples=15)
@given(turns=dialogues)
def test_confusion_counts_equal_those_of_a_loop(turns: Turns, pairing: Pairing) -> None:
    expected = dict.fromkeys(((one, other) for one in CELLS for other in CELLS), 0)
    for gold, predicted in (turn for dialogue in turns for turn in dialogue):
        golds, tags = (
            [label for label, bit in BITS.items() if mask & bit] or ["none"]
            for mask in (gold, predicted)
        )
        every = [(one, other) for one in golds for other in tags]
        for cell in every if pairing == "all" else pair(gold, predicted):
            expected[cell] += 1
    frame = confusion_frame(run_of(turns), pairing=pairing)
    assert frame.set_index(["gold", "predicted"])["count"].to_dict() == expected


def test_shares_are_of_the_row_and_undefined_for_labels_that_are_never_gold() -> None:
    frame = confusion_frame(run_of([[(AO, AO), (AO, AP)]])).set_index(["gold", "predicted"])
    shares = frame["value"]
    assert shares["alert_ongoing", "alert_ongoing"] == shares["alert_ongoing", "alert_past"] == 0.5
    assert shares.drop("alert_ongoing").isna().all()


@pytest.mark.parametrize("pairing", ["one-to-one", "all"])
def test_unusable_answers_have_a_separate_column(pairing: Pairing) -> None:
    run = noisy_run()
    frame = confusion_frame(run, pairing=pairing)
    unusable = frame[frame["predicted"] == "unusable answer"].set_index("gold")["count"]
    gold = run.corpus.gold[~run.ok]
    assert unusable[[*LABELS]].tolist() == bits(gold).sum(axis=0).tolist()
    assert unusable["none"] == (gold == 0).sum()
    none = frame[(frame["predicted"] == "none") & (frame["gold"] == "none")]["count"]
    assert none.tolist() == [((run.corpus.gold == 0) & (run.masks == 0) & run.ok).sum()]


def test_confusion_of_two_annotators_equals_scikit_learns() -> None:
    chance = random.Random(3)
    given_ = {who: [chance.choice([*CELLS[:4], "none"]) for _ in range(60)] for who in "AB"}
    entries = [
        Annotation(f"d{i:04d}", who, "1", 1, "annotator", tuple(BITS.get(n, 0) for n in names))
        for who, every in given_.items()
        for i in range(3)
        for names in [every[20 * i : 20 * i + 20]]
    ]
    frame = annotator_confusion(Annotations.of(corpus_of(20, count=3), entries))
    matrix = confusion_matrix(given_["A"], given_["B"], labels=list(CELLS))
    matrix[-1, -1] = 0
    assert frame["count"].to_numpy().reshape(17, 17).tolist() == matrix.tolist()
    assert set(frame["dialogues"]) == {3}


def test_each_pair_of_annotators_has_a_matrix_and_adjudicators_have_none() -> None:
    frame = annotator_confusion(hand_study())
    kept = frame[frame["count"] > 0]
    pairs = kept.groupby(["first", "second"])["count"].sum()
    # A and B: two equal labels and one missed; C and D: three turns, all different.
    assert pairs.to_dict() == {("A", "B"): 3, ("C", "D"): 3}
