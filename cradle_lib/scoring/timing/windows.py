"""F1 with a tolerance: a tag counts if it comes close enough to its gold label.

Within each dialogue and label, gold occurrences and tags are matched one to one; a pair fits
if the tag comes at most ``early`` user turns before the gold label and at most ``late`` after
it. The matching is a largest possible one. True positives are pairs, what is left over on
either side are false positives and false negatives, and F1 is 2 tp / (2 tp + fp + fn).

With a window of 0 this is the turn-level micro F1 of the paper's Table 4. With an endless
window, after dropping repeated occurrences of a label in a dialogue, it is the dialogue-level
micro F1. So one curve leads from one half of the table to the other.

How it is fast: all windows of a curve have the same width for every gold label, so walking
along both sides in step finds a largest matching. All dialogues and labels walk at once.

References:
    Mesaros, Heittola and Virtanen, "Metrics for Polyphonic Sound Event Detection", Applied
    Sciences 6(6), 2016 (event-based F1 with a collar).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS
from cradle_lib.scoring.core.conventions import Rows
from cradle_lib.scoring.core.scores import Floats, ratio
from cradle_lib.scoring.timing.occurrences import ALERTS, Occurrences, occurrences


@dataclass(frozen=True, slots=True)
class Window:
    """How far a tag may be from its gold label, in user turns.

    Attributes:
        early: How many turns before it, 0 to infinity.
        late: How many turns after it, 0 to infinity.
        first: Whether only each label's first occurrence in a dialogue takes part, on both
            sides.

    Raises:
        ScoringError: If a side is negative or not a number.
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


def match(gold: Occurrences, predicted: Occurrences, window: Window, n: int) -> NDArray[np.int64]:
    """Matches tags with gold occurrences, one to one and as many as possible.

    Args:
        gold: Gold occurrences of n dialogues.
        predicted: Tags.
        window: What fits; its ``first`` has no effect here.
        n: Number of dialogues.

    Returns:
        Number of pairs of each dialogue and label. Shape (n, 16).
    """
    pairs = np.zeros(n * len(LABELS), dtype=np.int64)
    slots = np.intersect1d(gold.slot, predicted.slot)
    left, right = np.searchsorted(gold.slot, slots), np.searchsorted(predicted.slot, slots)
    left_end = np.searchsorted(gold.slot, slots, side="right")
    right_end = np.searchsorted(predicted.slot, slots, side="right")
    while len(slots):
        late = predicted.position[right] - gold.position[left]
        fits = (late >= -window.early) & (late <= window.late)
        pairs[slots[fits]] += 1
        # A tag too late for this gold label is too late for good; so is a tag too early.
        left, right = left + (late >= -window.early), right + (late <= window.late)
        going = (left < left_end) & (right < right_end)
        slots, left, right = slots[going], left[going], right[going]
        left_end, right_end = left_end[going], right_end[going]
    return pairs.reshape(n, len(LABELS))


def window_tallies(
    rows: Rows, n: int, windows: tuple[Window, ...]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Counts pairs under several windows.

    Args:
        rows: Gold and predicted masks of n dialogues.
        n: Number of dialogues.
        windows: W windows.

    Returns:
        Pairs, shape (n, W, 16); then gold occurrences plus tags, first of all of them and
        then of the first ones only, shape (n, 2, 16).
    """
    gold = occurrences(rows.gold, rows.dialogue_of)
    predicted = occurrences(rows.predicted, rows.dialogue_of)
    sides = ((gold, predicted), (gold.first(), predicted.first()))
    pairs = np.zeros((n, len(windows), len(LABELS)), dtype=np.int32)
    for column, window in enumerate(windows):
        pairs[:, column] = match(*sides[window.first], window, n)
    sizes = [
        sum(np.bincount(side.slot, minlength=n * len(LABELS)) for side in pair) for pair in sides
    ]
    return pairs, np.stack(sizes).reshape(2, n, -1).swapaxes(0, 1).astype(np.int32)


def by_scope(tallies: NDArray[np.int32]) -> NDArray[np.int32]:
    """Adds up labels into everything, the two stages and the labels themselves.

    Args:
        tallies: Shape (..., 16).

    Returns:
        In the order of :data:`~cradle_lib.scoring.timing.occurrences.SCOPES`. Shape (..., 19).
    """
    alerts = tallies[..., :ALERTS].sum(axis=-1, keepdims=True, dtype=tallies.dtype)
    confirms = tallies[..., ALERTS:].sum(axis=-1, keepdims=True, dtype=tallies.dtype)
    return np.concatenate([alerts + confirms, alerts, confirms, tallies], axis=-1)


def window_f1(pairs: Floats, sizes: Floats, zero_division: float = 0.0) -> Floats:
    """Computes F1, which is 2 pairs / (gold occurrences + tags).

    Args:
        pairs: Of any shape.
        sizes: Gold occurrences plus tags, of a shape that broadcasts.
        zero_division: The value where ``sizes`` is 0.

    Returns:
        F1 of the same shape.
    """
    return ratio(2 * pairs, sizes, zero_division)


# Windows in user turns; the endless one closes each curve.
WIDTHS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, math.inf)


def curve(shape: str, *, first: bool, widths: tuple[float, ...] = WIDTHS) -> tuple[Window, ...]:
    """Gives the windows of one curve.

    Args:
        shape: ``either`` (as many turns before as after) or ``late`` (none before).
        first: Whether repeated occurrences of a label are dropped.
        widths: Widths in user turns, ascending.

    Returns:
        One window per width.

    Raises:
        ScoringError: If there is no such shape.
    """
    if shape not in ("either", "late"):
        raise ScoringError(f"no window shape {shape!r}. Choose either or late.")
    return tuple(Window(width if shape == "either" else 0.0, width, first) for width in widths)
