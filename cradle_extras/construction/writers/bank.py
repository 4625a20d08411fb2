"""The phrase bank: text files with sections, read into phrases.

A file is plain UTF-8. ``#`` starts a comment line, ``[name]`` a section; every
other line is one phrase of that section. Files may continue each other's sections.
A line ``this => that`` in a section of slots gives what the user says and what the
Listener says instead (``my sister => your sister``); in a section of replacements
it gives what is replaced by what.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from typing import Final

from cradle_extras.construction.writers import grammar
from cradle_lib.errors import CorpusError
from cradle_lib.files import visible_files

_SECTION: Final = re.compile(r"\[([A-Za-z0-9_]+(?:\.[A-Za-z0-9_]+)*)\]")
_ARROW: Final = "=>"
_PAIRED: Final = re.compile(r"slot\..+|.+\.replace")


@dataclass(frozen=True, slots=True)
class Phrase:
    """A line of the bank: what the user says, the Listener's other form, if any, and its place."""

    parts: grammar.Sequence
    other: grammar.Sequence | None
    where: str


@dataclass(frozen=True)
class Bank:
    """All phrases by section, in the order of file names and lines."""

    sections: dict[str, tuple[Phrase, ...]]

    @classmethod
    def load(cls, folder: Path) -> Bank:
        """Reads every ``*.txt`` of a folder: every slot that is named exists, none needs itself.

        Raises:
            CorpusError: If there is no phrase file, or one breaks the format; the
                message names file and line.
        """
        files = visible_files(folder, "*.txt")
        if not files:
            raise CorpusError(
                "no phrase file (*.txt) here",
                path=folder,
                hint="Give the folder with the phrase bank",
            )
        sections: dict[str, list[Phrase]] = {}
        for path in files:
            _read(path, sections)
        bank = cls({name: tuple(phrases) for name, phrases in sections.items()})
        bank._check()
        return bank

    def phrases(self, section: str) -> tuple[Phrase, ...]:
        """Gives a section's phrases.

        Raises:
            CorpusError: If the section does not exist or is empty.
        """
        found = self.sections.get(section, ())
        if not found:
            raise CorpusError(
                f"the phrase bank has no section [{section}] with phrases",
                hint="Add it to one of the phrase files",
            )
        return found

    def named(self, pattern: str) -> list[str]:
        """Lists the sections whose full name matches a regular expression, sorted."""
        return sorted(name for name in self.sections if re.fullmatch(pattern, name))

    def pairs(self, section: str) -> list[tuple[str, str]]:
        """Gives the ``this => that`` lines of a section, if it exists, as texts, longest first."""
        found = [
            (grammar.plain(phrase.parts), grammar.plain(phrase.other or ()))
            for phrase in self.sections.get(section, ())
        ]
        return sorted(found, key=lambda pair: (-len(pair[0]), pair))

    def parted(self, sections: str, *, test: bool) -> Bank:
        """Splits the values of slots between the test split (every second one) and the others.

        Otherwise words that stand in disclosures only, such as who did it, would give the labels of
        the test split away. Slots with at least six values are split that phrases use directly in
        the sections which a regular expression names.
        """
        used = {
            f"slot.{slot.name}"
            for name in self.named(sections)
            for phrase in self.sections[name]
            for slot in grammar.slots(phrase.parts)
        }
        return Bank(
            {
                name: phrases[test::2] if name in used and len(phrases) >= 6 else phrases
                for name, phrases in self.sections.items()
            }
        )

    def _check(self) -> None:
        needs: dict[str, dict[str, str]] = {}
        for section, phrases in self.sections.items():
            for phrase in phrases:
                for slot in (*grammar.slots(phrase.parts), *grammar.slots(phrase.other or ())):
                    if f"slot.{slot.name}" not in self.sections:
                        raise CorpusError(
                            f"unknown slot {{{slot.name}}}",
                            path=phrase.where,
                            hint=f"Add a section [slot.{slot.name}] or correct the name",
                        )
                    needs.setdefault(section, {})[f"slot.{slot.name}"] = phrase.where
        try:
            TopologicalSorter(needs).prepare()
        except CycleError as error:
            needed, section, *_ = error.args[1]
            where = needs[section][needed]
            hint = "Break the circle of slots"
            raise CorpusError(f"[{needed}] needs itself", path=where, hint=hint) from None


def _read(path: Path, sections: dict[str, list[Phrase]]) -> None:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except UnicodeDecodeError as error:
        raise CorpusError(
            f"not UTF-8 at byte {error.start}", path=path, hint="Save the file as UTF-8"
        ) from error
    current: str | None = None
    for number, line in enumerate(lines, start=1):
        text, where = line.strip(), f"{path}:{number}"
        if not text or text.startswith("#"):
            continue
        if text.startswith("["):
            header = _SECTION.fullmatch(text)
            if header is None:
                raise CorpusError(
                    f"a section must look like [name.part], found {text[:60]!r}",
                    path=where,
                    hint="Use letters, digits, _ and dots between square brackets",
                )
            current = header.group(1)
            sections.setdefault(current, [])
            continue
        if current is None:
            raise CorpusError(
                f"a phrase before the first section: {text[:60]!r}",
                path=where,
                hint="Put a [section] line above it",
            )
        sections[current].append(_phrase(text, current, where))


def _phrase(text: str, section: str, where: str) -> Phrase:
    first, arrow, second = text.partition(_ARROW)
    if arrow and not _PAIRED.fullmatch(section):
        raise CorpusError(
            f"=> is allowed in slots and replacements only, not in [{section}]",
            path=where,
            hint="Remove it, or move the line",
        )
    if not first.strip() or _ARROW in second:
        raise CorpusError(
            f"expected one 'this => that', found {text[:60]!r}",
            path=where,
            hint="Write the first form before => and the second after it",
        )
    parts = grammar.parse(first.strip(), where)
    return Phrase(parts, grammar.parse(second.strip(), where) if arrow else None, where)


@dataclass
class SurfaceForms:
    """Turns phrases into text for one dialogue; a ``{@name}`` keeps its value throughout.

    ``pick`` maps a number of options to the one to take; ``kept`` are the user's form and the
    Listener's of what is kept.
    """

    bank: Bank
    pick: Callable[[int], int]
    kept: dict[str, tuple[str, str]] = field(default_factory=dict)

    def say(self, phrase: Phrase, *, listener: bool) -> str:
        """Makes one surface form; where the Listener speaks, slots take their second form."""
        return grammar.expand(phrase.parts, self.pick, lambda slot: self._fill(slot)[listener])

    def _fill(self, slot: grammar.Slot) -> tuple[str, str]:
        if slot.kept and slot.name in self.kept:
            return self.kept[slot.name]
        values = self.bank.phrases(f"slot.{slot.name}")
        value = values[self.pick(len(values))]
        own = grammar.expand(value.parts, self.pick, lambda inner: self._fill(inner)[0])
        other = own
        if value.other is not None:
            other = grammar.expand(value.other, self.pick, lambda inner: self._fill(inner)[1])
        if slot.kept:
            self.kept[slot.name] = (own, other)
        return own, other
