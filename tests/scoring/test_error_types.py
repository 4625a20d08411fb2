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
from cradle_lib.scoring.confusion import CELLS
from cradle_lib.scoring.error_types import (
    KINDS,
    Category,
    ErrorKind,
    classify,
    error_counts,
    kind_of,
    label_pairs,
)
from cradle_lib.scoring.stage_orders import ORDERS, orders_of, stage_orders

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
    pairs = classify(rows.gold, rows.predicted, rows.dialogue_of)
    expected = [category] if isinstance(category, str) else category
    assert pairs["category"].dropna().tolist() == expected


@pytest.mark.parametrize(
    ("gold", "predicted", "kind"),
    [
        ("none", "alert_past", "false_positive"),
        ("confirm_RA_past", "none", "false_negative"),
        ("confirm_DV_ongoing", "confirm_DV_past", "temporal"),
        ("alert_ongoing", "alert_past", "temporal"),
        ("alert_ongoing", "confirm_SI_passive_ongoing", "stage"),
        ("confirm_SH_past", "alert_past", "stage"),
        ("alert_past", "confirm_SH_ongoing", "stage"),
        ("confirm_SI_passive_ongoing", "confirm_SI_active_ongoing", "type"),
        ("confirm_SHA_past", "confirm_RA_ongoing", "type"),
        ("confirm_SHA_past", "confirm_SHA_past", None),
        ("none", "none", None),
    ],
)
def test_a_pair_of_labels_has_one_kind(gold: str, predicted: str, kind: str | None) -> None:
    assert kind_of(CELLS.index(gold), CELLS.index(predicted)) == kind


@settings(deadline=None, max_examples=100)
@given(dialogues)
def test_categories_add_up_to_every_total_and_agree_with_their_kinds(turns: Turns) -> None:
    rows = rows_of(turns)
    pairs = classify(rows.gold, rows.predicted, rows.dialogue_of)
    errors = pairs.dropna(subset="category")
    assert (pairs["category"].isna() == (pairs["gold"] == pairs["tagged"])).all()
    assert pairs["row"].is_monotonic_increasing
    for error in errors.itertuples():
        cell = CELLS.index(error.gold), CELLS.index(error.tagged)
        assert KINDS[Category(error.category)] is kind_of(*cell)
    counted = Counter(KINDS[Category(name)] for name in errors["category"])
    # The tallies, counted bit by bit, are the outside totals.
    fp = sum((tag & ~gold).bit_count() for d in turns for gold, tag in d)
    fn = sum((gold & ~tag).bit_count() for d in turns for gold, tag in d)
    both = len(errors) - counted["false_positive"] - counted["false_negative"]
    assert fp == counted["false_positive"] + both
    assert fn == counted["false_negative"] + both
    # A label is tagged for the first time once per dialogue; all other tags may be repeats.
    tags = sum(tag.bit_count() for d in turns for _, tag in d)
    firsts = sum(reduce(or_, (tag for _, tag in d)).bit_count() for d in turns)
    assert (errors["category"] == "too_late").sum() <= firsts
    assert (errors["category"] == "repeated").sum() <= tags - firsts


def test_a_profile_of_worked_turns(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    sip = BITS["confirm_SI_passive_ongoing"]
    gold = [AO, AO, AP, DVO, SHP, 0, 0, 0, SHO]
    tags = [sip, 0, AO, DVP, DVP, AO | SHO, 0, 0, SHO]
    run = make_predictions(make_corpus([[("U", mask) for mask in gold]]), tags)
    found = error_counts(run).set_index("quantity")["value"]
    # Every wrong label is one false positive: turns 1, 3, 4, 5 and two on turn 6.
    assert (found["fp"], found["fn"], found["fp_alert_ongoing"]) == (6, 5, 2)
    assert found["gold_negative_turns_flagged"] == 1 / 3
    assert (found["alert_to_none"], found["alert_to_confirm"]) == (1, 1)
    # The third turn and the fourth.
    assert found["temporal"] == 2
    assert found["alert_ongoing_to_si_passive_ongoing"] == 1
    kinds = label_pairs(run)["category"].dropna().map(lambda name: KINDS[Category(name)])
    assert Counter(kinds) == {
        ErrorKind.FALSE_POSITIVE: 2,  # both tags of the sixth turn
        ErrorKind.FALSE_NEGATIVE: 1,  # the second turn
        ErrorKind.TEMPORAL: 2,  # the third and the fourth
        ErrorKind.STAGE: 1,  # the first
        ErrorKind.TYPE: 1,  # the fifth
    }


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
        found = [ORDERS[i] for i in orders_of(masks, rows.dialogue_of, n)]
        assert found == [order_of([turn[side] for turn in d]) for d in turns]
