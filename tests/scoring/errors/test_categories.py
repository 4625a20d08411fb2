from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from functools import reduce
from operator import or_

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import ALERT_MASK, BITS, CONFIRM_MASK
from cradle_lib.scoring.errors.categories import (
    MISSED,
    SPARE,
    Category,
    analyse,
    analyse_masks,
    categorize,
    label_pairs,
)
from cradle_lib.scoring.errors.error_kinds import find_errors
from cradle_lib.scoring.errors.escalation import ORDERS, escalation, orders, stage_orders

from ..timing.test_windows import AO, DVP, SHO, dialogues, rows_of

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


@pytest.fixture
def run(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> Predictions:
    """Eighty dialogues, in which about every third turn has labels, right and wrong tags."""
    generator = np.random.default_rng(8)
    labels = [0, 0, 0, AO, AP, SHO, DVP, AO | SHO]
    corpus = make_corpus(
        [
            [("U", int(generator.choice(labels))) for _ in range(generator.integers(1, 6))]
            for _ in range(80)
        ]
    )
    others = generator.choice(labels, len(corpus.gold))
    tags = np.where(generator.random(len(corpus.gold)) < 0.5, corpus.gold, others)
    return make_predictions(corpus, tags.tolist())


def test_worked_pairs(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = make_corpus([[("L", 0), ("U", AO | SHO), ("U", 0)], [("U", DVP), ("U", 0)]])
    found = label_pairs(make_predictions(corpus, [AO | SHP, 0, 0, AP]))
    shown = found[["dialogue", "turn", "position", "gold", "tagged", "category"]].astype(object)
    nothing = ("none", "none", None)
    assert shown.where(shown.notna(), None).to_numpy().tolist() == [
        ["d0000", 1, 1, "alert_ongoing", "alert_ongoing", None],
        ["d0000", 1, 1, "confirm_SH_ongoing", "confirm_SH_past", "temporal_swap"],
        ["d0000", 2, 2, *nothing],
        ["d0001", 0, 1, "confirm_DV_past", "none", "missed_confirm"],
        ["d0001", 1, 2, "none", "alert_past", "unfounded"],
    ]
    types = found[["gold_type", "tagged_type"]].astype(object)
    assert types.where(types.notna(), None).to_numpy().tolist() == [
        ["alert", "alert"], ["SH", "SH"], [None, None], ["DV", None], [None, "alert"]
    ]  # fmt: skip


def test_every_label_and_every_tag_is_in_one_pair(run: Predictions) -> None:
    found, gold, tags = label_pairs(run), run.corpus.gold, run.masks
    for label, bit in BITS.items():
        assert (found["gold"] == label).sum() == ((gold & bit) != 0).sum()
        assert (found["tagged"] == label).sum() == ((tags & bit) != 0).sum()
    silent = (found["gold"] == "none") & (found["tagged"] == "none")
    assert silent.sum() == ((gold | tags) == 0).sum()
    errors = found[found["category"].notna()]
    assert (errors["gold"] != "none").sum() == sum(m.bit_count() for m in (gold & ~tags).tolist())
    assert (errors["tagged"] != "none").sum() == sum(m.bit_count() for m in (tags & ~gold).tolist())
    alone = analyse(run).categories
    assert errors["category"].value_counts().to_dict() == {str(k): n for k, n in alone.items()}
    nothing = label_pairs(run.subset(run.corpus.subset([], "empty")))
    assert not len(nothing)
    mine = ["gold", "tagged", "gold_type", "tagged_type", "category"]
    pd.testing.assert_series_equal(nothing[mine].dtypes, found[mine].dtypes)
    assert nothing.columns.tolist() == found.columns.tolist()


def test_orders_of_a_run_are_those_of_its_dialogues_one_by_one(run: Predictions) -> None:
    frame = stage_orders(run)
    sides: list[tuple[str, str]] = []
    for number in range(len(run.corpus)):
        own = run.corpus.dialogue_of == number
        gold, tags = run.corpus.gold[own].tolist(), run.masks[own].tolist()
        sides.append((order_of(gold), order_of(tags)))
    counted = frame.set_index(["gold", "tagged"])["value"]
    assert {k: n for k, n in counted.items() if n} == dict(Counter(sides))
    whole = dict(Counter(gold for gold, _ in sides))
    assert {k: n for k, n in zip(frame["gold"], frame["dialogues"], strict=True) if n} == whole
    assert len(frame) == len(ORDERS) ** 2


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
