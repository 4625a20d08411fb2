"""In which order a dialogue's stages come: alert before confirm, or not.

The Alert-Confirm protocol expects an alert first and a confirm later. Each dialogue has exactly
one order in the gold labels and exactly one in a run's tags, by the first alert and the first
confirm of any type; a table of the one against the other shows what a run makes of escalation.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.labels import ALERT_MASK, CONFIRM_MASK
from cradle_lib.scoring.counts import Masks
from cradle_lib.scoring.occurrences import first_positions

ORDERS: Final = (
    "neither",
    "alert_only",
    "confirm_only",
    "alert_first",
    "same_turn",
    "confirm_first",
)


def orders(masks: Masks, dialogue_of: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Finds the order of the stages in each dialogue.

    Args:
        masks: Gold labels or tags. Shape (T,).
        dialogue_of: Position of each turn's dialogue, ascending, below ``n``. Shape (T,).
        n: Number of dialogues.

    Returns:
        Positions in :data:`ORDERS`. Shape (n,).
    """
    alert, confirm = first_positions(masks, dialogue_of, n, (ALERT_MASK, CONFIRM_MASK)).T
    both = np.isfinite(alert) & np.isfinite(confirm)
    found = np.isfinite(alert) + 2 * np.isfinite(confirm)
    # The difference of two missing ones is no order.
    sign = np.sign(np.where(both, confirm, 0.0) - np.where(both, alert, 0.0))
    return np.where(both, 4 - sign, found).astype(np.int64)


def escalation(
    gold: Masks, predicted: Masks, dialogue_of: NDArray[np.int64], n: int
) -> NDArray[np.int64]:
    """Counts dialogues by the order in gold and the order in a run's tags.

    Args:
        gold: Gold masks. Shape (T,).
        predicted: Masks of what was tagged. Shape (T,).
        dialogue_of: Position of each turn's dialogue, ascending, below ``n``. Shape (T,).
        n: Number of dialogues.

    Returns:
        Rows are gold, columns the run; every dialogue is in one cell. Shape (6, 6).
    """
    size = len(ORDERS)
    cell = size * orders(gold, dialogue_of, n) + orders(predicted, dialogue_of, n)
    return np.bincount(cell, minlength=size * size).reshape(size, size)
