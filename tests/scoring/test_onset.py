from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from statsmodels.duration.survfunc import CumIncidenceRight

from cradle_lib.labels import BITS
from cradle_lib.scoring.timing import (
    detected,
    longest_dialogue,
    median_delay,
    onset_outcomes,
    onset_rows,
)

from .test_windows import AO, dialogues, rows_of

Turns = list[list[tuple[int, int]]]


def brute(turns: Turns) -> tuple[list[int], list[tuple[int, bool]]]:
    """What became of each onset, one by one: premature ones, and (time, whether tagged)."""
    premature, times = [], []
    for d in turns:
        for bit in BITS.values():
            gold, tags = ([k for k, turn in enumerate(d) if turn[s] & bit] for s in (0, 1))
            if not gold:
                continue
            if not tags:
                times.append((len(d) - 1 - gold[0], False))
            elif tags[0] < gold[0]:
                premature.append(gold[0])
            else:
                times.append((tags[0] - gold[0], True))
    return premature, times


@settings(deadline=None, max_examples=100)
@given(dialogues)
def test_outcomes_and_delays_are_those_of_a_loop(turns: Turns) -> None:
    rows, n = rows_of(turns), len(turns)
    longest = longest_dialogue(rows)
    assert longest == max(map(len, turns))
    total = onset_rows(rows, n, longest).sum(axis=(0, 1), dtype=float)
    premature, times = brute(turns)
    onsets = len(premature) + len(times)
    assert total.sum() == onsets
    if not onsets:
        assert np.isnan(onset_outcomes(total)).all()
        assert np.isnan(median_delay(total))
        return
    expected = [
        len(premature),
        sum(t == 0 and hit for t, hit in times),
        sum(t > 0 and hit for t, hit in times),
        sum(not hit for _, hit in times),
    ]
    assert onset_outcomes(total) == pytest.approx(np.array(expected) / onsets)
    for w in range(longest):
        share = sum(t <= w and hit for t, hit in times) / onsets
        assert detected(total)[w] == pytest.approx(share)


@settings(deadline=None, max_examples=100)
@given(dialogues)
def test_the_curve_of_detection_is_the_cumulative_incidence_of_statsmodels(turns: Turns) -> None:
    rows, n = rows_of(turns), len(turns)
    longest = longest_dialogue(rows)
    total = onset_rows(rows, n, longest).sum(axis=(0, 1), dtype=float)
    premature, times = brute(turns)
    onsets = len(premature) + len(times)
    if not onsets:
        return
    # Event 1 is a tag after k turns, counted from 1 there; the two other final states are event 2
    # (before any tag that counts) and event 3 (after the last turn). None is censored.
    late = [t + 2 for t, hit in times if hit]
    never = len(times) - len(late)
    when = [1] * len(premature) + late + [longest + 2] * never
    what = [2] * len(premature) + [1] * len(late) + [3] * never
    # Its standard errors, which are not looked at, divide by those still at risk.
    with np.errstate(divide="ignore", invalid="ignore"):
        theirs = CumIncidenceRight(when, what)
    ours = detected(total)
    for d in range(longest):
        before = theirs.cinc[0][theirs.times <= d + 2] if len(late) else []
        assert ours[d] == pytest.approx(before[-1] if len(before) else 0, abs=1e-12)
    reached = [d for d in range(longest) if sum(t <= d + 2 for t in late) >= onsets / 2]
    assert median_delay(total) == (min(reached) if reached else math.inf)


def test_never_is_a_final_state_and_not_one_of_waiting() -> None:
    # Ten onsets: two on time, one after one turn, seven never, six of them on the last turn of
    # their dialogue. Kaplan and Meier would censor these six, leave two at risk after one turn
    # (8/10 * 1/2) and put the median there; but seven of ten were never detected.
    turns: Turns = [
        *[[(AO, AO)]] * 2, [(AO, 0), (0, AO)], [(AO, 0), (0, 0)], *[[(0, 0), (AO, 0)]] * 6
    ]  # fmt: skip
    total = onset_rows(rows_of(turns), 10, 2).sum(axis=(0, 1), dtype=float)
    assert detected(total) == pytest.approx([0.2, 0.3])
    assert median_delay(total) == math.inf
    assert onset_outcomes(total) == pytest.approx([0, 0.2, 0.1, 0.7])


def test_a_worked_curve_of_detection() -> None:
    # Delays 0, 1, 1; two never, one premature: all six stay in the denominator.
    total = np.array([1.0, 2, 0, 2, 1])
    assert detected(total) == pytest.approx([1 / 6, 3 / 6, 3 / 6])
    assert median_delay(total) == 1
    assert onset_outcomes(total) == pytest.approx([1 / 6, 1 / 6, 2 / 6, 2 / 6])


def test_a_median_that_is_never_reached_is_infinite() -> None:
    assert median_delay(np.array([1.0, 0, 2, 0])) == math.inf
    # Exactly one half is reached.
    assert median_delay(np.array([1.0, 0, 1, 0])) == 0
    # Tagged too early is not detected.
    assert median_delay(np.array([1.0, 0, 0, 2])) == math.inf
