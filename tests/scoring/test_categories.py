from __future__ import annotations

from collections import Counter
from functools import reduce
from operator import or_

import numpy as np
import pytest
from hypothesis import given, settings

from cradle_lib.labels import ALERT_MASK, BITS, CONFIRM_MASK
from cradle_lib.scoring.categories import MISSED, SPARE, Category, analyse_masks, categorize, most
from cradle_lib.scoring.errors import find_errors
from cradle_lib.scoring.escalation import ORDERS, escalation, orders

from .test_windows import AO, DVP, SHO, dialogues, rows_of

AP, SHP, DVO = BITS["alert_past"], BITS["confirm_SH_past"], BITS["confirm_DV_ongoing"]
Turns = list[list[tuple[int, int]]]


@pytest.mark.parametrize(
    ("turns", "category"),
    [
        ([(AO, 0)], "missed_alert"),
        ([(SHO, 0)], "missed_confirm"),
        ([(AP, SHO)], "over_confirmed"),
        ([(SHO, AO)], "under_confirmed"),
        ([(SHO, SHP)], "temporal_swap"),
        ([(AO, AP)], "temporal_swap"),
        ([(SHO, DVO)], "wrong_type"),
        ([(0, SHO), (SHO, SHO)], "too_early"),
        ([(SHO, SHO), (0, SHO)], "repeated"),
        ([(SHO, SHO), (0, SHO), (SHO, SHO)], "repeated"),
        ([(SHO, SHP), (SHO, SHO), (0, SHO)], ["temporal_swap", "repeated"]),
        # gold [AO, 0, 0], tags [0, AO, 0]: one tag that comes a turn late, not a repeat.
        ([(AO, 0), (0, AO), (0, 0)], ["missed_alert", "too_late"]),
        ([(AO, 0), (0, AO), (0, AO)], ["missed_alert", "too_late", "repeated"]),
        ([(SHO, 0), (0, SHO), (SHO, SHO)], ["missed_confirm", "too_late"]),
        # Tagged before it was gold, and again afterwards.
        ([(0, SHO), (SHO, 0), (0, SHO)], ["too_early", "missed_confirm", "repeated"]),
        ([(0, SHO), (0, 0)], "unfounded"),
        # The same label in another temporal state is another label.
        ([(0, SHP), (SHO, SHO)], "unfounded"),
    ],
)
def test_worked_errors_have_their_categories(
    turns: list[tuple[int, int]], category: str | list[str]
) -> None:
    # The dialogue before has the same labels, and must not matter.
    rows = rows_of([[(SHO | SHP, SHO | SHP)], turns, [(SHO | SHP, SHO | SHP)]])
    errors = find_errors(rows.gold, rows.predicted)
    expected = [category] if isinstance(category, str) else category
    assert categorize(errors, rows.gold, rows.predicted, rows.dialogue_of) == expected


@settings(deadline=None, max_examples=100)
@given(dialogues)
def test_categories_are_exclusive_and_add_up_to_every_total(turns: Turns) -> None:
    rows = rows_of(turns)
    errors = find_errors(rows.gold, rows.predicted)
    sorted_out = categorize(errors, rows.gold, rows.predicted, rows.dialogue_of)
    found = analyse_masks(rows.gold, rows.predicted, rows.dialogue_of)
    assert len(sorted_out) == len(errors) == sum(found.categories.values())
    assert Counter(sorted_out) == Counter({k: v for k, v in found.categories.items() if v})
    # The tallies, counted bit by bit, are the outside totals.
    made_up = sum((tag & ~gold).bit_count() for d in turns for gold, tag in d)
    missed = sum((gold & ~tag).bit_count() for d in turns for gold, tag in d)
    spare = sum(found.categories[c] for c in SPARE)
    unanswered = sum(found.categories[c] for c in MISSED)
    swapped = len(errors) - spare - unanswered
    assert found.profile.false_positives == made_up == spare + swapped
    assert found.profile.false_negatives == missed == unanswered + swapped
    assert sum(found.confirmed_alerts.values()) == found.categories[Category.OVER_CONFIRMED]
    assert sum(found.wrong_types.values()) == found.categories[Category.WRONG_TYPE]
    assert sum(found.profile.temporal_swaps.values()) == found.categories[Category.TEMPORAL_SWAP]
    assert found.profile.alert_to_none == found.categories[Category.MISSED_ALERT]
    # A label is tagged for the first time once per dialogue; all other tags may be repeats.
    tags = sum(tag.bit_count() for d in turns for _, tag in d)
    firsts = sum(reduce(or_, (tag for _, tag in d)).bit_count() for d in turns)
    assert found.categories[Category.TOO_LATE] <= firsts
    assert found.categories[Category.REPEATED] <= tags - firsts


def test_the_dominant_labels_are_named() -> None:
    rows = rows_of([[(0, AO), (0, AO | SHO), (DVP, 0), (SHO, SHO)]])
    found = analyse_masks(rows.gold, rows.predicted, rows.dialogue_of)
    assert found.made_up_most == ("alert_ongoing", 2)
    assert found.missed_most == ("confirm_DV_past", 1)
    assert most({"a": 0}) is None
    assert most({}) is None


def order_of(masks: list[int]) -> str:
    alert = next((k for k, m in enumerate(masks) if m & ALERT_MASK), None)
    confirm = next((k for k, m in enumerate(masks) if m & CONFIRM_MASK), None)
    if alert is None or confirm is None:
        return {
            (True, True): "neither",
            (False, True): "alert_only",
            (True, False): "confirm_only",
        }[alert is None, confirm is None]
    if alert == confirm:
        return "same_turn"
    return "alert_first" if alert < confirm else "confirm_first"


@settings(deadline=None, max_examples=100)
@given(dialogues)
def test_every_dialogue_has_one_order_on_each_side(turns: Turns) -> None:
    rows, n = rows_of(turns), len(turns)
    for side, masks in enumerate((rows.gold, rows.predicted)):
        found = [ORDERS[i] for i in orders(masks, rows.dialogue_of, n)]
        assert found == [order_of([turn[side] for turn in d]) for d in turns]
    table = escalation(rows.gold, rows.predicted, rows.dialogue_of, n)
    assert table.sum() == n
    golds = Counter(order_of([gold for gold, _ in d]) for d in turns)
    assert table.sum(axis=1).tolist() == [golds[name] for name in ORDERS]
    assert np.trace(table) == sum(
        order_of([g for g, _ in d]) == order_of([t for _, t in d]) for d in turns
    )
