"""Confusion between annotators, against scikit-learn where each turn has one label at most."""

from __future__ import annotations

import random

from sklearn.metrics import confusion_matrix

from cradle_lib.annotation import Annotation, Annotations
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.labels import BITS
from cradle_lib.scoring.confusion import CELLS, annotator_confusion

from ..annotation.hand_study import hand_study


def test_labels_of_single_label_turns_are_scikit_learns() -> None:
    chance = random.Random(3)
    given = {who: [chance.choice([*CELLS[:4], "none"]) for _ in range(60)] for who in "AB"}
    dialogues = tuple(
        Dialogue(i, tuple(Turn(20 * i + t, t, "User", "Hm.", 0) for t in range(20)))
        for i in range(3)
    )
    entries = [
        Annotation(f"d{i:04d}", who, "1", 1, "annotator", tuple(BITS.get(n, 0) for n in names))
        for who, every in given.items()
        for i in range(3)
        for names in [every[20 * i : 20 * i + 20]]
    ]
    frame = annotator_confusion(Annotations.of(Corpus("c", dialogues), entries))
    matrix = confusion_matrix(given["A"], given["B"], labels=list(CELLS))
    matrix[-1, -1] = 0
    assert frame["count"].to_numpy().reshape(17, 17).tolist() == matrix.tolist()
    assert set(frame["dialogues"]) == {3}


def test_each_two_annotators_have_a_matrix_without_those_who_adjudicated() -> None:
    frame = annotator_confusion(hand_study())
    kept = frame[frame["count"] > 0]
    assert kept[["first", "second", "one", "other", "count"]].to_numpy().tolist() == [
        ["A", "B", "alert_ongoing", "alert_ongoing", 1],
        ["A", "B", "alert_ongoing", "none", 1],
        ["A", "B", "confirm_SH_ongoing", "confirm_SH_ongoing", 1],
        # Turns 0 and 2 of one dialogue, where the other gave nothing; turn 0 of the next.
        ["C", "D", "alert_ongoing", "confirm_SH_ongoing", 1],
        ["C", "D", "alert_ongoing", "none", 1],
        ["C", "D", "none", "alert_ongoing", 1],
    ]
