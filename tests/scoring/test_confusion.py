from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS, LABELS, crisis_type, stage, temporal
from cradle_lib.scoring.confusion import CELLS, confusion, pair, similarity

# Up to four labels a side keep the permutations of the twin few.
small = st.sets(st.integers(0, 15), max_size=4).map(lambda bits: sum(1 << b for b in bits))


def mask(*names: str) -> int:
    return sum(BITS[name] for name in names)


def cells(gold: int, predicted: int) -> list[tuple[str, str]]:
    return [(CELLS[row], CELLS[column]) for row, column in pair(gold, predicted)]


def by_permutations(gold: int, predicted: int) -> list[tuple[int, int]]:
    """Tries every pairing; sorts by the documented rules; takes the first."""
    golds = [i for i in range(16) if gold >> i & 1]
    both = [i for i in golds if predicted >> i & 1]
    rest = [i for i in golds if i not in both]
    spare = [i for i in range(16) if predicted >> i & 1 and i not in both]
    seats = spare + [16] * max(0, len(rest) - len(spare))
    best = min(
        set(permutations(seats, len(rest))),
        key=lambda chosen: (
            -sum(
                similarity(LABELS[g], LABELS[p])
                for g, p in zip(rest, chosen, strict=True)
                if p != 16
            ),
            chosen,
        ),
    )
    partner = dict(zip(rest, best, strict=True))
    pairs = [(i, partner.get(i, i)) for i in golds]
    pairs += [(16, i) for i in spare if i not in best]
    return pairs or [(16, 16)]


@settings(deadline=None, max_examples=100)
@given(small, small)
def test_pairs_are_the_best_of_all_permutations(gold: int, predicted: int) -> None:
    assert list(pair(gold, predicted)) == by_permutations(gold, predicted)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.tuples(st.integers(0, 65535), st.integers(0, 65535)), max_size=8))
def test_every_gold_and_every_predicted_label_lands_in_exactly_one_cell(
    turns: list[tuple[int, int]],
) -> None:
    gold, predicted = (np.array([t[k] for t in turns], dtype=np.uint16) for k in (0, 1))
    matrix = confusion(gold, predicted)
    for i in range(16):
        assert matrix[i].sum() == (gold >> i & 1).sum()
        assert matrix[:, i].sum() == (predicted >> i & 1).sum()
        assert matrix[i, i] == (gold & predicted & 1 << i > 0).sum()
    assert matrix[16, 16] == ((gold | predicted) == 0).sum()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(small, small), max_size=20))
def test_the_matrix_is_the_sum_over_turns(turns: list[tuple[int, int]]) -> None:
    gold, predicted = (np.array([t[k] for t in turns], dtype=np.uint16) for k in (0, 1))
    expected = np.zeros((17, 17), dtype=np.int64)
    for turn in turns:
        for row, column in by_permutations(*turn):
            expected[row, column] += 1
    assert (confusion(gold, predicted) == expected).all()


@settings(deadline=None, max_examples=50)
@given(st.lists(st.tuples(small, small), max_size=20))
def test_all_pairs_are_those_of_two_loops(turns: list[tuple[int, int]]) -> None:
    gold, predicted = (np.array([t[k] for t in turns], dtype=np.uint16) for k in (0, 1))
    expected = np.zeros((17, 17), dtype=np.int64)
    for one, other in turns:
        for row in [i for i in range(16) if one >> i & 1] or [16]:
            for column in [i for i in range(16) if other >> i & 1] or [16]:
                expected[row, column] += 1
    assert (confusion(gold, predicted, pairing="all") == expected).all()


@pytest.mark.parametrize("gold", LABELS)
@pytest.mark.parametrize("predicted", LABELS)
def test_single_labels_are_read_off_whatever_they_are(gold: str, predicted: str) -> None:
    assert cells(BITS[gold], BITS[predicted]) == [(gold, predicted)]


def test_a_temporal_swap_is_preferred_to_a_wrong_type_and_that_to_a_wrong_stage() -> None:
    assert cells(
        mask("confirm_DV_ongoing", "confirm_SH_past"), mask("confirm_DV_past", "confirm_SH_ongoing")
    ) == [("confirm_SH_past", "confirm_SH_ongoing"), ("confirm_DV_ongoing", "confirm_DV_past")]
    assert cells(mask("confirm_DV_past"), mask("confirm_SH_past", "confirm_DV_ongoing")) == [
        ("confirm_DV_past", "confirm_DV_ongoing"),
        ("none", "confirm_SH_past"),
    ]
    assert cells(
        mask("alert_ongoing", "confirm_SH_ongoing"), mask("confirm_SI_passive_ongoing")
    ) == [("alert_ongoing", "none"), ("confirm_SH_ongoing", "confirm_SI_passive_ongoing")]


def test_what_is_left_over_goes_to_none() -> None:
    assert cells(0, 0) == [("none", "none")]
    assert cells(mask("confirm_RA_past"), 0) == [("confirm_RA_past", "none")]
    assert cells(0, mask("alert_past", "confirm_RA_past")) == [
        ("none", "alert_past"),
        ("none", "confirm_RA_past"),
    ]
    both = mask("alert_ongoing", "confirm_SH_ongoing")
    assert cells(both, mask("alert_ongoing")) == [
        ("alert_ongoing", "alert_ongoing"),
        ("confirm_SH_ongoing", "none"),
    ]


def test_similarity_orders_pairs_as_documented() -> None:
    def group(a: str, b: str) -> tuple[bool, bool, bool]:
        return (crisis_type(a) == crisis_type(b), stage(a) == stage(b), temporal(a) == temporal(b))

    every = [(a, b) for a in LABELS for b in LABELS]
    by_group = sorted(every, key=lambda ab: group(*ab))
    assert [similarity(a, b) for a, b in by_group] == sorted(similarity(a, b) for a, b in every)
    assert len({similarity(*ab) for ab in every}) == len({group(*ab) for ab in every})


def test_masks_of_different_length_are_refused() -> None:
    with pytest.raises(ScoringError, match="one of each per turn"):
        confusion(np.zeros(2, dtype=np.uint16), np.zeros(3, dtype=np.uint16))
