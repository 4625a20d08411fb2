"""When a dialogue first has a label or a stage: what all analyses of timing start from.

Conventions:
    A position is the number of a user turn within its dialogue, counted from 0. An occurrence
    is one label on one user turn. A dialogue's first occurrence of a label is its onset.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import ALERT_MASK, ALL_MASK, BITS, CONFIRM_MASK, LABELS
from cradle_lib.scoring.conventions import Conventions, Rows
from cradle_lib.scoring.counts import Masks
from cradle_lib.scoring.evaluate import aligned
from cradle_lib.statistics.matching import occurrences, positions

# What timing is reported for: everything, each stage, each label; as masks.
SCOPES: Final[dict[str, int]] = {
    "any": ALL_MASK,
    "alert": ALERT_MASK,
    "confirm": CONFIRM_MASK,
    **BITS,
}
# Alerts come first in the order of the labels.
ALERTS: Final = ALERT_MASK.bit_count()
STAGES: Final = ("any", "alert", "confirm")


def first_only(masks: Masks, dialogue_of: NDArray[np.int64]) -> Masks:
    """Drops every label that its dialogue has had before. Shape (T,), as the masks."""
    kept = occurrences(masks, dialogue_of).first()
    bits = (1 << (kept.slot % len(LABELS))).astype(np.float64)
    return np.bincount(kept.row, weights=bits, minlength=len(masks)).astype(np.uint16)


def first_positions(
    masks: Masks, dialogue_of: NDArray[np.int64], n: int, scopes: Sequence[int]
) -> NDArray[np.float64]:
    """Finds when each of n dialogues first has a label of each of G scopes, which are masks.

    Gives positions, infinity where there is none. Shape (n, G).
    """
    found = np.full((n, len(scopes)), np.inf)
    position = positions(dialogue_of)
    rows = np.flatnonzero(masks)
    for column, scope in enumerate(scopes):
        hits = rows[(masks[rows] & np.uint16(scope)) != 0]
        owners = dialogue_of[hits]
        new = np.ones(len(hits), dtype=np.bool_)
        new[1:] = owners[1:] != owners[:-1]
        found[owners[new], column] = position[hits[new]]
    return found


def scored_rows(predictions: Predictions, conventions: Conventions) -> Rows:
    """Puts predictions beside gold, with nothing left of what the conventions leave out.

    A counted orphan is a row of its own, and counts as a turn. An excluded turn keeps its place,
    but has neither gold labels nor tags: ``answered`` is false on such turns only, so that it says
    which rows are scored. Where there is no readable answer, nothing is tagged. As
    :func:`.aligned`, it refuses conventions that leave nothing to score.
    """
    rows = aligned(predictions, conventions)
    nothing = np.uint16(0)
    gold, kept = rows.gold, np.ones_like(rows.answered)
    if conventions.unparsed == "exclude":
        gold, kept = np.where(rows.answered, gold, nothing), rows.answered
    predicted = np.where(rows.answered, rows.predicted, nothing)
    return Rows(gold, predicted, rows.dialogue_of, kept)
