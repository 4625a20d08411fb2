"""Occurrences of labels in dialogues: positions, counts, and one-to-one matches.

An occurrence is one label on one turn. A position is the number of a user turn within its dialogue,
counted from 0. Masks and ``dialogue_of``, the ascending position of each turn's dialogue, have
shape (T,).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from cradle_lib.labels import BITS, LABELS

Masks = NDArray[np.uint16]
Ints = NDArray[np.int64]
_BITS = np.array(list(BITS.values()), dtype=np.uint16)


def positions(dialogue_of: Ints) -> Ints:
    """Numbers the turns of each dialogue from 0."""
    return np.arange(len(dialogue_of)) - np.searchsorted(dialogue_of, dialogue_of)


def members(masks: Iterable[int]) -> Ints:
    """Gives 1 where a mask has a label, and 0 elsewhere. Shape (M masks, 16)."""
    rows = [[mask >> bit & 1 for bit in range(len(LABELS))] for mask in masks]
    return np.array(rows, dtype=np.int64)


def label_counts(masks: Masks, dialogue_of: Ints, n: int) -> Ints:
    """Counts the turns of each of ``n`` dialogues that have each label. Shape (n, 16)."""
    turns, labels = np.nonzero(masks[:, None] & _BITS)
    slots = dialogue_of[turns] * len(LABELS) + labels
    return np.bincount(slots, minlength=n * len(LABELS)).reshape(n, len(LABELS))


def label_positions(
    masks: Masks, dialogue_of: Ints, position: Ints | None = None
) -> dict[tuple[int, int], list[int]]:
    """Lists the ascending positions of each label in each dialogue.

    Keys are the dialogue and the number of the label. ``position`` gives the user turn of each
    row, ascending within a dialogue; ``None`` if every row is a user turn.
    """
    position = positions(dialogue_of) if position is None else position
    turns, labels = np.nonzero(masks[:, None] & _BITS)
    found: dict[tuple[int, int], list[int]] = {}
    for dialogue, label, place in zip(
        dialogue_of[turns].tolist(), labels.tolist(), position[turns].tolist(), strict=True
    ):
        found.setdefault((dialogue, label), []).append(place)
    return found


def first_only(masks: Masks, dialogue_of: Ints) -> Masks:
    """Keeps only the first occurrence of each label in a dialogue. Shape (T,)."""
    kept, seen, last = [], 0, -1
    for mask, dialogue in zip(masks.tolist(), dialogue_of.tolist(), strict=True):
        seen = seen if dialogue == last else 0
        kept.append(mask & ~seen)
        seen, last = seen | mask, dialogue
    return np.array(kept, dtype=np.uint16)


def match(first: Sequence[int], second: Sequence[int], *, early: float, late: float) -> int:
    """Counts the largest number of one-to-one matches between ascending positions of one label.

    Two positions match if the second is at most ``early`` user turns before the first and at most
    ``late`` after it. All windows have the same width, so one greedy pass over both sides finds a
    largest matching.
    """
    pairs = left = right = 0
    while left < len(first) and right < len(second):
        delay = second[right] - first[left]
        pairs += -early <= delay <= late
        # If the second is too late for the first, all later ones are too; likewise if it is early.
        left += delay >= -early
        right += delay <= late
    return pairs
