"""Where labels stand, and how many of two sides' labels can be matched one to one.

An occurrence is one label on one turn. Two occurrences of the same label in the same dialogue may
be matched if the second side's stands at most ``early`` user turns before the first side's and at
most ``late`` after it. The matching is a largest possible one.

How it is fast: all windows have the same width for every occurrence, so walking along both sides in
step finds a largest matching. All dialogues and labels walk at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS


@dataclass(frozen=True, slots=True)
class Occurrences:
    """Labels on turns, ordered by dialogue, then label, then turn.

    Of each its slot, 16 times the dialogue plus the label's number; the number of the user turn in
    its dialogue; and the row of the mask that it was read from. Shape (E,).
    """

    slot: NDArray[np.int64]
    position: NDArray[np.int64]
    row: NDArray[np.int64]

    def first(self) -> Occurrences:
        """Keeps each label's first occurrence in each dialogue."""
        new = np.diff(self.slot, prepend=-1) != 0
        return Occurrences(self.slot[new], self.position[new], self.row[new])

    def per_label(self, n: int) -> NDArray[np.int64]:
        """Counts the occurrences in each of ``n`` dialogues. Shape (n, 16)."""
        return np.bincount(self.slot, minlength=n * len(LABELS)).reshape(n, len(LABELS))


def positions(dialogue_of: NDArray[np.int64]) -> NDArray[np.int64]:
    """Numbers the turns of each dialogue from 0, given each turn's dialogue, ascending."""
    return np.arange(len(dialogue_of)) - np.searchsorted(dialogue_of, dialogue_of)


def occurrences(
    masks: NDArray[np.uint16],
    dialogue_of: NDArray[np.int64],
    position: NDArray[np.int64] | None = None,
) -> Occurrences:
    """Lists every label on each of T turns.

    ``dialogue_of`` is the position of each turn's dialogue, ascending; ``position`` the user turn
    at which each row stands, ascending within a dialogue, or ``None`` if every row is a user turn.
    """
    if position is None:
        position = positions(dialogue_of)
    rows = np.flatnonzero(masks)
    bits = (masks[rows, None] >> np.arange(len(LABELS), dtype=np.uint16)) & 1
    place, label = np.nonzero(bits)
    row = rows[place]
    slot = len(LABELS) * dialogue_of[row] + label
    order = np.argsort(slot, kind="stable")
    return Occurrences(slot[order], position[row][order], row[order])


@dataclass(frozen=True, slots=True)
class Window:
    """How many user turns early or late a tag may be, each 0 to infinity.

    ``first`` says whether only each label's first occurrence in a dialogue takes part, on both
    sides.
    """

    early: float
    late: float
    first: bool = False

    def __post_init__(self) -> None:
        """Refuses windows that nothing could fit."""
        if not (self.early >= 0 and self.late >= 0):
            raise ScoringError(
                f"a window from {self.early} turns before to {self.late} after. "
                "Both must be at least 0."
            )


def match(gold: Occurrences, tagged: Occurrences, window: Window, n: int) -> NDArray[np.int64]:
    """Matches two sides' occurrences in ``n`` dialogues, one to one and as many as possible.

    ``first`` of the window has no effect here. Gives the number of pairs of each dialogue and
    label. Shape (n, 16).
    """
    pairs = np.zeros(n * len(LABELS), dtype=np.int64)
    slots = np.intersect1d(gold.slot, tagged.slot)
    left, right = np.searchsorted(gold.slot, slots), np.searchsorted(tagged.slot, slots)
    left_end = np.searchsorted(gold.slot, slots, side="right")
    right_end = np.searchsorted(tagged.slot, slots, side="right")
    while len(slots):
        late = tagged.position[right] - gold.position[left]
        fits = (late >= -window.early) & (late <= window.late)
        pairs[slots[fits]] += 1
        # A tag too late for this gold label is too late for good; so is a tag too early.
        left, right = left + (late >= -window.early), right + (late <= window.late)
        going = (left < left_end) & (right < right_end)
        slots, left, right = slots[going], left[going], right[going]
        left_end, right_end = left_end[going], right_end[going]
    return pairs.reshape(n, len(LABELS))
