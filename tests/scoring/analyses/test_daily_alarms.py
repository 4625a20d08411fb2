"""Shares of flagged conversations, against a loop over dialogues."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cradle_lib.detection import Predictions
from cradle_lib.scoring import alarm_rates, daily_alarms
from cradle_lib.scoring.analyses import daily_alarms as module

from ...forty_dialogues import corpus, make_run, runs
from ..made_runs import AO, SHO, run_of

__all__ = ["corpus", "make_run", "runs"]


def by_loop(run: Predictions, flagged: list[bool]) -> list[float]:
    """Shares of dialogues flagged from the first gold label on, before it, and without one."""
    # Of each dialogue: whether a gold label was seen, and flags before and from there on.
    seen: dict[int, list[bool]] = {}
    for dialogue, gold, flag in zip(run.corpus.dialogue_of, run.corpus.gold, flagged, strict=True):
        place = seen.setdefault(int(dialogue), [False, False, False])
        place[0] |= bool(gold)
        place[2 if place[0] else 1] |= flag
    disclosed = [place for place in seen.values() if place[0]]
    others = [place for place in seen.values() if not place[0]]
    return [
        sum(later for *_, later in disclosed) / len(disclosed),
        sum(before for _, before, _ in disclosed) / len(disclosed),
        sum(before for _, before, _ in others) / len(others),
    ]


def test_rates_are_shares_of_dialogues(
    runs: list[Predictions], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alarm_rates(runs).iloc[:, 2:].isna().to_numpy().any(), "a rate of few dialogues"
    monkeypatch.setattr(module, "ENOUGH", 1)
    run = runs[1]
    values = np.random.default_rng(0).integers(0, 6, len(run.masks)) / 5
    monkeypatch.setattr(module, "turn_probabilities", lambda _: values)
    frame = alarm_rates([run])
    assert [*frame.iloc[0, 2:]] == pytest.approx(by_loop(run, [bool(mask) for mask in run.masks]))
    for row in frame.iloc[1:].itertuples():
        flagged = [bool(value >= row.threshold) for value in values]
        rates = [row.found, row.early, row.false]
        assert rates == pytest.approx(by_loop(run, flagged))
    # The lowest threshold flags every turn.
    assert (frame["found"].iloc[-1], frame["false"].iloc[-1]) == (1, 1)
    assert frame["threshold"].iloc[1:].is_monotonic_decreasing


def test_a_flag_before_the_disclosure_is_a_false_alarm(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ENOUGH", 1)
    early, found, both, late, none = (
        [(0, SHO), (AO, 0), (0, 0)],
        [(0, 0), (AO, SHO), (0, 0)],
        [(0, AO), (SHO, SHO), (0, 0)],
        [(SHO, 0), (0, 0), (0, SHO)],
        [(AO, 0), (0, 0)],
    )
    run = run_of([early, found, both, late, none, [(0, AO)], [(0, 0)], [(0, 0)], [(0, 0)]])
    [rates] = alarm_rates([run])[["found", "early", "false"]].to_numpy().tolist()
    assert rates == [3 / 5, 2 / 5, 1 / 4]
    # Of 90 conversations, 50 have a disclosure: 30 are found; 20 and 10 alarms are false.
    day = daily_alarms(*rates, conversations=90, share=5 / 9, minutes=2)
    assert vars(day) == pytest.approx({"alarms": 60, "hours": 2, "missed": 20, "precision": 1 / 2})


def test_a_day_has_the_precision_of_the_projection() -> None:
    # 1,000 conversations: 10 with a disclosure, of which 9 are flagged, and 79.2 of the 990 others.
    day = daily_alarms(0.9, 0.0, 0.08, conversations=1_000, share=0.01, minutes=5)
    assert vars(day) == pytest.approx(
        {"alarms": 88.2, "hours": 7.35, "missed": 1.0, "precision": 9 / 88.2}
    )
    nothing = daily_alarms(0.0, 0.0, 0.0, conversations=10, share=0.5, minutes=1)
    assert math.isnan(nothing.precision)
    assert nothing.missed == 5
