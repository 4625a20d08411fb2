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

from cradle_lib.errors import CorpusError
from cradle_lib.files import visible_files

_SECTION: Final = re.compile(r"\[([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)\]")
_PAIRED: Final = re.compile(r"slot\..+|.+\.replace")
_SLOT: Final = re.compile(r"\{(@?)([A-Za-z][A-Za-z0-9_]*)\}")
_MARK: Final = re.compile(rf"{_SLOT.pattern}|\(")
_ALTERNATIVES: Final = re.compile(r"\([^()]*\)")


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
        """Reads every ``*.txt`` of a folder.

        Raises:
            CorpusError: If there is no phrase file, or one breaks the format or names a slot that
                does not exist; the message names file and line.
        """
        files = visible_files(folder, "*.txt")
        if not files:
            raise CorpusError(
                "no phrase file (*.txt) here", path=folder, hint="Give the phrase bank's folder"
            )
        sections: dict[str, list[Phrase]] = {}
        for path in files:
            _read(path, sections)
        for phrase in (phrase for phrases in sections.values() for phrase in phrases):
            for _, slot in _SLOT.findall(f"{phrase.text} {phrase.other}"):
                if not sections.get(f"slot.{slot}"):
                    raise CorpusError(
                        f"unknown slot {{{slot}}}",
                        path=phrase.where,
                        hint=f"Add a section [slot.{slot}] or correct the name",
                    )
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


def _read(path: Path, sections: dict[str, list[Phrase]]) -> None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"not UTF-8 at byte {error.start}", path=path, hint="Save the file as UTF-8"
        ) from error
    section = ""
    for number, line in enumerate(lines, start=1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        if header := _SECTION.fullmatch(text):
            section = header[1]
            sections.setdefault(section, [])
            continue
        own, arrow, other = (part.strip() for part in text.partition("=>"))
        if problem := _problem(section, own, arrow, other):
            raise CorpusError(
                f"{problem}: {text[:60]!r}", path=f"{path}:{number}", hint="Correct the line"
            )
        sections[section].append(Phrase(own, other if arrow else None, f"{path}:{number}"))


def _problem(section: str, own: str, arrow: str, other: str) -> str | None:
    """Says what is wrong with a phrase, if anything."""
    if not section or own.startswith("["):
        return "expected a section such as [name.part]"
    if not own or "=>" in other or (arrow and not _PAIRED.fullmatch(section)):
        return "expected a phrase, or 'this => that' in a section of slots or replacements"
    rest = _SLOT.sub("", f"{own} {other}")
    if set(rest) & set("{}"):
        return "a slot must look like {name} or {@name}"
    while (outer := _ALTERNATIVES.sub("", rest)) != rest:
        rest = outer
    if set(rest) & set("(|)"):
        return "alternatives are written (one|two), and brackets come in pairs"
    return None


@dataclass
class SurfaceForms:
    """Turns phrases into text for one dialogue; a ``{@name}`` keeps its value throughout.

    ``pick`` maps a number of options to the one to take; ``kept`` are the user's form and the
    Listener's form of the values to keep.
    """

    bank: Bank
    pick: Callable[[int], int]
    kept: dict[str, tuple[str, str]] = field(default_factory=dict)

    def say(self, phrase: Phrase, *, listener: bool) -> str:
        """Makes one surface form; where the Listener speaks, slots take their second form."""
        return self.expand(phrase.text, listener=listener)

    def expand(self, text: str, *, listener: bool) -> str:
        """Makes one surface form of a text, with the blanks exactly as the text has them."""
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
