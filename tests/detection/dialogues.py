"""Builds small corpora from rows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.labels import parse

Row = tuple[str, str, str]


def make_dialogue(index: int, rows: Sequence[Row]) -> Dialogue:
    """Builds a dialogue from (speaker, text, labels); a speaker ``+`` continues the row above."""
    turns: list[Turn] = []
    for position, (speaker, text, cell) in enumerate(rows):
        continues = speaker == "+"
        who = turns[-1].speaker if continues else speaker
        assert who in ("User", "Listener")
        turns.append(Turn(position, position, who, text, parse(cell), continues))
    return Dialogue(index, tuple(turns))


def make_corpus(dialogues: Sequence[Sequence[Row]], name: str = "tiny") -> Corpus:
    return Corpus(name, tuple(make_dialogue(i, rows) for i, rows in enumerate(dialogues)))


def without_timestamps(journal: Path) -> bytes:
    """Returns the bytes of a journal without measured times."""
    measured = rb'"(?:seconds|started)": (?:"[^"]*"|[0-9.e-]+)'
    return re.sub(measured, b"-", journal.read_bytes())
