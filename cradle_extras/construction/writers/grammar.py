"""The grammar of one phrase: alternatives and slots.

``(a|b|c)`` picks one alternative, which may be empty; ``{name}`` is filled from
the slot ``name`` separately each time, ``{@name}`` once per dialogue. Alternatives nest
and may hold slots. Everything else stands for itself. Alternatives and slots are
all a clinician has to know to edit the bank, so the grammar stays this small.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from cradle_lib.errors import CorpusError

Pick = Callable[[int], int]
Fill = Callable[["Slot"], str]

_TOKEN: Final = re.compile(r"\{@?[A-Za-z][A-Za-z0-9_]*\}|[()|{}]|[^()|{}]+")


@dataclass(frozen=True, slots=True)
class Slot:
    """A place to be filled: its name without ``@``, and whether a dialogue keeps its value."""

    name: str
    kept: bool


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives, of which one is taken."""

    options: tuple[Sequence, ...]


Sequence = tuple["str | Slot | Choice", ...]


def parse(text: str, where: str) -> Sequence:
    """Reads one phrase that stands at ``where``, a ``file:line``, into parts; none is empty.

    Raises:
        CorpusError: If brackets do not match, an alternative stands outside
            brackets, or a slot has no proper name.
    """
    tokens = _TOKEN.findall(text)
    parts, at = _sequence(tokens, 0, where)
    if at != len(tokens):
        raise CorpusError(
            f"{tokens[at]!r} stands outside of any (…) in {text!r}",
            path=where,
            hint="Alternatives are written (one|two); brackets come in pairs",
        )
    return parts


def _sequence(tokens: list[str], at: int, where: str) -> tuple[Sequence, int]:
    parts: list[str | Slot | Choice] = []
    while at < len(tokens) and tokens[at] not in "|)":
        token = tokens[at]
        if token == "(":
            options: list[Sequence] = []
            while not options or tokens[at] == "|":
                option, at = _sequence(tokens, at + 1, where)
                options.append(option)
                if at >= len(tokens):
                    raise CorpusError("a ( is never closed", path=where, hint="Add the missing )")
            parts.append(Choice(tuple(options)))
        elif token == "{":
            found = "".join(tokens[at : at + 2])
            raise CorpusError(
                f"a slot must look like {{name}} or {{@name}}, found {found}",
                path=where,
                hint="Close it with } and use letters, digits and _ only",
            )
        elif token == "}":
            raise CorpusError("a } without a {", path=where, hint="Remove it or add the {")
        elif token.startswith("{"):
            parts.append(Slot(token.strip("{@}"), kept="@" in token))
        else:
            parts.append(token)
        at += 1
    return tuple(parts), at


def expand(parts: Sequence, pick: Pick, fill: Fill) -> str:
    """Makes one surface form, with the blanks exactly as the phrase has them.

    ``pick`` maps a number of options to the one to take, ``fill`` gives the text for a slot.
    """
    out: list[str] = []
    for part in parts:
        if isinstance(part, str):
            out.append(part)
        elif isinstance(part, Slot):
            out.append(fill(part))
        else:
            out.append(expand(part.options[pick(len(part.options))], pick, fill))
    return "".join(out)


def plain(parts: Sequence) -> str:
    """Gives a phrase without its alternatives and slots."""
    return "".join(part for part in parts if isinstance(part, str))


def slots(parts: Sequence) -> Iterator[Slot]:
    """Walks over all slots of a phrase, in every alternative."""
    for part in parts:
        if isinstance(part, Slot):
            yield part
        elif isinstance(part, Choice):
            for option in part.options:
                yield from slots(option)
