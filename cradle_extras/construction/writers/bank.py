"""The phrase bank: reads phrases from text files with sections, and expands them to text.

A file is plain UTF-8. ``#`` starts a comment line, ``[name]`` a section; every
other line is one phrase of that section. Several files may add to one section.
In a section of slots, ``this => that`` has the user's form and the Listener's form
(``my sister => your sister``); in a section of replacements, ``this`` is replaced by ``that``.

In a phrase ``(a|b|c)`` picks one alternative, which may be empty. ``{name}`` takes a new
value of the slot ``name`` each time, ``{@name}`` the same value throughout a dialogue.
Alternatives nest and may contain slots.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

_SECTION: Final = re.compile(r"\[([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)\]")
_SLOT: Final = re.compile(r"\{(@?)([A-Za-z][A-Za-z0-9_]*)\}")
_MARK: Final = re.compile(rf"{_SLOT.pattern}|\(")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A line of the bank: the user's form, the Listener's form if it differs, file and line."""

    text: str
    other: str | None
    where: str


@dataclass(frozen=True)
class Bank:
    """All phrases by section, in the order of file names and lines."""

    sections: dict[str, tuple[Phrase, ...]]

    @classmethod
    def load(cls, folder: Path) -> Bank:
        """Reads all ``*.txt`` files of a folder."""
        sections: dict[str, list[Phrase]] = {}
        for path in sorted(folder.glob("*.txt")):
            for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
                text = line.strip()
                if header := _SECTION.fullmatch(text):
                    phrases = sections.setdefault(header[1], [])
                elif text and not text.startswith("#"):
                    own, arrow, other = (part.strip() for part in text.partition("=>"))
                    phrases.append(Phrase(own, other if arrow else None, f"{path}:{number}"))
        return cls({name: tuple(phrases) for name, phrases in sections.items()})

    def named(self, pattern: str) -> list[str]:
        """Lists the sections whose full name matches a regular expression, sorted."""
        return sorted(name for name in self.sections if re.fullmatch(pattern, name))

    def with_split_slots(self, sections: str, *, test: bool) -> Bank:
        """Divides the values of slots between the test split (every second one) and the others.

        Otherwise words that occur only in disclosures would leak the labels of the test split.
        Slots with at least six values are divided if they occur directly in phrases of sections
        that match the regular expression ``sections``.
        """
        used = {
            f"slot.{slot}"
            for name in self.named(sections)
            for phrase in self.sections[name]
            for _, slot in _SLOT.findall(phrase.text)
        }
        return Bank(
            {
                name: phrases[test::2] if name in used and len(phrases) >= 6 else phrases
                for name, phrases in self.sections.items()
            }
        )


@dataclass
class SurfaceForms:
    """Expands phrases to text for one dialogue; a ``{@name}`` keeps its value throughout.

    ``pick`` chooses an index, given the number of options. ``kept`` has the user's form and the
    Listener's form of the values to keep.
    """

    bank: Bank
    pick: Callable[[int], int]
    kept: dict[str, tuple[str, str]] = field(default_factory=dict)

    def expand(self, text: str, *, listener: bool) -> str:
        """Fills the slots and alternatives of a text; spaces are unchanged.

        For the Listener, slots take their second form.
        """
        parts, at = [], 0
        while mark := _MARK.search(text, at):
            parts.append(text[at : mark.start()])
            if mark[0] == "(":
                options, at = _options(text, mark.end())
                parts.append(self.expand(options[self.pick(len(options))], listener=listener))
            else:
                at = mark.end()
                parts.append(self._fill(mark[2], keep=bool(mark[1]))[listener])
        return "".join(parts) + text[at:]

    def _fill(self, slot: str, *, keep: bool) -> tuple[str, str]:
        if keep and slot in self.kept:
            return self.kept[slot]
        values = self.bank.sections[f"slot.{slot}"]
        value = values[self.pick(len(values))]
        own = other = self.expand(value.text, listener=False)
        if value.other is not None:
            other = self.expand(value.other, listener=True)
        if keep:
            self.kept[slot] = (own, other)
        return own, other


def _options(text: str, start: int) -> tuple[list[str], int]:
    """Splits the alternatives after an opening bracket; gives them and the end position."""
    options, depth = [], 1
    for at in range(start, len(text)):
        letter = text[at]
        if depth == 1 and letter in "|)":
            options.append(text[start:at])
            start = at + 1
        depth += {"(": 1, ")": -1}.get(letter, 0)
        if not depth:
            break
    return options, start
