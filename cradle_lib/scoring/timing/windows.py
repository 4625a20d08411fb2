"""F1 with a tolerance: a tag counts if it comes close enough to its gold label.

Within each dialogue and label, gold occurrences and tags are matched one to one; a pair fits
if the tag comes at most ``early`` user turns before the gold label and at most ``late`` after
it. The matching is a largest possible one. True positives are pairs, what is left over on
either side are false positives and false negatives, and F1 is 2 tp / (2 tp + fp + fn).

With a window of 0 this is the turn-level micro F1 of the paper's Table 4. With an endless
window, after dropping repeated occurrences of a label in a dialogue, it is the dialogue-level
micro F1. So one curve leads from one half of the table to the other.

References:
    Mesaros, Heittola and Virtanen, "Metrics for Polyphonic Sound Event Detection", Applied
    Sciences 6(6), 2016 (event-based F1 with a collar).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS
from cradle_lib.scoring.core.conventions import Rows
from cradle_lib.scoring.timing.occurrences import ALERTS
from cradle_lib.statistics.matching import Window, match, occurrences


def window_tallies(
    rows: Rows, n: int, windows: tuple[Window, ...]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Counts pairs under several windows.

    Args:
        rows: Gold and predicted masks of n dialogues.
        n: Number of dialogues.
        windows: W windows.

    Returns:
        Pairs of each window, shape (n, W, 16). Gold occurrences plus tags, shape (n, 2, 16): of
        every occurrence at index 0 of the second axis, of each label's first one in a dialogue
        at index 1.
    """
    gold = occurrences(rows.gold, rows.dialogue_of)
    predicted = occurrences(rows.predicted, rows.dialogue_of)
    sides = ((gold, predicted), (gold.first(), predicted.first()))
    pairs = np.zeros((n, len(windows), len(LABELS)), dtype=np.int32)
    for column, window in enumerate(windows):
        pairs[:, column] = match(*sides[window.first], window, n)
    sizes = [one.per_label(n) + other.per_label(n) for one, other in sides]
    return pairs, np.stack(sizes, axis=1).astype(np.int32)


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
