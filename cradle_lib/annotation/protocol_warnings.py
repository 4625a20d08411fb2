"""Lists departures from the annotation protocol that a form can't prevent.

They are warnings and not errors: two equal labels may be two events, which only the annotator can
decide. Check them before agreement is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import pandas as pd

from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.arguments import checked
from cradle_lib.corpus.dialogue import Dialogue
from cradle_lib.labels import (
    ALERT_MASK,
    BITS,
    CONFIRM_MASK,
    LABELS,
    ONGOING_MASK,
    PAST_MASK,
    format_mask,
)

# A label given twice, a confirm before its alert, and a label on a Listener turn or a continuation.
_KINDS: Final = ("repeated", "late alert", "not a user turn")


@checked
def protocol_warnings(annotations: Annotations) -> pd.DataFrame:
    """Lists departures from the protocol as a data frame.

    Args:
        annotations: The labels of all annotators.

    Returns:
        One row for each warning: ``dialogue`` (str), ``turn`` (int), ``annotator`` (categorical:
        all annotators), ``kind`` (categorical: ``repeated``, ``late alert`` or ``not a user turn``)
        and ``message`` (str).
    """
    found = [
        (entry.dialogue, turn, entry.annotator, kind, message)
        for entry in annotations.entries
        for turn, kind, message in _warnings_of(entry, annotations.corpus.by_id[entry.dialogue])
    ]
    frame = pd.DataFrame(found, columns=["dialogue", "turn", "annotator", "kind", "message"])
    people = sorted({entry.annotator for entry in annotations.entries})
    frame["annotator"] = pd.Categorical(frame["annotator"], people)
    frame["kind"] = pd.Categorical(frame["kind"], _KINDS)
    return frame.astype({"dialogue": str, "turn": int, "message": str})


def _warnings_of(entry: Annotation, dialogue: Dialogue) -> Iterator[tuple[int, str, str]]:
    """Yields the turn, kind and message of each departure in one annotation.

    An alert is late if it is the first one of its temporal state and comes after its last confirm.
    """
    for turn, mask in zip(dialogue.turns, entry.masks, strict=True):
        if mask and not turn.asked:
            where = "a continuation of the turn above" if turn.continues else "a Listener turn"
            yield turn.turn_id, "not a user turn", f"{format_mask(mask)} is on {where}"
    for label in LABELS:
        first, *later = [t for t, mask in enumerate(entry.masks) if mask & BITS[label]] or [0]
        for place in later:
            message = f"{label} is already on turn {first}; each event gets a label once"
            yield place, "repeated", message
    for state in (ONGOING_MASK, PAST_MASK):
        alerts = [t for t, mask in enumerate(entry.masks) if mask & ALERT_MASK & state]
        confirms = [t for t, mask in enumerate(entry.masks) if mask & CONFIRM_MASK & state]
        if alerts and confirms and confirms[-1] < alerts[0]:
            after = f"an alert after the confirm on turn {confirms[-1]}"
            yield alerts[0], "late alert", f"{after}; correct only for another event"
