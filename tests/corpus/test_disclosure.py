"""Scenarios and positions, counted a second time with plain loops."""

from __future__ import annotations

import random

import numpy as np

from cradle_lib.corpus.dialogue import Corpus, Dialogue, Speaker, Turn
from cradle_lib.corpus.disclosure import (
    ANY_TIMING,
    labels_by_scenario,
    positions_by_timing,
    scenario_names,
)
from cradle_lib.labels import BITS, LABELS, labels_of, stage


def corpus(*, known: bool = True) -> Corpus:
    chance = random.Random(7)
    dialogues = []
    for index in range(40):
        turns = []
        for turn_id in range(chance.randint(3, 9)):
            speaker: Speaker = "Listener" if turn_id % 2 else "User"
            mask = sum(chance.sample([*BITS.values()], chance.choice([0, 0, 1, 2])))
            turns.append(Turn(0, turn_id, speaker, "text", mask))
        dialogues.append(Dialogue(index, tuple(turns)))
    meta = {
        "scenario": [chance.choice(["S1", "S4", "S7"]) for _ in dialogues],
        "timing": [chance.choice(["late", "early", "mid"]) for _ in dialogues],
    }
    return Corpus("test", tuple(dialogues), meta=meta if known else {})


def test_a_label_counts_once_for_each_dialogue_of_a_scenario() -> None:
    sample = corpus()
    found = labels_by_scenario(sample)
    assert found is not None
    for scenario in ("S1", "S4", "S7"):
        for label in LABELS:
            count = 0
            for dialogue, own in zip(sample, sample.meta["scenario"], strict=True):
                count += own == scenario and any(label in labels_of(t.mask) for t in dialogue.turns)
            assert found[scenario].get(label, 0) == count


def test_positions_count_every_label_on_every_row() -> None:
    sample = corpus()
    found = positions_by_timing(sample)
    assert list(found) == ["early", "mid", "late"]
    for timing, arrays in found.items():
        for wanted, array in zip(("alert", "confirm"), arrays, strict=True):
            expected = np.zeros_like(array)
            for dialogue, own in zip(sample, sample.meta["timing"], strict=True):
                for turn in dialogue.turns:
                    names = [n for n in labels_of(turn.mask) if stage(n) == wanted]
                    expected[turn.turn_id] += len(names) if own == timing else 0
            assert array.tolist() == expected.tolist()


def test_a_corpus_that_does_not_say_is_not_guessed_about() -> None:
    sample = corpus(known=False)
    assert labels_by_scenario(sample) is None
    found = positions_by_timing(sample)
    assert list(found) == [ANY_TIMING]
    total = sum(turn.mask.bit_count() for turn in sample.turns)
    assert sum(int(array.sum()) for array in found[ANY_TIMING]) == total


def test_scenarios_have_the_papers_names() -> None:
    names = scenario_names()
    assert list(names) == ["S1", "S2", "S3", "S4", "S5", "S6", "S7"]
    assert names["S6"] == "Support Forum"
