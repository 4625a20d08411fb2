"""A study of four dialogues as data frames: every number counted by hand."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pandas as pd
import pytest

from cradle_lib.annotation import Annotation, Annotations, adjudicate
from cradle_lib.annotation.agreement import MEASURES, agreement_frame
from cradle_lib.annotation.protocol_warnings import protocol_warnings
from cradle_lib.annotation.voting import Outcome
from cradle_lib.labels import LABELS

from .hand_study import SH, hand_study


@pytest.fixture(scope="module")
def study() -> Annotations:
    return hand_study()


def estimate(frame: pd.DataFrame, **wanted: Any) -> pd.Series[Any]:
    """The only row with these values."""
    for name, value in wanted.items():
        frame = frame[frame[name] == value]
    assert len(frame) == 1
    return frame.iloc[0]


def test_annotations_have_a_row_for_each_turn_that_somebody_looked_at(study: Annotations) -> None:
    frame = study.to_frame()
    # Two, three, four and four people labelled four turns each.
    assert len(frame) == 4 * (2 + 3 + 4 + 4)
    assert int(frame["user_turn"].sum()) == 3 * (2 + 3 + 4 + 4)
    kept = frame[frame["mask"] > 0]
    names = ["dialogue", "annotator", "turn", "labels"]
    assert {*kept[names].itertuples(index=False, name=None)} == {
        ("d0000", "A", 0, "alert_ongoing"), ("d0000", "A", 2, "confirm_SH_ongoing"),
        ("d0000", "B", 0, "alert_ongoing"), ("d0000", "B", 2, "confirm_SH_ongoing"),
        ("d0001", "A", 0, "alert_ongoing"), ("d0001", "C", 0, "alert_ongoing"),
        ("d0002", "C", 0, "alert_ongoing"), ("d0002", "D", 2, "alert_ongoing"),
        ("d0002", "A", 3, "alert_ongoing"), ("d0002", "S", 0, "alert_ongoing"),
        ("d0003", "C", 0, "alert_ongoing"), ("d0003", "D", 0, "confirm_SH_ongoing"),
        ("d0003", "S", 0, "confirm_SH_ongoing"),
    }  # fmt: skip
    assert estimate(frame, dialogue="d0003", annotator="S", turn=0)["role"] == "senior"


def test_agreement_is_that_of_fractions_by_hand(study: Annotations) -> None:
    frame = agreement_frame(study, draws=50)
    assert len(frame) == 2 * 3 * (1 + len(LABELS)) * len(MEASURES)
    assert {*zip(frame["team"], frame["annotators"], strict=True)} == {
        ("1", "A and B"),
        ("2", "C and D"),
    }
    exact = frame[(frame["measure"] == "exact_match") & (frame["label"] == "all labels")]
    # Team 1: 2 of 3 labelled turns are equal, 5 of 6 user turns, 7 of 8 turns.
    for units, expected in (("labelled", "2/3"), ("user", "5/6"), ("all", "7/8")):
        row = estimate(exact, team="1", units=units)
        assert row["value"] == pytest.approx(float(Fraction(expected)))
        assert row["turns"] == Fraction(expected).denominator
    # Of its two dialogues one agrees wholly, the other on 3 of 4 turns: all draws lie between.
    whole = estimate(exact, team="1", units="all")
    assert (whole["low"], whole["high"]) == (pytest.approx(0.75), 1)
    # Team 2: turns 0 and 2 of one dialogue differ, turn 0 of the other: 5 of 8 are equal.
    assert estimate(exact, team="2", units="all")["value"] == pytest.approx(5 / 8)


def test_a_label_has_its_counts_and_a_reason_where_it_has_no_number(study: Annotations) -> None:
    frame = agreement_frame(study, units=["labelled"], draws=50)
    alert = estimate(frame, team="1", label="alert_ongoing", measure="jaccard")
    assert tuple(alert[["both", "one", "other"]]) == (1, 1, 0)
    assert (alert["value"], alert["kind"]) == (0.5, "alert")
    f1 = estimate(frame, team="1", label="alert_ongoing", measure="f1")
    assert f1["value"] == pytest.approx(2 / 3)
    pooled = estimate(frame, team="1", label="all labels", measure="kappa")
    assert tuple(pooled[["both", "one", "other"]]) == (2, 1, 0)
    # Pooled over 3 x 16 decisions: 47 of 48 the same; 2 both, 1 only A.
    one, other = 3 / 48, 2 / 48
    chance = one * other + (1 - one) * (1 - other)
    assert pooled["value"] == pytest.approx((47 / 48 - chance) / (1 - chance))
    passive = estimate(frame, team="2", label="confirm_SI_passive_past", measure="jaccard")
    assert passive["kind"] == "si_passive"
    assert math.isnan(passive["value"])
    # One user turn lies between turns 0 and 2 of d0002: the Listener's does not count.
    window = estimate(frame, team="2", label="all labels", measure="within_1")
    assert window["value"] == 0.5


def test_rounds_are_kept_apart_or_put_together(study: Annotations) -> None:
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


def test_everybody_has_a_count_of_every_warning(study: Annotations) -> None:
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


def test_each_dialogue_has_its_way_to_gold(study: Annotations) -> None:
    result = adjudicate(study)
    frame = result.to_frame().astype(object)
    names = ["dialogue", "team", "annotations", "vote", "senior"]
    assert frame[names].replace({float("nan"): None}).to_numpy().tolist() == [
        ["d0000", "1", "exact agreement", None, None],
        ["d0001", "1", "mismatch", "resolved 2:1", None],
        ["d0002", "2", "mismatch", "final mismatch", "labels agree 3:0"],
        ["d0003", "2", "mismatch", "final mismatch", "turn conflict"],
    ]
    assert [*frame["outcome"]] == [str(found) for found in result.outcomes.values()]
    assert [*result.to_frame()["outcome"].cat.categories] == [str(found) for found in Outcome]
    trail = result.audit()
    assert [*trail["label"].cat.categories] == list(LABELS)
    assert trail["by"].value_counts().to_dict() == {"agreement": 2, "majority": 1, "senior": 5}
