"""A parser for the dialogue that a writer returned, valid or not.

The text is read line by line. Lines outside the dialogue and malformed tags are kept, so that the
validators can judge them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.labels import BITS, format_mask, mask_of

_LINE: Final = re.compile(r"(User|Listener):[ \t]*(.*)")
_OTHER_NAME: Final = re.compile(r"\W*([A-Z][\w .-]{0,24}|user|listener)\W{0,3}:\s")
_TAG: Final = re.compile(r"\btag\s*:", re.IGNORECASE)
_GOOD_TAG: Final = re.compile(r" TAG: (\S+(?:; \S+)*)$")
_ITEM: Final = re.compile(r"[-•*] ")


@dataclass(frozen=True, slots=True)
class Line:
    """One row of a draft: what is said, without the tag, whose labels are the mask.

    A row that continues the utterance above has its speaker. ``unknown`` are the names in the tag
    that are not labels.
    """

    speaker: str
    text: str
    mask: int = 0
    continues: bool = False
    badly_tagged: bool = False
    unknown: tuple[str, ...] = ()


@dataclass(frozen=True)
class Draft:
    """A dialogue to be checked: its rows, as turns counted from 1.

    ``prose`` and ``others`` have an entry for each line that does not belong to the dialogue, prose
    or another speaker's: the number of rows before it.
    """

    lines: tuple[Line, ...]
    prose: tuple[int, ...] = ()
    others: tuple[int, ...] = ()

    @cached_property
    def utterances(self) -> list[str]:
        """Who speaks, utterance by utterance."""
        return [line.speaker for line in self.lines if not line.continues]

    @cached_property
    def user_text(self) -> str:
        """All that the user says, a row a line."""
        return "\n".join(line.text for line in self.lines if line.speaker == "User")

    @cached_property
    def text(self) -> str:
        """All that is said, a row a line."""
        return "\n".join(line.text for line in self.lines)

    def rows(self) -> list[tuple[int, str, str]]:
        """Gives the rows as a corpus file has them: number, text with the speaker, labels."""
        return [
            (
                turn,
                line.text if line.continues else f"{line.speaker}: {line.text}",
                format_mask(line.mask),
            )
            for turn, line in enumerate(self.lines)
        ]


def read_draft(text: str) -> Draft:
    """Reads a writer's complete answer."""
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
            (others if _OTHER_NAME.match(said) else prose).append(len(lines))
    return Draft(tuple(lines), tuple(prose), tuple(others))


def draft_of(dialogue: Dialogue) -> Draft:
    """Makes a draft of a dialogue of a corpus."""
    return Draft(tuple(Line(t.speaker, t.text, t.mask, t.continues) for t in dialogue.turns))


def texts_of(corpora: Iterable[Corpus]) -> list[tuple[str, str]]:
    """Gives what is said in each dialogue of some corpora, by the names of corpus and dialogue."""
    return [(f"{corpus.name} {d.id}", draft_of(d).text) for corpus in corpora for d in corpus]


def _line(speaker: str, said: str, *, continues: bool = False) -> Line:
    good = _GOOD_TAG.search(f" {said}")
    text = said[: max(good.start() - 1, 0)].rstrip() if good else said
    if _TAG.search(text):
        return Line(speaker, text, continues=continues, badly_tagged=True)
    names = good[1].split("; ") if good else []
    known = {name for name in names if name in BITS}
    unknown = tuple(name for name in names if name not in BITS)
    return Line(speaker, text, mask_of(known), continues, unknown=unknown)


def write_line(line: Line) -> str:
    """Writes a row as a writer would, with its tag."""
    start = "" if line.continues else f"{line.speaker}: "
    return f"{start}{line.text}{f' TAG: {format_mask(line.mask)}' if line.mask else ''}"
