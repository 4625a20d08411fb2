"""Reads the circumstances of each written dialogue: ``data/surrogate/dialogues/seeds.jsonl``.

They were drawn once, from tables whose entries do not repeat within a split until all were used.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from cradle_lib import paths, strict_json
from cradle_lib.errors import CorpusError
from tools.surrogate.plans import DIALOGUES

SEEDS: Final = DIALOGUES / "seeds.jsonl"


@dataclass(frozen=True, slots=True)
class Seed:
    """The circumstances of one dialogue.

    Attributes:
        id: Id of the dialogue.
        age: The user's age.
        listener: Who listens.
        listener_style: How the listener talks.
        listener_rows: Length of the listener's rows: ``short``, ``mixed`` or ``paragraphs``.
        listener_empathy: How often the listener says plainly that they are sorry or that it
            sounds hard: ``often``, ``sometimes`` or ``never``.
        listener_asks_safety: Whether the listener asks about safety directly, after a hint.
        dialect: The English of both speakers.
        voice: How the user talks.
        typing: ``lower``, ``nostop`` or ``stops``.
        mood: The user's mood.
        topic: What frames the talk.
        relation: The other person in it.
        occasion: How the talk comes to it.
        wants: What the user wants.
        rhythm: Length of the user's rows over the dialogue.
        ending: How the dialogue ends.
        near_miss: Rows that a careless reader would label.
        long_row: Whether a user row has more than 40 words.
        dates: Whether weekdays, months or feasts may be named.
        doubtful_row: Whether one row stays open on purpose, so that readers may differ.
    """

    id: str
    age: str
    listener: str
    listener_style: str
    listener_rows: str
    listener_empathy: str
    listener_asks_safety: bool
    dialect: str
    voice: str
    typing: str
    mood: str
    topic: str
    relation: str
    occasion: str
    wants: str
    rhythm: str
    ending: str
    near_miss: tuple[str, ...]
    long_row: bool
    dates: bool
    doubtful_row: bool

    @property
    def short(self) -> str:
        """One line for the header of the text file."""
        cells = (
            self.age, self.listener, self.listener_style, self.dialect, self.voice, self.typing,
            self.mood, self.topic, self.ending,
        )  # fmt: skip
        return " | ".join(cells)


@cache
def read_seeds(path: Path = SEEDS) -> dict[str, Seed]:
    """Reads the seeds, by id.

    Raises:
        CorpusError: If a line is not a seed.
    """
    seeds = {}
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines()):
        try:
            fields = strict_json.loads(line)
            seed = Seed(**{**fields, "near_miss": tuple(fields["near_miss"])})
        except (ValueError, TypeError, KeyError):
            raise CorpusError(
                "the line is not a seed",
                path=paths.shown(path),
                row=number,
                hint="Restore the file from the repository.",
            ) from None
        seeds[seed.id] = seed
    return seeds
