"""Annotators scored as runs, compared with scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import f1_score

from cradle_lib.annotation import load_annotations
from cradle_lib.corpus import load_corpus
from cradle_lib.labels import BITS
from cradle_lib.scoring.analyses.annotators import annotator_pairs, annotator_runs
from cradle_lib.scoring.evaluate import evaluate

from ...annotation.hand_study import hand_study


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
        assert len(found.run.masks) == len(own)
        assert len(run.corpus) == own["dialogue"].nunique()
    assert annotator_runs(load_corpus("surrogate", "dev")) == []


def test_the_second_annotator_of_a_team_is_scored_against_the_first() -> None:
    corpus, runs = annotator_pairs(hand_study())
    frame = hand_study().to_frame()
    first = frame[frame["annotator"].isin(["A", "C"]) & (frame["role"] == "annotator")]
    assert corpus.to_frame()["mask"].tolist() == first["mask"].tolist()
    assert [run.record.name for run in runs] == ["Annotator B", "Annotator D"]
    for run, name in zip(runs, "BD", strict=True):
        own = frame[(frame["annotator"] == name) & (frame["role"] == "annotator")]
        assert run.masks.tolist() == own.loc[own["user_turn"], "mask"].tolist()
    _, runs = annotator_pairs(load_annotations(load_corpus("surrogate")))
    assert [run.record.name for run in runs] == ["Annotator B", "Annotator D", "Gold"]
    assert runs[2].masks.tolist() == load_corpus("surrogate").gold.tolist()
