"""Warnings about departures from the annotation protocol."""

from __future__ import annotations

import pytest

from cradle_lib.annotation.protocol_warnings import protocol_warnings
from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.labels import BITS

ALERT, PAST = BITS["alert_ongoing"], BITS["alert_past"]
SH, DV = BITS["confirm_SH_ongoing"], BITS["confirm_DV_ongoing"]

#: A user turn, a Listener turn, a user turn of two rows, a user turn.
DIALOGUE = Dialogue(
    0,
    (
        Turn(0, 0, "User", "One.", 0),
        Turn(1, 1, "Listener", "Two.", 0),
        Turn(2, 2, "User", "Three.", 0),
        Turn(3, 3, "User", "- more", 0, continues=True),
        Turn(4, 4, "User", "Four.", 0),
    ),
)


@pytest.mark.parametrize(
    ("masks", "found"),
    [
        ((ALERT, 0, SH, 0, 0), []),
        ((0, ALERT, 0, 0, 0), [("not a user turn", 1)]),
        ((0, 0, 0, SH, 0), [("not a user turn", 3)]),
        ((SH, 0, SH, 0, SH), [("repeated", 2), ("repeated", 4)]),
        ((SH, 0, ALERT, 0, 0), [("late alert", 2)]),
        # The alert may belong to the second confirm.
        ((SH, 0, ALERT, 0, DV), []),
        # Another temporal state is another event.
        ((SH, 0, PAST, 0, 0), []),
        ((SH | ALERT, 0, 0, 0, 0), []),
    ],
)
def test_departures_from_the_protocol(masks: tuple[int, ...], found: list[tuple[str, int]]) -> None:
    entries = [
        Annotation("d0000", "A", "1", 1, "annotator", (0, 0, 0, 0, 0)),
        Annotation("d0000", "B", "1", 1, "annotator", masks),
    ]
    frame = protocol_warnings(Annotations.of(Corpus("c", (DIALOGUE,)), entries))
    assert [*zip(frame["kind"], frame["turn"], strict=True)] == found
    assert {*zip(frame["dialogue"], frame["annotator"], strict=True)} <= {("d0000", "B")}
    assert [*frame["annotator"].cat.categories] == ["A", "B"]
