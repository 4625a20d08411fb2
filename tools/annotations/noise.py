"""Noise model: how a simulated annotator's labels differ from gold.

Each kind of difference has a rate, chosen after the paper's report: alerts are missed, or placed
too early or too late; passive and active ideation are swapped; ongoing and past are swapped; a
confirm is moved by one or two user turns, replaced by an alert, or missed; and an alert is added
where gold has none.

The model does not describe the errors of clinicians. It only makes it possible to run the study.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from cradle_lib.corpus.dialogue import Dialogue
from cradle_lib.labels import ALERT_MASK, BITS, CONFIRM_MASK, LABELS, crisis_type, temporal

_PASSIVE: Final = "SI_passive"
_ACTIVE: Final = "SI_active"


@dataclass(frozen=True, slots=True)
class Noise:
    """Probabilities of the differences of one annotator, 0 to 1, per label if not said otherwise.

    Attributes:
        missed: An alert is missed.
        early: An alert is placed one to three user turns early. Half of this: one or two late.
        extra: An alert is added where gold has none, per dialogue.
        state: Ongoing and past are swapped.
        ideation: Passive and active ideation are swapped.
        passive: Passive ideation is moved, replaced by an alert, or missed.
        shifted: Another confirm is moved by one or two user turns.
        doubted: Another confirm is replaced by an alert, or missed.
    """

    missed: float
    early: float
    extra: float
    state: float
    ideation: float
    passive: float
    shifted: float
    doubted: float


#: Probabilities for each of the two teams, and for adjudicators.
CAREFUL: Final = Noise(0.25, 0.25, 0.35, 0.04, 0.15, 0.6, 0.06, 0.03)
LOOSE: Final = Noise(0.3, 0.4, 0.7, 0.07, 0.2, 0.6, 0.16, 0.08)
EXPERT: Final = Noise(0.15, 0.2, 0.15, 0.04, 0.1, 0.3, 0.06, 0.03)


def differ(
    dialogue: Dialogue, gold: Sequence[int], noise: Noise, generator: np.random.Generator
) -> list[int]:
    """Draws one annotator's labels.

    Args:
        dialogue: The dialogue.
        gold: The gold masks of its turns.
        noise: The probabilities of differences.
        generator: Source of randomness.

    Returns:
        Masks of all turns. Labels on turns that are not user turns are unchanged.
    """
    asked = [turn.turn_id for turn in dialogue.turns if turn.asked]
    masks = [0] * len(gold)
    for turn, mask in enumerate(gold):
        for label, bit in BITS.items():
            if not mask & bit:
                continue
            if turn not in asked:
                masks[turn] |= bit
                continue
            place, given = _seen(label, asked.index(turn), len(asked), noise, generator)
            if given:
                masks[asked[place]] |= BITS[given]
    if generator.random() < noise.extra:
        first = next((n for n, turn in enumerate(asked) if masks[turn] & CONFIRM_MASK), len(asked))
        free = [turn for turn in asked[: max(first, 1)] if not masks[turn]]
        if free:
            state = "past" if _union(gold) and not _ongoing(gold) else "ongoing"
            masks[int(generator.choice(free))] |= BITS[f"alert_{state}"]
    return masks


def _seen(
    label: str, place: int, turns: int, noise: Noise, generator: np.random.Generator
) -> tuple[int, str]:
    """Draws the user turn and label that the annotator gives; an empty label if missed."""
    chance = generator.random
    if chance() < noise.state:
        label = label.replace(*_swap(temporal(label)))
    crisis = crisis_type(label)
    if BITS[label] & ALERT_MASK:
        if chance() < noise.missed:
            return place, ""
        if chance() < noise.early:
            return _near(place, -int(generator.integers(1, 4)), turns), label
        if chance() < noise.early / 2:
            return _near(place, int(generator.integers(1, 3)), turns), label
        return place, label
    if crisis in (_PASSIVE, _ACTIVE) and chance() < noise.ideation:
        other = _ACTIVE if crisis == _PASSIVE else _PASSIVE
        return place, label.replace(crisis, other)
    shifted, doubted = noise.shifted, noise.doubted
    if crisis == _PASSIVE:
        shifted, doubted = noise.passive / 2, noise.passive / 2
    if chance() < shifted:
        step = int(generator.integers(1, 3)) * (1 if chance() < 0.5 else -1)
        return _near(place, step, turns), label
    if chance() < doubted:
        return place, f"alert_{temporal(label)}" if chance() < 0.5 else ""
    return place, label


def _near(place: int, step: int, turns: int) -> int:
    moved = place + step
    if not 0 <= moved < turns:
        moved = place - step
    return min(max(moved, 0), turns - 1)


def _swap(state: str) -> tuple[str, str]:
    return (f"_{state}", "_past" if state == "ongoing" else "_ongoing")


def _union(masks: Sequence[int]) -> int:
    union = 0
    for mask in masks:
        union |= mask
    return union


def _ongoing(masks: Sequence[int]) -> bool:
    return any(
        mask & bit for mask in masks for label, bit in BITS.items() if label.endswith("_ongoing")
    )


#: Labels for which the paper reports a range of agreement: all confirms but passive ideation.
CLEAR: Final = tuple(
    index for index, label in enumerate(LABELS) if crisis_type(label) not in (None, _PASSIVE)
)
