"""Pairs of gold and predicted labels, compared with all permutations, SciPy and worked examples."""

from __future__ import annotations

from collections import Counter
from itertools import permutations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linear_sum_assignment

from cradle_lib.labels import BITS, LABELS, labels_of
from cradle_lib.scoring.analyses.error_counts import error_counts
from cradle_lib.scoring.analyses.stage_orders import ORDERS, stage_orders
from cradle_lib.scoring.label_pairs import CELLS, KINDS, kind_of, label_pairs, pair, similarity

from .made_runs import AO, AP, DVO, DVP, SHO, SHP, Turns, bits, dialogues, masks, run_of


def by_permutations(gold: int, predicted: int) -> list[tuple[str, str]]:
    """Sorts all pairings by the documented rules and returns the first."""
    golds = [i for i in range(16) if gold >> i & 1]
    rest = [i for i in golds if not predicted >> i & 1]
    added = [i for i in range(16) if (predicted & ~gold) >> i & 1]
    partners = added + [16] * max(0, len(rest) - len(added))

    def order(chosen: tuple[int, ...]) -> tuple[int, tuple[int, ...]]:
        labels = [(LABELS[g], LABELS[p]) for g, p in zip(rest, chosen, strict=True) if p != 16]
        return -sum(similarity(*both) for both in labels), chosen

    best = min(set(permutations(partners, len(rest))), key=order)
    partner = dict(zip(rest, best, strict=True))
    pairs = [(i, partner.get(i, i)) for i in golds] + [(16, i) for i in added if i not in best]
    return [(CELLS[g], CELLS[p]) for g, p in pairs or [(16, 16)]]


@settings(deadline=None, max_examples=100)
@given(masks, masks)
def test_the_pairing_is_the_best_of_all_permutations(gold: int, predicted: int) -> None:
    assert list(pair(gold, predicted)) == by_permutations(gold, predicted)


@pytest.mark.parametrize(("gold", "predicted"), [(0xFFFF, 0), (0xFF, 0xFF00), (0xFFF0, 0xF)])
def test_turns_with_all_sixteen_labels_are_paired_like_scipy(gold: int, predicted: int) -> None:
    golds, tags = labels_of(gold), labels_of(predicted)
    table = np.array([[similarity(one, other) for other in tags] for one in golds]).reshape(
        len(golds), len(tags)
    )
    rows, columns = linear_sum_assignment(table, maximize=True)
    found = pair(gold, predicted)
    assert sum(other != "none" for _, other in found) == len(rows)
    assert sum(similarity(*cell) for cell in found) == table[rows, columns].sum()


def test_temporal_swaps_are_preferred_to_wrong_types_and_these_to_wrong_stages() -> None:
    assert pair(DVO | SHP, DVP | SHO) == (
        ("confirm_SH_past", "confirm_SH_ongoing"),
        ("confirm_DV_ongoing", "confirm_DV_past"),
    )
    assert pair(DVP, SHP | DVO) == (
        ("confirm_DV_past", "confirm_DV_ongoing"),
        ("none", "confirm_SH_past"),
    )
    passive = "confirm_SI_passive_ongoing"
    assert pair(AO | SHO, BITS[passive]) == (
        ("alert_ongoing", "none"),
        ("confirm_SH_ongoing", passive),
    )


@pytest.mark.parametrize(
    ("turns", "categories"),
    [
        ([(AO, 0)], ["missed_alert"]),
        ([(SHO, 0)], ["missed_confirm"]),
        ([(AP, SHO)], ["over_confirmed"]),
        ([(SHO, AO)], ["under_confirmed"]),
        ([(SHO, SHP)], ["temporal_swap"]),
        ([(SHO, DVO)], ["wrong_type"]),
        ([(0, SHO), (SHO, SHO)], ["too_early"]),
        ([(SHO, SHO), (0, SHO)], ["repeated"]),
        # The alert is predicted one turn late, and then again.
        ([(AO, 0), (0, AO), (0, AO)], ["missed_alert", "too_late", "repeated"]),
        # Predicted before it was gold, and again afterwards.
        ([(0, SHO), (SHO, 0), (0, SHO)], ["too_early", "missed_confirm", "repeated"]),
        ([(0, SHO), (0, 0)], ["unfounded"]),
        # The same label in another temporal state is another label.
        ([(0, SHP), (SHO, SHO)], ["unfounded"]),
    ],
)
def test_categories_of_worked_errors(turns: list[tuple[int, int]], categories: list[str]) -> None:
    # Neighbouring dialogues with the same labels must not matter.
    other = [(SHO | SHP, SHO | SHP)]
    pairs = label_pairs(run_of([other, turns, other]))
    assert pairs["category"].dropna().tolist() == categories


@settings(deadline=None, max_examples=20)
@given(dialogues)
def test_every_label_is_in_one_pair_and_categories_sum_to_the_totals(turns: Turns) -> None:
    run = run_of(turns)
    pairs, gold, predicted = label_pairs(run), bits(run.corpus.gold), bits(run.masks)
    for place, label in enumerate(LABELS):
        assert (pairs["gold"] == label).sum() == gold[:, place].sum()
        assert (pairs["predicted"] == label).sum() == predicted[:, place].sum()
    errors = pairs.dropna(subset="category")
    same = pairs["gold"].astype(str) == pairs["predicted"].astype(str)
    assert (pairs["category"].isna() == same).all()
    for error in errors.itertuples():
        assert KINDS[error.category] == kind_of(error.gold, error.predicted)
    # The totals, counted bit by bit.
    kinds = Counter(KINDS[name] for name in errors["category"])
    both = len(errors) - kinds["false_positive"] - kinds["false_negative"]
    assert (predicted > gold).sum() == kinds["false_positive"] + both
    assert (gold > predicted).sum() == kinds["false_negative"] + both


def test_unusable_answers_are_not_none_and_an_empty_run_has_the_same_columns() -> None:
    run = run_of([[(AO | SHO, AO | SHP), (0, 0)], [(DVP, 0), (0, AP)]], "ouuo")
    found = label_pairs(run)
    shown = found[["dialogue", "turn", "gold", "predicted", "category"]].astype(object)
    unusable = "unusable answer"
    assert shown.where(shown.notna(), None).to_numpy().tolist() == [
        ["d0000", 0, "alert_ongoing", "alert_ongoing", None],
        ["d0000", 0, "confirm_SH_ongoing", "confirm_SH_past", "temporal_swap"],
        ["d0000", 1, "none", unusable, None],
        ["d0001", 0, "confirm_DV_past", unusable, "missed_confirm"],
        ["d0001", 1, "none", "alert_past", "unfounded"],
    ]
    nothing = label_pairs(run.subset(run.corpus.subset([], "empty")))
    assert nothing.columns.tolist() == found.columns.tolist()
    assert nothing["category"].dtype == found["category"].dtype


def test_error_counts_of_the_paper_in_a_worked_example() -> None:
    passive = BITS["confirm_SI_passive_ongoing"]
    gold = [AO, AO, AP, DVO, SHP, 0, 0, 0, SHO]
    predicted = [passive, 0, AO, DVP, DVP, AO | SHO, 0, 0, SHO]
    frame = error_counts(run_of([list(zip(gold, predicted, strict=True))])).set_index("quantity")
    assert frame["value"].to_dict() == {
        # Every wrong label is one false positive: turns 1, 3, 4, 5 and two on turn 6.
        "fp": 6,
        "fp_alert_ongoing": 2,
        "gold_negative_turns_flagged": 1 / 3,
        "fn": 5,
        "alert_to_none": 1,
        "alert_to_confirm": 1,
        # The third turn and the fourth.
        "temporal": 2,
        "alert_ongoing_to_si_passive_ongoing": 1,
    }
    labelled = error_counts(run_of([[(AP, 0)]])).set_index("quantity")["value"]
    assert np.isnan(labelled["gold_negative_turns_flagged"])


def test_each_combination_of_stage_orders_is_counted() -> None:
    sides = {
        "neither": [0, 0, 0],
        "alert_only": [0, AO, AP],
        "confirm_only": [SHO, 0, DVP],
        "alert_first": [0, AO, AO | SHO],
        "same_turn": [0, AP | SHO, AO],
        "confirm_first": [DVP, AO, SHO],
    }
    assert tuple(sides) == ORDERS
    turns = [
        list(zip(gold, sides[name], strict=True)) for gold in sides.values() for name in ORDERS
    ]
    frame = stage_orders(run_of([*turns, turns[1]]))
    assert frame["value"].tolist() == [1, 2, *[1] * 34]
    assert frame["dialogues"].tolist() == [*[7] * 6, *[6] * 30]
    cells = frame[["gold", "predicted"]].astype(str).to_numpy().tolist()
    assert cells == [[one, other] for one in ORDERS for other in ORDERS]
