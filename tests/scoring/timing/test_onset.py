from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from statsmodels.duration.survfunc import SurvfuncRight

from cradle_lib.labels import BITS
from cradle_lib.scoring.timing.onset import (
    detected,
    lead_rows,
    lead_values,
    longest_dialogue,
    median_delay,
    onset_outcomes,
    onset_rows,
    waiting,
)

from .test_windows import AO, SHO, dialogues, rows_of

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
def test_the_waiting_curve_is_that_of_statsmodels(turns: Turns) -> None:
    rows, n = rows_of(turns), len(turns)
    longest = longest_dialogue(rows)
    total = onset_rows(rows, n, longest).sum(axis=(0, 1), dtype=float)
    _, times = brute(turns)
    if not times:
        return
    # statsmodels wants positive times, so that ours are counted from 1 there.
    theirs = SurvfuncRight([t + 1 for t, _ in times], [int(hit) for _, hit in times])
    ours = waiting(total)
    for day, share in zip(theirs.surv_times, theirs.surv_prob, strict=True):
        assert ours[int(day) - 1] == pytest.approx(share, abs=1e-12)
    reached = [
        t - 1 for t, s in zip(theirs.surv_times, theirs.surv_prob, strict=True) if s < 0.5 + 1e-9
    ]
    assert median_delay(total) == (min(reached) if reached else math.inf)


def test_a_worked_waiting_curve() -> None:
    # Delays 0, 1, 1, and two censored after 0 and 1 turns; one premature onset beside them.
    # Five at risk at 0: S(0) = 4/5. Three at risk at 1 (0 and the censored 0 are gone):
    # S(1) = 4/5 * 1/3 = 4/15.
    total = np.array([1.0, 2, 0, 1, 1, 0, 1])
    assert waiting(total) == pytest.approx([4 / 5, 4 / 15, 4 / 15])
    assert median_delay(total) == 1
    # All six stay in the denominator of the share that is found in time.
    assert detected(total) == pytest.approx([1 / 6, 3 / 6, 3 / 6])
    assert onset_outcomes(total) == pytest.approx([1 / 6, 1 / 6, 2 / 6, 2 / 6])


def test_a_median_that_is_never_reached_is_infinite() -> None:
    assert median_delay(np.array([1.0, 0, 2, 0, 0])) == math.inf
    # Exactly one half is reached.
    assert median_delay(np.array([1.0, 0, 0, 1, 0])) == 0


@settings(deadline=None, max_examples=100)
@given(dialogues)
def test_leads_are_those_of_a_loop(turns: Turns) -> None:
    rows, n = rows_of(turns), len(turns)
    longest = longest_dialogue(rows)
    found = lead_rows(rows, n, longest)
    values = lead_values(longest)
    alerts = BITS["alert_ongoing"] | BITS["alert_past"]
    for d, row in zip(turns, found, strict=True):
        alert = [k for k, (gold, _) in enumerate(d) if gold & alerts]
        confirm = [k for k, (gold, _) in enumerate(d) if gold & ~alerts]
        tags = [k for k, (_, tag) in enumerate(d) if tag]
        if not (alert and confirm):
            assert not row.any()
            continue
        [place] = np.flatnonzero(row)
        assert values[place] == (confirm[0] - tags[0] if tags else -math.inf)


def test_a_warning_two_turns_before_the_disclosure() -> None:
    rows = rows_of([[(AO, 0), (0, AO), (0, 0), (SHO, SHO)]])
    [place] = np.flatnonzero(lead_rows(rows, 1, 4)[0])
    assert lead_values(4)[place] == 2
