"""Agreement and warnings of a small study as data frames, compared with a count by hand."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from cradle_lib.annotation import Annotation, Annotations
from cradle_lib.annotation.agreement import agreement_frame
from cradle_lib.annotation.protocol_warnings import protocol_warnings

from .hand_study import SH, hand_study


@pytest.fixture(scope="module")
def study() -> Annotations:
    return hand_study()


def estimate(frame: pd.DataFrame, **wanted: Any) -> pd.Series[Any]:
    """Returns the only row with these values."""
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_rounds_are_separate_or_pooled(study: Annotations) -> None:
    later = Annotations.of(
        study.corpus,
        (
            Annotation(e.dialogue, e.annotator, e.team, 2, e.role, e.masks)
            if e.dialogue == "d0001"
            else e
            for e in study.entries
        ),
    )
    apart = agreement_frame(later, draws=0)
    assert apart[["team", "round"]].drop_duplicates().to_numpy().tolist() == [
        ["1", 1],
        ["1", 2],
        ["2", 1],
    ]
    together = agreement_frame(later, by_round=False, units=["all"], draws=0)
    assert together["round"].isna().all()
    exact = estimate(together, team="1", label="all labels", measure="exact_match")
    assert exact["value"] == pytest.approx(7 / 8)
    assert together[["low", "high"]].isna().all(axis=None)


def test_warnings_name_turn_annotator_and_kind(study: Annotations) -> None:
    moved = [
        Annotation(e.dialogue, e.annotator, e.team, e.round, e.role, (0, SH, 0, SH))
        if (e.dialogue, e.annotator) == ("d0001", "B")
        else e
        for e in study.entries
    ]
    frame = protocol_warnings(Annotations.of(study.corpus, moved))
    assert frame[["dialogue", "turn", "annotator", "kind"]].to_numpy().tolist() == [
        ["d0001", 1, "B", "not a user turn"],
        ["d0001", 3, "B", "repeated"],
    ]
    assert [*frame["annotator"].cat.categories] == list("ABCDS")
