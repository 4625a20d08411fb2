"""Timing, compared with the matchings of SciPy and mir_eval, statsmodels and worked examples."""

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
from cradle_lib.scoring.analyses.timing import (
    detected,
    median_delay,
    onset_counts,
    onset_outcomes,
    timing,
)
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.statistics.occurrences import first_only, match

from ..made_runs import AO, DVP, SHO, Turns, dialogues, run_of

GOLD = [[AO, 0, SHO, 0], [0, SHO, 0], [0, AO | DVP, SHO, SHO], [0, 0]]
PREDICTED = [[0, AO, SHO, SHO], [SHO, SHO, 0], [0, DVP, 0, SHO], [0, AO]]
places = st.lists(st.integers(0, 11), max_size=7, unique=True).map(sorted)
sides = st.sampled_from([0.0, 1.0, 2.0, 3.0, math.inf])


@pytest.fixture(scope="module")
def frame() -> pd.DataFrame:
    turns = [list(zip(*both, strict=True)) for both in zip(GOLD, PREDICTED, strict=True)]
    return timing(run_of(turns), draws=50)


def numbers(frame: pd.DataFrame, view: str, scope: str = "any", **where: Any) -> dict[str, float]:
    """Returns the values of a view by measure."""
    frame = frame[(frame["view"] == view) & (frame["scope"] == scope)]
    for column, content in where.items():
        frame = frame[frame[column] == content]
    return dict(zip(frame["measure"], frame["value"], strict=True))


@settings(deadline=None, max_examples=100)
@given(places, places, sides, sides)
def test_matches_equal_those_of_scipy_and_mir_eval(
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
        # mir_eval matches note onsets within a window (Raffel et al. 2014).
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


def test_onsets_and_delays_equal_a_count_by_hand(frame: pd.DataFrame) -> None:
    # Six onsets: AO one turn late; SHO on time, premature and one turn late; DVP on time; AO never.
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


def test_measures_of_labels_that_are_never_gold_are_undefined() -> None:
    frame = timing(run_of([[(SHO, SHO), (0, AO)], [(0, 0), (0, 0)]]), draws=0)
    alerts = frame[frame["scope"] == "alert"]
    assert (alerts["support"] == 0).all()
    assert alerts["value"].isna().all()
    assert frame[["low", "high"]].isna().all(axis=None)


@settings(deadline=None, max_examples=20)
@given(dialogues)
def test_the_detection_curve_equals_the_cumulative_incidence_of_statsmodels(turns: Turns) -> None:
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
    # Event 1 is a prediction with delay k, at time k + 2. The competing events are 2 (premature, at
    # time 1) and 3 (never, after the last turn). Nothing is censored.
    late = [delay + 2 for delay in times if delay is not None]
    when = [1] * len(premature) + late + [longest + 2] * never
    what = [2] * len(premature) + [1] * len(late) + [3] * never
    # The standard errors, which are not used, divide by the number at risk.
    with np.errstate(divide="ignore", invalid="ignore"):
        theirs = CumIncidenceRight(when, what)
    for d in range(longest):
        before = theirs.cinc[0][theirs.times <= d + 2] if late else []
        assert detected(total)[d] == pytest.approx(before[-1] if len(before) else 0, abs=1e-12)
    reached = [d for d in range(longest) if sum(t <= d + 2 for t in late) >= onsets / 2]
    assert median_delay(total) == (min(reached) if reached else math.inf)
