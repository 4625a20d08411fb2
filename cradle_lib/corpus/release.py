"""Reads the release's format: one row per turn, with implicit dialogues and speakers.

The columns are ``turn_id``, ``text`` and ``labels``. A dialogue starts where ``turn_id`` is 0. The
text starts with the speaker; a row without one continues the row above. Any row may have labels.
Every row becomes one turn, in order.

Other corpora may also have the columns ``dialogue_id``, ``scenario`` and ``timing``, with the same
value on all rows of a dialogue.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

from cradle_lib import labels
from cradle_lib.corpus.dialogue import Corpus, Dialogue, Speaker, Turn
from cradle_lib.corpus.formats import ABOUT, COLUMNS, Columns, brief, read_columns
from cradle_lib.errors import CorpusError

LONGEST_TEXT: Final = 100_000
LONGEST_NAME: Final = 64
_SPEAKER: Final = re.compile(r"\s*(User|Listener):[ \t]*(.*)", re.DOTALL)
_COLON: Final = re.compile("[:\ufe55\uff1a]")
# Markup in HTML, Markdown, LaTeX or on a terminal.
_MARKUP: Final = frozenset('<>"`$\\|*[]{}~^')
_Row = tuple[Any, Any, Any]


def read_release(path: str | Path, name: str | None = None) -> Corpus:
    """Reads a corpus from a parquet, CSV, JSON or JSON lines file.

    Args:
        path: The file; its ending says which format it has.
        name: Name of the corpus; by default the file's name without ending.

    Returns:
        The corpus, with as many turns as the file has rows.

    Raises:
        CorpusError: If the file is missing, empty, damaged, not UTF-8, lacks a column, or
            has a row that can't be a turn. The message names the row.
    """
    path = Path(path)
    columns = read_columns(path)
    rows = zip(*(columns[column] for column in COLUMNS), strict=True)
    return build_corpus(rows, name or path.stem, path, columns)


def misspelt_speaker(text: str) -> str | None:
    """Finds a misspelt speaker, which would make the row continue the one above.

    Case, width, spaces and invisible characters are ignored: ``user:``, ``User :``, a full-width
    colon and a zero-width space all read as a speaker.

    Returns:
        The start of the text up to the colon; ``None`` if it names no speaker, or spells one as
        exactly ``User:`` or ``Listener:``, perhaps after white space.
    """
    colon = _COLON.search(text)
    if colon is None or _SPEAKER.match(text):
        return None
    name = unicodedata.normalize("NFKC", text[: colon.start()])
    letters = "".join(mark for mark in name if unicodedata.category(mark)[0] not in "CMZ")
    return text[: colon.end()].lstrip() if letters.casefold() in ("user", "listener") else None


def build_corpus(
    rows: Iterable[_Row], name: str, path: Path | None = None, about: Columns | None = None
) -> Corpus:
    """Builds dialogues from rows ``(turn_id, text, labels)`` in file order.

    Args:
        rows: The rows.
        name: Name of the corpus.
        path: The file, for messages.
        about: The columns ``dialogue_id``, ``scenario`` and ``timing``, as far as they are known;
            other columns are ignored. Dialogues without a ``dialogue_id`` are named by their order.

    Returns:
        The corpus.

    Raises:
        CorpusError: If there is no row or a row can't be a turn; if a value of ``about`` is
            missing, no name, or differs within a dialogue; if two dialogues have the same id; or if
            the name is not printable or has dots only.
    """
    if not name.strip(". ") or not name.isprintable():
        # The name is also that of a folder: `...csv` would give the parent folder.
        raise CorpusError(
            f"{brief(name)} can't be the name of a corpus", path=path, hint="Rename the file."
        )
    about = about or {}
    known: dict[str, list[str]] = {column: [] for column in ABOUT if column in about}
    dialogues: list[list[Turn]] = []
    row = 0
    try:
        for row, (turn_id, text, cell) in enumerate(rows):
            number = _turn_id(turn_id, dialogues)
            if number == 0:
                dialogues.append([])
            dialogues[-1].append(_turn(row, number, text, cell, dialogues[-1]))
            for column, names in known.items():
                _describe(column, about[column], row, row - number, names)
    except CorpusError as error:
        raise CorpusError(error.problem, path=path, row=row, hint=error.hint) from None
    if not dialogues:
        raise CorpusError("there are no rows", path=path, hint="Fetch or export it again.")
    ids = known.pop("dialogue_id", None)
    seen: dict[str, int] = {}
    for own, turns in zip(ids or (), dialogues, strict=False):
        if seen.setdefault(own, turns[0].row) != turns[0].row:
            raise CorpusError(
                f"dialogue_id {own!r} is that of the dialogue from row {seen[own]} on too",
                path=path,
                row=turns[0].row,
                hint="Give every dialogue an id of its own.",
            )
    return Corpus(
        name=name,
        dialogues=tuple(
            Dialogue(i, tuple(turns), ids[i] if ids else None) for i, turns in enumerate(dialogues)
        ),
        path=path,
        meta=known,
    )


def _turn_id(value: Any, dialogues: Sequence[Sequence[Turn]]) -> int:
    number = value
    if isinstance(value, str) and (found := re.fullmatch(r"\s*(\d{1,18})(\.0+)?\s*", value)):
        number = int(found[1])
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise CorpusError(f"turn_id is {brief(value)}, expected a whole number from 0")
    if number and not dialogues:
        raise CorpusError(
            f"the first turn_id is {number}, expected 0",
            hint="Every dialogue starts at turn_id 0; is this the head of a longer file?",
        )
    if number and number != len(dialogues[-1]):
        raise CorpusError(
            f"turn_id is {number}, expected {len(dialogues[-1])} or 0 for a new dialogue",
            hint="A row is missing, doubled or out of order.",
        )
    return number


def _turn(row: int, turn_id: int, text: Any, cell: Any, above: Sequence[Turn]) -> Turn:
    if not isinstance(text, str):
        raise CorpusError(f"text is {brief(text)}, expected text")
    if len(text) > LONGEST_TEXT:
        raise CorpusError(
            f"the text has {len(text):,} characters, expected at most {LONGEST_TEXT:,}",
            hint="A turn this long is a damaged file: look for an unclosed quote.",
        )
    said = _SPEAKER.fullmatch(text)
    speaker: Speaker
    if said:
        speaker = "User" if said[1] == "User" else "Listener"
        words = said[2]
    elif slip := misspelt_speaker(text):
        raise CorpusError(
            f"found {brief(slip)}, expected 'User:' or 'Listener:'",
            hint="Correct the row; as it is it would continue the turn above.",
        )
    elif not above:
        raise CorpusError(
            f"a dialogue starts with {brief(text)}, which names no speaker",
            hint="The first row of a dialogue starts with 'User:' or 'Listener:'.",
        )
    else:
        speaker, words = above[-1].speaker, text
    return Turn(row, turn_id, speaker, words.strip(), read_mask(cell), continues=said is None)


def read_mask(cell: Any) -> int:
    """Reads a cell with labels: text, a list of texts, or nothing.

    Raises:
        CorpusError: If a label is unknown, or the cell is something else.
    """
    if cell is None or (isinstance(cell, float) and cell != cell):
        return 0
    if isinstance(cell, str):
        return labels.parse(cell)
    if isinstance(cell, Sequence) and all(isinstance(item, str) for item in cell):
        return labels.parse(";".join(cell))
    raise CorpusError(f"labels is {brief(cell)}, expected text")


def _describe(column: str, cells: Sequence[Any], row: int, first: int, names: list[str]) -> None:
    """Reads a value about the dialogue, which must be the same in its first row."""
    if row == first:
        names.append(_name(column, cells[row]))
    elif cells[row] != cells[first] and (here := _name(column, cells[row])) != names[-1]:
        raise CorpusError(
            f"{column} is {here!r}, and {names[-1]!r} in row {first} of the same dialogue",
            hint="A new dialogue starts at turn_id 0.",
        )


def _name(column: str, value: Any) -> str:
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise CorpusError(
            f"{column} is {brief(value)}, expected a name",
            hint=f"Fill it in on every row, or leave out the column {column}.",
        )
    name = value.strip()
    if len(name) > LONGEST_NAME or not name.isprintable() or not name[0].isalnum():
        problem = f"expected up to {LONGEST_NAME} printable characters from a letter or digit on"
    elif markup := sorted(_MARKUP.intersection(name)):
        problem = f"expected a name without {' '.join(markup)}"
    else:
        return name
    raise CorpusError(f"{column} is {brief(value)}, {problem}", hint="Rename it in the file.")
