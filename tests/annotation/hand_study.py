"""Small corpora for annotation studies, and a study that can be counted by hand."""

from __future__ import annotations

from cradle_lib.annotation import Annotation, Annotations
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.labels import BITS

ALERT, SH = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"]


def corpus_of(length: int, count: int = 1) -> Corpus:
    """Makes ``count`` equal dialogues of ``length`` user turns without labels."""
    return Corpus(
        "votes",
        tuple(
            Dialogue(i, tuple(Turn(i * length + t, t, "User", "Hm.", 0) for t in range(length)))
            for i in range(count)
        ),
    )


def hand_study() -> Annotations:
    """Makes a study: two dialogues per team, of three user turns and a Listener turn, one round."""
    dialogues = tuple(
        Dialogue(
            i,
            tuple(Turn(4 * i + t, t, "Listener" if t == 1 else "User", "Hm.", 0) for t in range(4)),
        )
        for i in range(4)
    )
    votes = {
        # Team 1: an exact match; then an alert by A, confirmed by adjudicator C.
        "d0000": {"A": (ALERT, 0, SH, 0), "B": (ALERT, 0, SH, 0)},
        "d0001": {"A": (ALERT, 0, 0, 0), "B": (0, 0, 0, 0), "C": (ALERT, 0, 0, 0)},
        # Team 2: the same alert on three turns; then three different sets.
        "d0002": {
            "C": (ALERT, 0, 0, 0),
            "D": (0, 0, ALERT, 0),
            "A": (0, 0, 0, ALERT),
            "S": (ALERT, 0, 0, 0),
        },
        "d0003": {"C": (ALERT, 0, 0, 0), "D": (SH, 0, 0, 0), "B": (0, 0, 0, 0), "S": (SH, 0, 0, 0)},
    }  # fmt: skip
    entries = []
    for dialogue, given in votes.items():
        team = "1" if dialogue < "d0002" else "2"
        own = "AB" if team == "1" else "CD"
        for name, masks in given.items():
            role = "senior" if name == "S" else "annotator" if name in own else "adjudicator"
            entries.append(Annotation(dialogue, name, team, 1, role, masks))  # type: ignore[arg-type]
    return Annotations.of(Corpus("hand", dialogues), entries)
