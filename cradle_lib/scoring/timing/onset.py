"""How long after its onset a label is tagged, and how long before a disclosure a warning comes.

The onset of a label is its first gold occurrence in a dialogue. What becomes of it is exactly
one of four things: it was tagged *premature* (the first tag of this label stands on an earlier
turn), *on time*, *late* (on a later turn, not before), or *never*. Turns are user turns.

Delay. Of the onsets that were not tagged prematurely, some are tagged after d turns and some
are not tagged before the dialogue ends; these are censored after the turns that were left. The
Kaplan-Meier estimate S(d), the share still waiting after d turns, uses both; averaging over the
tagged ones only would reward a model that finds nothing but the easy ones.

Lead time. In a dialogue that has a gold alert and a gold confirm, the lead is the turn of the
first confirm minus the turn of the first tag of any kind: positive if there was a warning
before the disclosure, minus infinity if there was none at all.

References:
    Kaplan and Meier, "Nonparametric Estimation from Incomplete Observations", JASA 53, 1958.
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
        how many were censored after 0, 1, ... K-1 turns, and how many were tagged
        prematurely; at most one of these is 1. Shape (n, 16, 2 K + 1).
    """
    found = np.zeros((n * len(LABELS), 2 * longest + 1), dtype=np.int32)
    onset = occurrences(rows.gold, rows.dialogue_of).first()
    tag = occurrences(rows.predicted, rows.dialogue_of).first()
    place = np.searchsorted(tag.slot, onset.slot)
    tagged = np.zeros(len(onset), dtype=np.bool_)
    inside = place < len(tag)
    tagged[inside] = tag.slot[place[inside]] == onset.slot[inside]
    delay = np.zeros(len(onset), dtype=np.int64)
    delay[tagged] = tag.position[place[tagged]] - onset.position[tagged]
    turns = np.bincount(rows.dialogue_of, minlength=n)
    left = turns[onset.slot // len(LABELS)] - 1 - onset.position
    column = np.where(delay < 0, 2 * longest, np.where(tagged, delay, longest + left))
    found[onset.slot, column] = 1
    return found.reshape(n, len(LABELS), -1)


def onset_outcomes(totals: Floats) -> Floats:
    """Gives the share of the onsets that met each of :data:`OUTCOMES`.

    Args:
        totals: Summed :func:`onset_rows`. Shape (..., 2 K + 1).

    Returns:
        Four shares that add up to 1; NaN where there is no onset. Shape (..., 4).
    """
    longest = totals.shape[-1] // 2
    counts = np.stack(
        [
            totals[..., 2 * longest],
            totals[..., 0],
            totals[..., 1:longest].sum(axis=-1),
            totals[..., longest : 2 * longest].sum(axis=-1),
        ],
        axis=-1,
    )
    return ratio(counts, counts.sum(axis=-1, keepdims=True))


def detected(totals: Floats) -> Floats:
    """Gives the share of all onsets that were tagged 0 to w turns late, for each w.

    Args:
        totals: Summed :func:`onset_rows`. Shape (..., 2 K + 1).

    Returns:
        Premature and never tagged onsets stay in the denominator; NaN where there is no
        onset. Shape (..., K).
    """
    longest = totals.shape[-1] // 2
    return ratio(totals[..., :longest].cumsum(axis=-1), totals.sum(axis=-1, keepdims=True))


def waiting(totals: Floats) -> Floats:
    """Estimates the share of onsets that still wait for their tag after d turns.

    Args:
        totals: Summed :func:`onset_rows`. Shape (..., 2 K + 1).

    Returns:
        The Kaplan-Meier estimate S(d) for d = 0, 1, ... K-1, over the onsets that were not
        tagged prematurely. It stays where it is once nobody is under observation; NaN if
        nobody ever was. Shape (..., K).
    """
    longest = totals.shape[-1] // 2
    events, ends = totals[..., :longest], totals[..., longest : 2 * longest]
    at_risk = (events + ends)[..., ::-1].cumsum(axis=-1)[..., ::-1]
    share = np.cumprod(1 - ratio(events, at_risk, 0.0), axis=-1)
    return np.where(at_risk[..., :1] > 0, share, np.nan)


def median_delay(totals: Floats) -> Floats:
    """Finds the delay after which half of the onsets have been tagged.

    Args:
        totals: Summed :func:`onset_rows`. Shape (..., 2 K + 1).

    Returns:
        The smallest d with S(d) at most one half; infinity if it is never reached, NaN if
        there was nobody to wait. Shape (...).
    """
    still = waiting(totals)
    # Products of fractions: one half comes out as one half only up to rounding.
    below = still <= 0.5 + 1e-9
    found = np.where(below.any(axis=-1), below.argmax(axis=-1), np.inf)
    return np.where(np.isnan(still[..., 0]), np.nan, found)


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
