"""How long after its onset a label is tagged, and how long before a disclosure a warning comes.

The onset of a label is its first gold occurrence in a dialogue. What becomes of it is exactly
one of four things: it was tagged *premature* (the first tag of this label stands on an earlier
turn), *on time*, *late* (on a later turn, not before), or *never*. Turns are user turns.

Delay. How many onsets are tagged is counted by d, the user turns since the onset: D(d) is the
share of all onsets whose first tag stands 0 to d turns after them. This is a cumulative incidence
with three final states. An onset that is not tagged when its dialogue ends is tagged never,
because no turn will come on which it could be, and stays in the denominator; one that was tagged
before its turn too. Nothing is censored, and no estimate for censored times (Kaplan and Meier's) is
called for: it would lend the onsets near the end of a dialogue the fate of those with more turns.

Lead time. In a dialogue that has a gold alert and a gold confirm, the lead is the turn of the
first confirm minus the turn of the first tag of any kind: positive if there was a warning
before the disclosure, minus infinity if there was none at all.

References:
    Putter, Fiocco and Geskus, "Tutorial in Biostatistics: Competing Risks and Multi-State Models",
    Statistics in Medicine 26, 2007 (cumulative incidence).
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.labels import ALERT_MASK, ALL_MASK, CONFIRM_MASK, LABELS
from cradle_lib.scoring.core.conventions import Rows
from cradle_lib.scoring.timing.occurrences import first_positions
from cradle_lib.statistics.matching import occurrences, positions
from cradle_lib.statistics.rates import Floats, ratio

OUTCOMES: Final = ("premature", "on_time", "late", "never")


def onset_rows(rows: Rows, n: int, longest: int) -> NDArray[np.int32]:
    """Sorts the onsets of each dialogue and label by what became of them.

    Args:
        rows: Gold and predicted masks of n dialogues.
        n: Number of dialogues.
        longest: User turns of the longest dialogue, K.

    Returns:
        For each dialogue and label: how many onsets were tagged after 0, 1, ... K-1 turns,
        how many never, and how many prematurely; at most one of these is 1. Shape
        (n, 16, K + 2).
    """
    found = np.zeros((n * len(LABELS), longest + 2), dtype=np.int32)
    onset = occurrences(rows.gold, rows.dialogue_of).first()
    tag = occurrences(rows.predicted, rows.dialogue_of).first()
    place = np.searchsorted(tag.slot, onset.slot)
    tagged = np.zeros(len(onset), dtype=np.bool_)
    inside = place < len(tag)
    tagged[inside] = tag.slot[place[inside]] == onset.slot[inside]
    delay = np.zeros(len(onset), dtype=np.int64)
    delay[tagged] = tag.position[place[tagged]] - onset.position[tagged]
    column = np.where(delay < 0, longest + 1, np.where(tagged, delay, longest))
    found[onset.slot, column] = 1
    return found.reshape(n, len(LABELS), -1)


def onset_outcomes(totals: Floats) -> Floats:
    """Gives the share of the onsets that met each of :data:`OUTCOMES`.

    Args:
        totals: Summed :func:`onset_rows`. Shape (..., K + 2).

    Returns:
        Four shares that add up to 1; NaN where there is no onset. Shape (..., 4).
    """
    counts = np.stack(
        [
            totals[..., -1],
            totals[..., 0],
            totals[..., 1:-2].sum(axis=-1),
            totals[..., -2],
        ],
        axis=-1,
    )
    return ratio(counts, counts.sum(axis=-1, keepdims=True))


def detected(totals: Floats) -> Floats:
    """Gives the share of all onsets that were tagged at most d turns late, for each d.

    Args:
        totals: Summed :func:`onset_rows`. Shape (..., K + 2).

    Returns:
        D(d) for d = 0, 1, ... K-1. Premature and never tagged onsets stay in the denominator; NaN
        where there is no onset. Shape (..., K).
    """
    return ratio(totals[..., :-2].cumsum(axis=-1), totals.sum(axis=-1, keepdims=True))


def median_delay(totals: Floats) -> Floats:
    """Finds the delay by which half of all onsets have been tagged.

    Args:
        totals: Summed :func:`onset_rows`. Shape (..., K + 2).

    Returns:
        The smallest d with D(d) at least one half; infinity if fewer than half of the onsets are
        ever tagged on their turn or later, NaN if there is no onset. Shape (...).
    """
    found = detected(totals)
    reached = found >= 0.5
    median = np.where(reached.any(axis=-1), reached.argmax(axis=-1), np.inf)
    return np.where(np.isnan(found[..., 0]), np.nan, median)


def lead_values(longest: int) -> Floats:
    """Gives the possible leads, ascending: never, then 1-K to K-1 turns. Shape (2 K,)."""
    return np.concatenate([[-np.inf], np.arange(1 - longest, longest)])


def lead_rows(rows: Rows, n: int, longest: int) -> NDArray[np.int32]:
    """Counts the lead of each dialogue.

    Args:
        rows: Gold and predicted masks of n dialogues.
        n: Number of dialogues.
        longest: User turns of the longest dialogue, K.

    Returns:
        A 1 at the lead, in the order of :func:`lead_values`, for each dialogue that has both
        a gold alert and a gold confirm; zeros for the others. Shape (n, 2 K).
    """
    gold = first_positions(rows.gold, rows.dialogue_of, n, (ALERT_MASK, CONFIRM_MASK))
    tag = first_positions(rows.predicted, rows.dialogue_of, n, (ALL_MASK,))[:, 0]
    both = np.flatnonzero(np.isfinite(gold).all(axis=1))
    lead = gold[both, 1] - tag[both]
    found = np.zeros((n, 2 * longest), dtype=np.int32)
    found[both, np.searchsorted(lead_values(longest), lead)] = 1
    return found


def longest_dialogue(rows: Rows) -> int:
    """Counts the user turns of the longest dialogue; 0 without any."""
    return int(positions(rows.dialogue_of).max(initial=-1)) + 1
