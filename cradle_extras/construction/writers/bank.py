"""The phrase bank: text files with sections, read into phrases.

A file is plain UTF-8. ``#`` starts a comment line, ``[name]`` a section; every
other line is one phrase of that section. Files may continue each other's sections.
A line ``this => that`` in a section of slots gives what the user says and what the
Listener says instead (``my sister => your sister``); in a section of replacements
it gives what is replaced by what.

In a phrase ``(a|b|c)`` picks one alternative, which may be empty; ``{name}`` is filled from
the slot ``name`` separately each time, ``{@name}`` once per dialogue. Alternatives nest
and may contain slots.
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
    """A line of the bank: the user's form, the Listener's form if it differs, and the place."""

    text: str
    other: str | None
    where: str


@dataclass(frozen=True)
class Bank:
    """All phrases by section, in the order of file names and lines."""

    sections: dict[str, tuple[Phrase, ...]]

    @classmethod
    def load(cls, folder: Path) -> Bank:
        """Reads every ``*.txt`` of a folder."""
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

    def parted(self, sections: str, *, test: bool) -> Bank:
        """Splits the values of slots between the test split (every second one) and the others.

        Otherwise words that occur only in disclosures would give the labels of the test split away.
        Slots with at least six values are split if phrases use them directly in the sections that
        match a regular expression.
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
    """Turns phrases into text for one dialogue; a ``{@name}`` keeps its value throughout.

    ``pick`` maps a number of options to the one to take; ``kept`` are the user's form and the
    Listener's form of the values to keep.
    """

    bank: Bank
    pick: Callable[[int], int]
    kept: dict[str, tuple[str, str]] = field(default_factory=dict)

    def expand(self, text: str, *, listener: bool) -> str:
        """Makes one surface form of a text, with the blanks exactly as the text has them.

        Where the Listener speaks, slots take their second form.
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
    """Splits the alternatives after an opening bracket; gives them and where they end."""
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
