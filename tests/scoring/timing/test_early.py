from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings

from cradle_lib.scoring.timing.early import (
    decision_rows,
    erde,
    latency,
    latency_f1,
    penalty,
    penalty_rate,
    positives,
)
from cradle_lib.scoring.timing.occurrences import SCOPES
from cradle_lib.scoring.timing.onset import longest_dialogue

from .test_windows import AO, SHO, dialogues, rows_of

Turns = list[list[tuple[int, int]]]


def brute(turns: Turns, scope: int, o: float, p: float) -> tuple[float, float]:
    """ERDE and latency-weighted F1, subject by subject, as their papers define them."""
    gold = [any(g & scope for g, _ in d) for d in turns]
    first = [next((k for k, (_, tag) in enumerate(d, 1) if tag & scope), None) for d in turns]
    share = sum(gold) / len(turns)
    costs, penalties = [], []
    for positive, k in zip(gold, first, strict=True):
        if positive and k is not None:
            costs.append(1 - 1 / (1 + math.exp(k - o)))
            penalties.append(-1 + 2 / (1 + math.exp(-p * (k - 1))))
        else:
            costs.append(share if k is not None else float(positive))
    hits = len(penalties)
    wrong = sum((k is not None) != positive for positive, k in zip(gold, first, strict=True))
    if not hits:
        return sum(costs) / len(turns), 0.0
    f1 = 2 * hits / (2 * hits + wrong)
    return sum(costs) / len(turns), f1 * (1 - float(np.median(penalties)))


@settings(deadline=None, max_examples=100)
@given(dialogues)
def test_both_measures_are_those_of_a_loop(turns: Turns) -> None:
    rows, n = rows_of(turns), len(turns)
    totals = decision_rows(rows, n, longest_dialogue(rows)).sum(axis=0, dtype=float)
    assert (totals.sum(axis=1) == n).all()
    cost = positives(totals) / n
    for place, scope in enumerate(SCOPES.values()):
        for o in (2, 5):
            expected, weighted = brute(turns, scope, o, 0.3)
            assert erde(totals, o, cost)[place] == pytest.approx(expected, abs=1e-12)
        assert latency_f1(totals, 0.3)[place] == pytest.approx(weighted, abs=1e-12)


def test_the_cost_of_delay_is_that_of_losada_and_crestani() -> None:
    # lc_o(k) = 1 - 1 / (1 + e^(k - o)): at o = 5 the costs of turns 1, 3, 5, 7 are
    # 1 - 1/(1 + e^-4) = 0.0180, 1 - 1/(1 + e^-2) = 0.1192, 1/2 and 1 - 1/(1 + e^2) = 0.8808.
    for turn, cost in ((1, 0.0180), (3, 0.1192), (5, 0.5), (7, 0.8808)):
        totals = np.zeros(10)
        totals[turn - 1] = 1
        assert erde(totals, 5, np.array(1.0)) == pytest.approx(cost, abs=5e-5)


def test_a_worked_erde() -> None:
    # Four dialogues, two positive: found on turn 2, missed; two negative: one flagged, one not.
    # ERDE_2 = (1/2 + 1 + 2/4 + 0) / 4 = 1/2.
    rows = rows_of([[(AO, 0), (0, SHO)], [(0, 0), (SHO, 0)], [(0, AO), (0, 0)], [(0, 0), (0, 0)]])
    totals = decision_rows(rows, 4, 2).sum(axis=0, dtype=float)
    assert positives(totals)[0] == 2
    assert erde(totals, 2, positives(totals) / 4)[0] == pytest.approx(0.5)
    assert latency(totals)[0] == 2


def test_the_penalty_is_that_of_sadeque_and_others() -> None:
    # ln 3 makes 2 / (1 + e^-ln 3) = 2 / (4/3) = 3/2: one half at the median dialogue's end.
    p = penalty_rate(np.array([4, 9, 12]))
    assert p == pytest.approx(math.log(3) / 8)
    assert penalty(np.array([1.0, 9.0]), p) == pytest.approx([0, 0.5])
    # With the published rate of 0.0078, turn 1 costs nothing, and a run of true positives
    # all on the turn where the penalty is one half keeps half its F1.
    assert float(penalty(np.array(1 + math.log(3) / 0.0078), 0.0078)) == pytest.approx(0.5)
    totals = np.zeros(12)
    totals[8] = 3
    assert latency_f1(totals, p) == pytest.approx(0.5)


def test_a_worked_latency_f1() -> None:
    # Found on turns 1, 3 and 5, one missed, one false alarm: F1 = 6/8. With p = ln 3 / 2 the
    # penalties are 0, -1 + 2/(1 + 1/3) = 1/2 and -1 + 2/(1 + 1/9) = 4/5; their median takes
    # half of it away.
    totals = np.array([1.0, 0, 1, 0, 1, 1, 1, 4])
    assert penalty(np.array([1.0, 3, 5]), math.log(3) / 2) == pytest.approx([0, 1 / 2, 4 / 5])
    assert latency_f1(totals, math.log(3) / 2) == pytest.approx(6 / 8 * 1 / 2)
    assert latency(totals) == 3


def test_without_a_true_positive_there_is_no_speed() -> None:
    totals = np.array([0.0, 0, 3, 2, 1])
    assert latency_f1(totals, 0.3) == 0
    assert math.isnan(latency(totals))


@pytest.mark.parametrize("lengths", [[], [1], [1, 1, 9]])
def test_where_nothing_can_be_late_there_is_no_rate_and_no_speed(lengths: list[int]) -> None:
    p = penalty_rate(np.array(lengths, dtype=np.int64))
    assert math.isnan(p)
    # One dialogue found on its only turn, another one missed; then nothing found at all.
    assert np.isnan(latency_f1(np.array([[1.0, 0, 1, 0], [0, 0, 1, 1]]), p)).all()
