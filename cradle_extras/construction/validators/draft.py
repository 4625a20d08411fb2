"""Parses the dialogue that a writer returned, valid or not.

The text is read line by line. Lines outside the dialogue and malformed tags are recorded for the
validators.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Final

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.labels import BITS, format_mask, mask_of

_LINE: Final = re.compile(r"(User|Listener):[ \t]*(.*)")
_OTHER_NAME: Final = re.compile(r"\W*([A-Z][\w .-]{0,24}|user|listener)\W{0,3}:\s")
#: A tag, or the name of a label.
TAG: Final = re.compile(
    r"(?<![^\W_])tag\s*:|\b(?:alert|confirm)_\w|_(?:ongoing|past)\b", re.IGNORECASE
)
_GOOD_TAG: Final = re.compile(r" TAG: (\S+(?:; \S+)*)$")
_ITEM: Final = re.compile(r"[-•*] ")


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a draft: its text without the tag, and the tag's labels as a mask.

    A row that continues the utterance above has the same speaker. ``unknown`` has the names in the
    tag that are not labels.
    """

    speaker: str
    text: str
    mask: int = 0
    continues: bool = False
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draft:
    """A dialogue to be checked.

    Attributes:
        lines: Its rows.
        prose: For each line of prose outside the dialogue, the number of turns before it.
        others: For each line of another speaker, the number of turns before it.
    """

    lines: tuple[Line, ...]
    prose: tuple[int, ...] = ()
    others: tuple[int, ...] = ()

    @cached_property
    def utterances(self) -> list[str]:
        """The speaker of each utterance."""
        return [line.speaker for line in self.lines if not line.continues]

    @cached_property
    def turns(self) -> list[int]:
        """For each row the number of its turn, from 1: an utterance with the rows continuing it."""
        return list(accumulate(int(not line.continues) for line in self.lines))

    @cached_property
    def user_text(self) -> str:
        """The text of the user's rows, one per line."""
        return "\n".join(line.text for line in self.lines if line.speaker == "User")

    @cached_property
    def text(self) -> str:
        """The text of all rows, one per line."""
        return "\n".join(line.text for line in self.lines)

    def rows(self) -> list[tuple[int, str, str]]:
        """Gives the rows in the form of a corpus file: number, text with the speaker, labels."""
        return [
            (
                turn,
                line.text if line.continues else f"{line.speaker}: {line.text}",
                format_mask(line.mask),
            )
            for turn, line in enumerate(self.lines)
        ]


def read_draft(text: str) -> Draft:
    """Parses a writer's complete answer."""
    lines: list[Line] = []
    prose: list[int] = []
    others: list[int] = []
    for raw in text.splitlines():
        said = raw.strip()
        if not said:
            continue
        if match := _LINE.fullmatch(said):
            lines.append(_line(match[1], match[2]))
        elif _ITEM.match(said) and lines:
            lines.append(_line(lines[-1].speaker, said, continues=True))
        else:
            turns = sum(not line.continues for line in lines)
            (others if _OTHER_NAME.match(said) else prose).append(turns)
    return Draft(tuple(lines), tuple(prose), tuple(others))


def draft_of(dialogue: Dialogue) -> Draft:
    """Converts a dialogue of a corpus to a draft."""
    return Draft(tuple(Line(t.speaker, t.text, t.mask, t.continues) for t in dialogue.turns))


def texts_of(corpora: Iterable[Corpus]) -> list[tuple[str, str]]:
    """Gives a name (corpus and id) and the text of each dialogue of some corpora."""
    return [(f"{corpus.name} {d.id}", draft_of(d).text) for corpus in corpora for d in corpus]


def _line(speaker: str, said: str, *, continues: bool = False) -> Line:
    good = _GOOD_TAG.search(f" {said}")
    text = said[: max(good.start() - 1, 0)].rstrip() if good else said
    names = good[1].split("; ") if good else []
    known = {name for name in names if name in BITS}
    unknown = tuple(name for name in names if name not in BITS)
    return Line(speaker, text, mask_of(known), continues, unknown=unknown)


def write_line(line: Line) -> str:
    """Formats a row in the form that writers return, with its tag."""
    start = "" if line.continues else f"{line.speaker}: "
    return f"{start}{line.text}{f' TAG: {format_mask(line.mask)}' if line.mask else ''}"
