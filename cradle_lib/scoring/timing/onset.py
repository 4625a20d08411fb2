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

The longest dialogue has K user turns. Where there is no onset, or no lead, all shares and medians
are NaN.

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
from cradle_lib.statistics.bootstrap import histogram_median
from cradle_lib.statistics.matching import occurrences, positions
from cradle_lib.statistics.rates import Floats, ratio

OUTCOMES: Final = ("premature", "on_time", "late", "never")
LEADS: Final = ("before", "same_turn", "after", "never", "median_lead")


def onset_rows(rows: Rows, n: int, longest: int) -> NDArray[np.int32]:
    """Sorts the onsets of each of n dialogues and each label by what became of them.

    Counted are onsets that were tagged after 0, 1, ... K-1 turns, never, and prematurely; at most
    one of these is 1. Shape (n, 16, K + 2).
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
    """Gives the shares of the onsets by :data:`OUTCOMES`. Shape (..., K + 2) to (..., 4)."""
    late = totals[..., 1:-2].sum(axis=-1)
    return _shares(totals[..., -1], totals[..., 0], late, totals[..., -2])


def detected(totals: Floats) -> Floats:
    """Computes D(d) for d = 0, 1, ... K-1. Shape (..., K + 2) to (..., K)."""
    return ratio(totals[..., :-2].cumsum(axis=-1), totals.sum(axis=-1, keepdims=True))


def median_delay(totals: Floats) -> Floats:
    """Finds the smallest d with D(d) at least one half. Shape (..., K + 2) to (...).

    It is infinite if fewer than half of the onsets are ever tagged on their turn or later.
    """
    found = detected(totals)
    reached = found >= 0.5
    median = np.where(reached.any(axis=-1), reached.argmax(axis=-1), np.inf)
    return np.where(np.isnan(found[..., 0]), np.nan, median)


def lead_values(longest: int) -> Floats:
    """Gives the possible leads, ascending: never, then 1-K to K-1 turns. Shape (2 K,)."""
    return np.concatenate([[-np.inf], np.arange(1 - longest, longest)])


def lead_rows(rows: Rows, n: int, longest: int) -> NDArray[np.int32]:
    """Has a 1 at the lead, of :func:`lead_values`, of each of n dialogues that has one.

    Shape (n, 2 K).
    """
    gold = first_positions(rows.gold, rows.dialogue_of, n, (ALERT_MASK, CONFIRM_MASK))
    tag = first_positions(rows.predicted, rows.dialogue_of, n, (ALL_MASK,))[:, 0]
    both = np.flatnonzero(np.isfinite(gold).all(axis=1))
    lead = gold[both, 1] - tag[both]
    found = np.zeros((n, 2 * longest), dtype=np.int32)
    found[both, np.searchsorted(lead_values(longest), lead)] = 1
    return found


def leads(totals: Floats) -> Floats:
    """Computes four shares and the median, as :data:`LEADS`. Shape (..., 2 K) to (..., 5)."""
    longest = totals.shape[-1] // 2
    before, after = totals[..., longest + 1 :].sum(axis=-1), totals[..., 1:longest].sum(axis=-1)
    shares = _shares(before, totals[..., longest], after, totals[..., 0])
    median = histogram_median(totals, lead_values(longest))
    return np.concatenate([shares, median[..., None]], axis=-1)


def longest_dialogue(rows: Rows) -> int:
    """Counts the user turns of the longest dialogue; 0 without any."""
    return int(positions(rows.dialogue_of).max(initial=-1)) + 1


def _shares(*counts: Floats) -> Floats:
    """Divides counts by their sum. Shape (...) each to (..., number of them)."""
    stacked = np.stack(counts, axis=-1)
    return ratio(stacked, stacked.sum(axis=-1, keepdims=True))
