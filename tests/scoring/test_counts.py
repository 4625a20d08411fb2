from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.metrics import multilabel_confusion_matrix

from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS, CONFIRM_MASK
from cradle_lib.scoring.conventions import LEVELS, Conventions, Level, Unparsed
from cradle_lib.scoring.counts import Counts, count

# Dialogue, gold mask, predicted mask, whether there is an answer.
Unit = tuple[int, int, int, bool]

A, P = BITS["alert_ongoing"], BITS["alert_past"]
SH, DV = BITS["confirm_SH_ongoing"], BITS["confirm_DV_past"]

# Masks as they occur (mostly nothing) mixed with any mask at all.
masks = st.one_of(st.sampled_from([0, 0, 0, A, SH, A | SH, SH | DV]), st.integers(0, 65535))
rows = st.lists(st.tuples(st.integers(0, 5), masks, masks, st.booleans()), max_size=40).map(
    lambda found: sorted(found, key=lambda row: row[0])
)
conventions = st.builds(
    Conventions,
    empty_jaccard=st.sampled_from([0.0, 0.5, 1.0]),
    unparsed=st.sampled_from(["miss", "none", "exclude"]),
)


def u16(*values: int) -> NDArray[np.uint16]:
    return np.array(values, dtype=np.uint16)


def i64(*values: int) -> NDArray[np.int64]:
    return np.array(values, dtype=np.int64)


def by_sets(
    found: list[Unit], n: int, level: Level, chosen: Conventions
) -> tuple[NDArray[np.int64], list[list[Fraction]]]:
    """The same as ``count``, slowly: Python sets of bits, one unit at a time."""
    keep = CONFIRM_MASK if level == "confirm" else 65535

    def bits(mask: int) -> set[int]:
        return {i for i in range(16) if mask & keep & 1 << i}

    per_dialogue: list[list[tuple[set[int], set[int], bool]]] = [[] for _ in range(n)]
    for dialogue, gold, predicted, answered in found:
        if chosen.unparsed == "exclude" and not answered:
            continue
        spoken = answered or chosen.unparsed == "none"
        per_dialogue[dialogue].append((bits(gold), bits(predicted) if answered else set(), spoken))
    if level != "turn":
        per_dialogue = [
            [
                (
                    set().union(*(u[0] for u in units)),
                    set().union(*(u[1] for u in units)),
                    all(u[2] for u in units),
                )
            ]
            if units
            else []
            for units in per_dialogue
        ]
    tallies = np.zeros((n, 16, 3), dtype=np.int64)
    sets = []
    for dialogue, units in enumerate(per_dialogue):
        exact, jaccard = Fraction(0), Fraction(0)
        for gold, predicted, spoken in units:
            for column, part in enumerate((gold & predicted, predicted - gold, gold - predicted)):
                tallies[dialogue, list(part), column] += 1
            if gold | predicted:
                exact += gold == predicted
                jaccard += Fraction(len(gold & predicted), len(gold | predicted))
            elif spoken:
                exact += 1
                jaccard += Fraction(chosen.empty_jaccard)
        sets.append([Fraction(len(units)), exact, jaccard])
    return tallies, sets


def counted(found: list[Unit], n: int, level: Level, chosen: Conventions) -> Counts:
    columns = list(zip(*found, strict=True)) or [[], [], [], []]
    return count(
        np.array(columns[1], dtype=np.uint16),
        np.array(columns[2], dtype=np.uint16),
        np.array(columns[0], dtype=np.int64),
        n,
        level=level,
        conventions=chosen,
        answered=np.array(columns[3], dtype=np.bool_),
    )


@settings(deadline=None, max_examples=100)
@given(rows, st.sampled_from(LEVELS), conventions)
def test_counts_equal_those_made_with_sets_one_unit_at_a_time(
    found: list[Unit], level: Level, chosen: Conventions
) -> None:
    tallies, sets = by_sets(found, 7, level, chosen)
    result = counted(found, 7, level, chosen)
    assert (result.tallies == tallies).all()
    assert result.sets == pytest.approx(np.array(sets, dtype=float), abs=1e-12)
    assert result.total == pytest.approx(result.rows.sum(axis=0), abs=1e-12)


@settings(deadline=None, max_examples=50)
@given(rows.filter(len))
def test_turn_tallies_equal_scikit_learns_confusion_matrices(found: list[Unit]) -> None:
    gold, predicted = (np.array([row[k] for row in found], dtype=np.uint16) for k in (1, 2))
    spread = [(m[:, None] >> np.arange(16)) & 1 for m in (gold, predicted)]
    tables = multilabel_confusion_matrix(*spread, labels=list(range(16)))
    tallies = count(gold, predicted, i64(*(row[0] for row in found)), 6).tallies.sum(axis=0)
    assert (tallies[:, 0] == tables[:, 1, 1]).all()
    assert (tallies[:, 1] == tables[:, 0, 1]).all()
    assert (tallies[:, 2] == tables[:, 1, 0]).all()


@pytest.mark.parametrize("turns", [255, 256, 1021])
def test_counters_do_not_overflow_in_a_long_dialogue(turns: int) -> None:
    gold = np.full(turns + 2, 65535, dtype=np.uint16)
    predicted = gold.copy()
    predicted[1] = 0
    dialogue_of = np.ones(turns + 2, dtype=np.int64)
    dialogue_of[0], dialogue_of[-1] = 0, 2
    result = count(gold, predicted, dialogue_of, 3)
    assert (result.tallies[1] == [turns - 1, 0, 1]).all()
    assert (result.tallies[[0, 2]] == [1, 0, 0]).all()
    assert (count(gold, gold, 0 * dialogue_of, 1).tallies[0, :, 0] == turns + 2).all()


def test_a_wrong_turn_is_two_errors_at_turn_level_and_none_at_dialogue_level() -> None:
    gold, predicted, dialogue = u16(0, SH, 0), u16(SH, 0, 0), i64(0, 0, 0)
    turn = count(gold, predicted, dialogue, 1)
    assert turn.tallies.sum(axis=(0, 1)).tolist() == [0, 1, 1]
    assert turn.sets.tolist() == [[3, 1, 1]]
    whole = count(gold, predicted, dialogue, 1, level="dialogue")
    assert whole.tallies.sum(axis=(0, 1)).tolist() == [1, 0, 0]
    assert whole.sets.tolist() == [[1, 1, 1]]


def test_confirm_level_sees_no_alerts() -> None:
    # Gold {alert, SH}, predicted {alert, SH, DV}: without alerts the intersection has 1 label
    # of 2, with them 2 of 3.
    gold, predicted = u16(A, SH), u16(A, SH | DV)
    for level, jaccard in (("dialogue", 2 / 3), ("confirm", 1 / 2)):
        result = count(gold, predicted, i64(0, 0), 1, level=level)
        assert result.sets.tolist() == [[1, 0, jaccard]]
    assert not result.tallies[:, :2].any()


def test_an_empty_confirm_set_on_both_sides_is_where_the_convention_bites() -> None:
    gold, predicted = u16(A), u16(P)
    for empty in (0.0, 1.0):
        chosen = Conventions(empty_jaccard=empty)
        result = count(gold, predicted, i64(0), 1, level="confirm", conventions=chosen)
        assert result.sets.tolist() == [[1, 1, empty]]


@pytest.mark.parametrize(
    ("unparsed", "turn", "dialogue"),
    [
        # Three turns: a hit, an unreadable answer on a turn with DV, and one on an empty turn.
        # Union of the gold labels: {SH, DV}; of the tags: {SH}.
        ("miss", [3, 1, 1], [1, 0, 1 / 2]),
        ("none", [3, 2, 2], [1, 0, 1 / 2]),
        ("exclude", [1, 1, 1], [1, 1, 1]),
    ],
)
def test_unreadable_answers_follow_the_convention(
    unparsed: Unparsed, turn: list[float], dialogue: list[float]
) -> None:
    gold, predicted, answered = u16(SH, DV, 0), u16(SH, 0, 0), np.array([True, False, False])
    for level, sets in (("turn", turn), ("dialogue", dialogue)):
        result = count(
            gold,
            predicted,
            i64(0, 0, 0),
            1,
            level=level,
            conventions=Conventions(unparsed=unparsed),
            answered=answered,
        )
        assert result.sets.tolist() == [sets]


def test_silence_in_a_dialogue_without_gold_labels_is_no_agreement() -> None:
    gold, answered = u16(0, 0, 0, 0), np.array([True, False, True, True])
    result = count(gold, gold, i64(0, 0, 1, 1), 2, level="dialogue", answered=answered)
    assert result.sets.tolist() == [[1, 0, 0], [1, 1, 1]]


def test_what_stands_where_no_answer_could_be_read_tags_nothing() -> None:
    result = count(u16(SH), u16(SH), i64(0), 1, answered=np.array([False]))
    assert result.tallies.sum(axis=(0, 1)).tolist() == [0, 0, 1]


def test_dialogues_without_rows_have_no_units() -> None:
    for level in LEVELS:
        result = count(u16(SH), u16(SH), i64(1), 3, level=level)
        assert result.sets[:, 0].tolist() == [0, 1, 0]
        assert not count(u16(), u16(), i64(), 2, level=level).total.any()


def test_callers_arrays_are_left_alone() -> None:
    gold, predicted, answered = u16(0, SH), u16(0, SH), np.array([False, False])
    count(gold, predicted, i64(0, 0), 1, answered=answered)
    assert predicted.tolist() == [0, SH]
    assert not answered.any()


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"predicted": u16(0)}, "predicted has shape"),
        ({"gold": np.zeros(2, dtype=np.int64)}, "gold has type int64. Expected uint16"),
        ({"dialogue_of": i64(1, 0)}, "not ascending"),
        ({"dialogue_of": i64(0, 2)}, "0 to 2, but there are 2 dialogues"),
        ({"dialogue_of": i64(-1, 0)}, "-1 to 0"),
        ({"dialogue_of": np.zeros(2)}, "type float64"),
        ({"answered": np.array([True])}, "answered has shape"),
        ({"level": "word"}, "no level 'word'"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(changed: dict[str, Any], message: str) -> None:
    given = {"gold": u16(0, 0), "predicted": u16(0, 0), "dialogue_of": i64(0, 1), "n": 2} | changed
    with pytest.raises(ScoringError, match=message):
        count(**given)
