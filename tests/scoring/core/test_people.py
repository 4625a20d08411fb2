"""Annotators as runs, against scikit-learn on the labels that they gave."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from cradle_lib.annotation.shipped import load_annotations
from cradle_lib.corpus import load_corpus
from cradle_lib.labels import BITS
from cradle_lib.scoring.core.evaluate import evaluate
from cradle_lib.scoring.core.people import annotator_runs


def test_each_annotator_is_scored_on_the_dialogues_they_labelled() -> None:
    corpus = load_corpus("surrogate")
    annotations = load_annotations(corpus)
    runs = annotator_runs(corpus)
    frame = annotations.to_frame()
    frame = frame[(frame["role"] == "annotator") & frame["user_turn"]]
    assert [run.record.model for run in runs] == [
        f"annotator-{name}" for name in sorted(frame["annotator"].unique())
    ]
    gold = corpus.to_frame().set_index(["dialogue", "turn"])["mask"]
    for run in runs:
        own = frame[frame["annotator"] == run.record.model.removeprefix("annotator-")]
        truth = gold.loc[list(zip(own["dialogue"], own["turn"], strict=True))]
        bits = [
            [[bool(mask & bit) for bit in BITS.values()] for mask in masks]
            for masks in (truth, own["mask"])
        ]
        expected = f1_score(*map(np.array, bits), average="micro")
        found = evaluate(run, draws=0)
        assert found.estimate("micro_f1").value == pytest.approx(expected)
        assert found.turns == len(own)
        assert len(run.corpus) == own["dialogue"].nunique()


def test_a_corpus_without_annotations_has_no_people() -> None:
    assert annotator_runs(load_corpus("surrogate", "dev")) == []
