"""Departures from the annotation protocol that a form can't prevent.

Each is a warning and not an error: two equal labels may stand for two events, and only the
annotator knows. They are worth a look before agreement is measured.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

import pandas as pd

from cradle_lib.annotation.table import Annotation, Annotations
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

Kind = Literal["repeated", "late alert", "not a user turn"]


@dataclass(frozen=True, slots=True)
class ProtocolWarning:
    """One departure from the protocol.

    Its kind is ``repeated`` (a label twice), ``late alert`` (a confirm before its alert) or
    ``not a user turn`` (a label on a Listener turn or on a continuation).
    """

    annotation: Annotation
    turn_id: int
    kind: Kind
    message: str

    def __str__(self) -> str:
        """Place and finding in one line."""
        return f"{self.annotation.place}, turn {self.turn_id}: {self.message}"


def find_warnings(annotations: Annotations) -> list[ProtocolWarning]:
    """Looks for departures from the protocol, annotation by annotation."""
    return [
        warning
        for entry in annotations.entries
        for warning in _warnings_of(entry, annotations.corpus.by_id[entry.dialogue])
    ]


def protocol_warnings(annotations: Annotations) -> pd.DataFrame:
    """Lists departures from the protocol as a data frame.

    Args:
        annotations: The labels of all annotators.

    Returns:
        One row for each warning: ``dialogue`` (str), ``turn`` (int), ``annotator`` (categorical:
        everybody who annotated), ``kind`` (categorical: the three kinds) and ``message`` (str).
    """
    rows = [
        (
            found.annotation.dialogue,
            found.turn_id,
            found.annotation.annotator,
            found.kind,
            found.message,
        )
        for found in find_warnings(annotations)
    ]
    frame = pd.DataFrame(rows, columns=["dialogue", "turn", "annotator", "kind", "message"])
    people = sorted({entry.annotator for entry in annotations.entries})
    frame["annotator"] = pd.Categorical(frame["annotator"], people)
    frame["kind"] = pd.Categorical(frame["kind"], get_args(Kind))
    return frame.astype({"dialogue": str, "turn": int, "message": str})


def _warnings_of(entry: Annotation, dialogue: Dialogue) -> Iterator[ProtocolWarning]:
    """Yields labels on turns where none belongs, then labels that were given twice, then alerts.

    These stand behind the last confirm of their temporal state, which has no alert before it.
    """
    for turn, mask in zip(dialogue.turns, entry.masks, strict=True):
        if mask and not turn.asked:
            where = "a continuation of the turn above" if turn.continues else "a Listener turn"
            yield ProtocolWarning(
                entry, turn.turn_id, "not a user turn", f"{format_mask(mask)} is on {where}"
            )
    for label in LABELS:
        places = [turn for turn, mask in enumerate(entry.masks) if mask & BITS[label]]
        for later in places[1:]:
            yield ProtocolWarning(
                entry,
                later,
                "repeated",
                f"{label} was given on turn {places[0]} already; one event gets it once",
            )
    for state in (ONGOING_MASK, PAST_MASK):
        alerts = [t for t, mask in enumerate(entry.masks) if mask & ALERT_MASK & state]
        confirms = [t for t, mask in enumerate(entry.masks) if mask & CONFIRM_MASK & state]
        if alerts and confirms and confirms[-1] < alerts[0]:
            yield ProtocolWarning(
                entry,
                alerts[0],
                "late alert",
                f"an alert after the confirm on turn {confirms[-1]}; fine if it is another event",
            )
