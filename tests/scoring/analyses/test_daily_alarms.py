"""Shares of flagged conversations, against a loop over dialogues."""

from __future__ import annotations

import math

import numpy as np
import pytest

from cradle_lib.detection import Predictions
from cradle_lib.scoring import alarm_rates, daily_alarms
from cradle_lib.scoring.analyses import daily_alarms as module

from ...forty_dialogues import corpus, make_run, runs

__all__ = ["corpus", "make_run", "runs"]


def by_loop(run: Predictions, flagged: list[bool]) -> list[float]:
    """Share of flagged dialogues with and without gold labels."""
    seen: dict[int, list[bool]] = {}
    for dialogue, gold, flag in zip(run.corpus.dialogue_of, run.corpus.gold, flagged, strict=True):
        place = seen.setdefault(int(dialogue), [False, False])
        place[0] |= bool(gold)
        place[1] |= flag
    return [
        sum(flag for gold, flag in seen.values() if gold == wanted)
        / sum(gold == wanted for gold, _ in seen.values())
        for wanted in (True, False)
    ]


def test_rates_are_shares_of_dialogues(
    runs: list[Predictions], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert alarm_rates(runs)[["found", "false"]].isna().to_numpy().any(), "a rate of few dialogues"
    monkeypatch.setattr(module, "ENOUGH", 1)
    run = runs[1]
    values = np.random.default_rng(0).integers(0, 6, len(run.masks)) / 5
    monkeypatch.setattr(module, "turn_probabilities", lambda run: (values, run.corpus.dialogue_of))
    frame = alarm_rates([run])
    assert [*frame.iloc[0, 2:]] == pytest.approx(by_loop(run, [bool(mask) for mask in run.masks]))
    for row in frame.iloc[1:].itertuples():
        flagged = [bool(value >= row.threshold) for value in values]
        assert [row.found, row.false] == pytest.approx(by_loop(run, flagged))
    # The lowest threshold flags every dialogue.
    assert [*frame.iloc[-1, 2:]] == [1, 1]
    assert frame["threshold"].iloc[1:].is_monotonic_decreasing


def test_a_day_has_the_precision_of_the_projection() -> None:
    # 1,000 conversations: 10 with a disclosure, of which 9 are flagged, and 79.2 of the 990 others.
    day = daily_alarms(0.9, 0.08, conversations=1_000, share=0.01, minutes=5)
    assert vars(day) == pytest.approx(
        {"alarms": 88.2, "hours": 7.35, "missed": 1.0, "precision": 9 / 88.2}
    )
    nothing = daily_alarms(0.0, 0.0, conversations=10, share=0.5, minutes=1)
    assert math.isnan(nothing.precision)
    assert nothing.missed == 5
