"""Prompt templates: plain text files with named slots, and their loader.

A slot is a word in braces, such as ``{history}``. Other braces are ordinary text. A
template is split at its slots when it is loaded, and filled by joining the pieces.
Values are never parsed as templates, so braces in a dialogue have no effect.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.errors import RegistryError
from cradle_lib.files import visible_files

SHIPPED: Final = Path(__file__).parent / "templates"
DETECTION_SLOTS: Final = frozenset({"history", "current_turn"})
#: The paper's name of a slot, and ours: its prompt (Figures 8 to 10) can be used unchanged.
ALIASES: Final = {"dialogue_history": "history"}

_SLOT: Final = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")


@dataclass(frozen=True, slots=True)
class Template:
    """A prompt with slots.

    Attributes:
        name: Its name in the registry.
        text: The whole template, with its slots.
        pieces: The text between the slots, one piece more than there are slots.
        slots: The slots' names, in order of appearance; for an alias, the name that it stands for.
    """

    name: str
    text: str
    pieces: tuple[str, ...]
    slots: tuple[str, ...]

    @property
    def hash(self) -> str:
        """Sixteen hexadecimal digits of the text's SHA-256; part of a run's identity."""
        return text_hash(self.text)

    @property
    def static(self) -> int:
        """Number of characters before the first slot: the same in every prompt of a run."""
        return len(self.pieces[0])

    def fill(self, **values: str) -> str:
        """Puts values into the slots.

        A line that consists only of an empty slot is dropped, so that a dialogue
        without history starts without a blank line.

        Args:
            **values: One text per slot.

        Returns:
            The prompt.

        Raises:
            RegistryError: If a slot has no value or a value has no slot.
        """
        if values.keys() != set(self.slots):
            raise RegistryError(
                f"prompt template {self.name!r}: values for {_listed(values)} were given, "
                f"but the template has slots {_listed(dict.fromkeys(self.slots))}"
            )
        parts = [self.pieces[0]]
        for slot, piece in zip(self.slots, self.pieces[1:], strict=True):
            value = values[slot]
            alone = parts[-1].endswith("\n") and piece.startswith("\n")
            parts += ["", piece[1:]] if alone and not value else [value, piece]
        return "".join(parts)


def parse_template(
    name: str, text: str, slots: frozenset[str] | None = DETECTION_SLOTS
) -> Template:
    """Splits a text at its slots.

    Args:
        name: The template's name, for messages.
        text: The template.
        slots: The slots that it must have, each exactly once; ``None`` for any. A slot may have
            its name in the paper: see :data:`ALIASES`.

    Returns:
        The template.

    Raises:
        RegistryError: If a slot is missing, unknown or repeated.
    """
    found = [ALIASES.get(slot, slot) for slot in _SLOT.findall(text)]
    if slots is not None:
        for problem, names in (
            ("lacks the slot", sorted(slots - set(found))),
            ("has an unknown slot", sorted(set(found) - slots)),
            ("repeats the slot", sorted({slot for slot in found if found.count(slot) > 1})),
        ):
            if names:
                raise RegistryError(
                    f"prompt template {name!r} {problem} {{{names[0]}}}. "
                    f"It must contain each of {_listed(sorted(slots))} once."
                )
    pieces = tuple(_SLOT.split(text)[::2])
    return Template(name=name, text=text, pieces=pieces, slots=tuple(found))


def load_template(name: str, slots: frozenset[str] | None = DETECTION_SLOTS) -> Template:
    """Loads a template by name: one that ships, or a text file in ``data/prompts``.

    Args:
        name: For instance ``turn`` (the paper's layout), ``append`` (the current turn
            is the last line), or the name of your own file without ``.txt``.
        slots: The slots that it must have; ``None`` for any.

    Returns:
        The template. A single line break at the end of the file is not part of it.

    Raises:
        RegistryError: If there is no such template, or its slots are wrong.
    """
    found = template_files()
    if name not in found:
        raise RegistryError(
            f"there is no prompt template {name!r}; there are: {', '.join(found)}. "
            f"Save your own as {paths.shown(paths.PROMPTS / name)}.txt."
        )
    text = read_text(found[name]).removesuffix("\n")
    return parse_template(name, text, slots)


def template_files() -> dict[str, Path]:
    """Maps template names to files; shipped templates come first and can't be overridden."""
    files: dict[str, Path] = {}
    for folder in (SHIPPED, paths.PROMPTS):
        for path in visible_files(folder, "*.txt"):
            files.setdefault(path.stem, path)
    return files


@lru_cache(maxsize=64)
def text_hash(text: str) -> str:
    """Sixteen hexadecimal digits of a text's SHA-256."""
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def read_text(path: Path) -> str:
    """Reads a UTF-8 file; an error names the file."""
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise RegistryError(
            f"{paths.shown(path)}: can't be read as UTF-8 text ({error})"
        ) from error


def _listed(names: Iterable[str]) -> str:
    return ", ".join(f"{{{name}}}" for name in names) or "nothing"
