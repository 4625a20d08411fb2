"""Timing against scikit-learn, SciPy's and mir_eval's matchings, statsmodels and worked cases."""

from __future__ import annotations

import math
from typing import Any

import mir_eval
import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from scipy.sparse.csgraph import maximum_bipartite_matching
from statsmodels.duration.survfunc import CumIncidenceRight

from cradle_lib.labels import BITS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.timing import detected, median_delay, onset_counts, onset_outcomes, timing
from cradle_lib.statistics.occurrences import first_only, match

from .made_runs import AO, DVP, SHO, Turns, dialogues, run_of

GOLD = [[AO, 0, SHO, 0], [0, SHO, 0], [0, AO | DVP, SHO, SHO], [0, 0]]
PREDICTED = [[0, AO, SHO, SHO], [SHO, SHO, 0], [0, DVP, 0, SHO], [0, AO]]
places = st.lists(st.integers(0, 11), max_size=7, unique=True).map(sorted)
sides = st.sampled_from([0.0, 1.0, 2.0, 3.0, math.inf])


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    turns = [list(zip(*both, strict=True)) for both in zip(GOLD, PREDICTED, strict=True)]
    return timing(run_of(turns), draws=50)


def numbers(frame: pd.DataFrame, view: str, scope: str = "any", **where: Any) -> dict[str, float]:
    """The values of a view by their measure."""
    frame = frame[(frame["view"] == view) & (frame["scope"] == scope)]
    for column, content in where.items():
        frame = frame[frame[column] == content]
    return dict(zip(frame["measure"], frame["value"], strict=True))


@settings(deadline=None, max_examples=100)
@given(places, places, sides, sides)
def test_matches_are_those_of_a_general_algorithm_and_of_onsets_in_music(
    gold: list[int], predicted: list[int], early: float, late: float
) -> None:
    found = match(gold, predicted, early=early, late=late)
    if not gold or not predicted:
        assert found == 0
        return
    fits = [[-early <= tag - g <= late for tag in predicted] for g in gold]
    largest = maximum_bipartite_matching(csr_array(np.array(fits, dtype=np.int8)))
    assert found == (largest >= 0).sum()
    if early == late < math.inf:
        # A maximum matching of note onsets at most `window` apart (Raffel et al. 2014).
        events = (np.array(side, dtype=float) for side in (gold, predicted))
        assert found == len(mir_eval.util.match_events(*events, early))


@settings(deadline=None, max_examples=12)
@given(dialogues)
def test_a_curve_starts_at_turn_level_and_ends_at_dialogue_level(turns: Turns) -> None:
    run = run_of(turns)
    found = timing(run, draws=0)
    found = found[found["scope"] == "any"].set_index(["measure", "turns"])["value"]
    for level, place in (("turn", ("either", 0.0)), ("dialogue", ("either_first", math.inf))):
        expected = evaluate(run, level=level, draws=0).estimate("micro_f1").value
        expected = expected if run.corpus.gold.any() else math.nan
        assert found[place] == pytest.approx(expected, nan_ok=True)
    # A wider window can only help.
    assert (found["either"].dropna().diff().dropna() >= 0).all()
    firsts, seen = [], 0
    for dialogue in turns:
        for gold, _ in dialogue:
            firsts.append(gold & ~seen)
            seen |= gold
        seen = 0
    assert first_only(run.corpus.gold, run.corpus.dialogue_of).tolist() == firsts


def test_onsets_and_delays_are_those_counted_by_hand(frame: pd.DataFrame) -> None:
    # Six onsets: AO one turn late; SHO on time, premature, one turn late; DVP on time; AO never.
    assert numbers(frame, "onset") == pytest.approx(
        {"premature": 1 / 6, "on_time": 2 / 6, "late": 2 / 6, "never": 1 / 6, "median_delay": 1}
    )
    assert numbers(frame, "delay", turns=0) == {"detected": pytest.approx(2 / 6)}
    assert numbers(frame, "delay", turns=1)["detected"] == pytest.approx(4 / 6)
    support = frame.groupby(["view", "scope"])["support"].unique()
    assert support["onset", "any"].tolist() == support["delay", "any"].tolist() == [6]
    assert support["window", "any"].tolist() == support["window", "confirm"].tolist() == [3]
    assert not frame.duplicated(["view", "measure", "scope", "turns"]).any()
    assert frame["signature"].str.contains("|win:0,1,2,3,4,5,inf|v", regex=False).all()
    assert set(frame[frame["unit"] == "share"]["value"].between(0, 1)) == {True}


def test_what_is_nowhere_gold_has_no_number() -> None:
    frame = timing(run_of([[(SHO, SHO), (0, AO)], [(0, 0), (0, 0)]]), draws=0)
    alerts = frame[frame["scope"] == "alert"]
    assert (alerts["support"] == 0).all()
    assert alerts["value"].isna().all()
    assert frame[["low", "high"]].isna().all(axis=None)


@settings(deadline=None, max_examples=20)
@given(dialogues)
def test_the_curve_of_detection_is_the_cumulative_incidence_of_statsmodels(turns: Turns) -> None:
    premature, times = [], []
    for dialogue in turns:
        for bit in BITS.values():
            gold, tags = ([k for k, turn in enumerate(dialogue) if turn[s] & bit] for s in (0, 1))
            if gold and tags and tags[0] < gold[0]:
                premature.append(gold[0])
            elif gold:
                times.append(tags[0] - gold[0] if tags else None)
    longest = max(map(len, turns))
    total = onset_counts(run_of(turns), longest).sum(axis=(0, 1)).astype(float)
    onsets = len(premature) + len(times)
    assert total.sum() == onsets
    if not onsets:
        assert np.isnan([*onset_outcomes(total), median_delay(total)]).all()
        return
    on_time, never = times.count(0), times.count(None)
    counts = [len(premature), on_time, len(times) - on_time - never, never]
    assert onset_outcomes(total) == pytest.approx(np.array(counts) / onsets)
    # Event 1 is a prediction after k turns, counted from 1 there; the two other final states are
    # event 2 (before any that counts) and event 3 (after the last turn). None is censored.
    late = [delay + 2 for delay in times if delay is not None]
    when = [1] * len(premature) + late + [longest + 2] * never
    what = [2] * len(premature) + [1] * len(late) + [3] * never
    # Its standard errors, which are not looked at, divide by those still at risk.
    with np.errstate(divide="ignore", invalid="ignore"):
        theirs = CumIncidenceRight(when, what)
    for d in range(longest):
        before = theirs.cinc[0][theirs.times <= d + 2] if late else []
        assert detected(total)[d] == pytest.approx(before[-1] if len(before) else 0, abs=1e-12)
    reached = [d for d in range(longest) if sum(t <= d + 2 for t in late) >= onsets / 2]
    assert median_delay(total) == (min(reached) if reached else math.inf)
