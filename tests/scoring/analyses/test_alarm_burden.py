"""Alarm burden against a loop over turns, worked examples and Bayes' rule."""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction

import pytest
from hypothesis import given, settings

from cradle_lib.scoring.analyses.alarm_burden import (
    alarm_burden,
    burden_counts,
    projected_precision,
)

from ..made_runs import AO, DVP, SHO, Turns, dialogues, run_of

WORKED = [[(AO, AO), (0, AO | DVP), (SHO, SHO), (0, SHO)], [(0, 0), (0, AO)], [(0, 0), (0, 0)]]


@settings(deadline=None, max_examples=20)
@given(dialogues)
def test_burden_counts_equal_those_of_a_loop(turns: Turns) -> None:
    found = burden_counts(run_of(turns))
    for place, dialogue in enumerate(turns):
        expected, seen = Counter({"dialogues": 1}), 0
        for gold, tags in dialogue:
            expected["tags"] += tags.bit_count()
            expected["correct_tags"] += (tags & gold).bit_count()
            expected["false_tags"] += (tags & ~gold).bit_count()
            expected["negative_turns"] += not gold
            expected["flagged_turns"] += bool(tags) and not gold
            expected["gold_turns"] += bool(gold)
            expected["flagged_gold"] += bool(gold) and bool(tags)
            expected["alarms"] += (tags & ~seen).bit_count()
            expected["repeats"] += (tags & seen & ~gold).bit_count()
            seen |= tags
        expected["quiet_dialogues"] = int(not any(gold for gold, _ in dialogue))
        expected["flagged_dialogues"] = int(bool(expected["quiet_dialogues"] and seen))
        assert {name: counts[place] for name, counts in found.items()} == expected


def test_a_worked_example_of_the_burden() -> None:
    found = alarm_burden(run_of(WORKED), draws=200)
    # Six of eight user turns have no gold label. Two of six predictions are correct.
    assert dict(zip(found["measure"], found["value"], strict=True)) == pytest.approx(
        {
            "false_tags_per_dialogue": 4 / 3,
            "flagged_per_100": 100 * 3 / 6,
            "gold_flagged": 2 / 2,
            "quiet_flagged": 1 / 2,
            "needed_to_evaluate": 6 / 2,
            # Alarms: AO, DVP and SHO in the first dialogue, AO in the second.
            "repeats_per_alarm": 2 / 4,
        }
    )
    assert found[["low", "high"]].notna().any(axis=None)
    assert not ((found["low"] > found["value"]) | (found["high"] < found["value"])).any()
    assert found["signature"].str.contains("boot:200@0", regex=False).all()


def test_needed_to_evaluate_is_undefined_without_alarms() -> None:
    def needed(tag: int) -> float:
        frame = alarm_burden(run_of([[(0, tag), (AO, 0)]]), draws=0).set_index("measure")
        return float(frame.loc["needed_to_evaluate", "value"])

    assert math.isnan(needed(0))
    assert needed(DVP) == math.inf


def test_projected_precision_follows_bayes_rule() -> None:
    dialogues = [[(AO, AO), (0, AO | DVP), (SHO, 0), (0, 0)], [(0, 0), (0, AO)], [(0, 0)] * 2]
    run = run_of(dialogues * 10)
    # By hand: 1 of 2 turns with gold and 2 of 6 without it are flagged.
    frame = projected_precision(run, [0.01], draws=0)
    assert frame["prevalence"].tolist() == [2 / 8, 0.01]
    assert frame["observed"].tolist() == [True, False]
    # At the prevalence of the corpus, it is the precision of flags: 1 of 3.
    rare = Fraction(1, 2) * Fraction(1, 100)
    expected = [Fraction(1, 3), rare / (rare + Fraction(2, 6) * Fraction(99, 100))]
    assert frame["value"].tolist() == pytest.approx([float(share) for share in expected])
    # With fewer than 20 turns with a gold label, nothing is projected.
    few = projected_precision(run_of([*dialogues * 9, dialogues[1]]), [0.01], draws=50)
    assert few["value"].notna().tolist() == [True, False]
    # Below one percent there is a value and no interval.
    run = run_of([[(AO, AO), (0, 0), (0, AO)], [(AO, 0), (0, 0), (0, 0)]] * 10)
    frame = projected_precision(run, [0.01, 0.001], draws=50)
    assert frame["value"].notna().all()
    assert frame["low"].notna().tolist() == [True, True, False]
