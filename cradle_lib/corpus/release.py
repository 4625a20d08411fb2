"""Reads and writes the release's format: one row per turn, with implicit dialogues and speakers.

The columns are ``turn_id``, ``text`` and ``labels``. A dialogue starts where ``turn_id`` is 0. The
text starts with the speaker; a row without one continues the row above. Any row may have labels.
Every row becomes one turn, in order.

An empty cell of ``labels`` means the same as ``none`` on a row of a labelled dialogue. A dialogue
with empty cells only has no gold labels, so that no score can be computed. The exception is a file
with labels that never says ``none``: there, an empty cell is how it says so.

Other corpora may also have the columns ``dialogue_id``, ``scenario`` and ``timing``, with the same
value on all rows of a dialogue.
"""

from __future__ import annotations

import csv
import re
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress, pairwise
from pathlib import Path
from typing import Any, Final

import numpy as np

from cradle_lib import labels
from cradle_lib.corpus import speakers, spellings
from cradle_lib.corpus.dialogue import Corpus, Dialogue, Speaker, Turn, valid_unicode
from cradle_lib.corpus.tables import Columns, brief, read_columns, save_table
from cradle_lib.errors import CorpusError

#: The release's columns: each file has them.
COLUMNS: Final = ("turn_id", "text", "labels")
#: Optional columns about a dialogue; the release has none.
META: Final = ("scenario", "timing")
#: Columns that are the same on all rows of a dialogue: its id, and the above.
ABOUT: Final = ("dialogue_id", *META)
LONGEST_NAME: Final = 64
_SPEAKER: Final = re.compile(r"\s*(User|Listener):[ \t]*(.*)", re.DOTALL)
# What may be a speaker's name: the start of a text up to a colon, markup, a dash or a line break.
# The items of a list are the User's own words: `- user: my name there`.
_HEAD: Final = r"(?!\s*[-+\u2022\u2013\u2014]|\s*\*\s)[\W_]*(.{0,40}?\S)"
_START: Final = re.compile(rf"{_HEAD}(?:\s*[:\ufe55\uff1a|]|[*~`>}}\]]+:?|\)\s*:)")
# The same before a sign that may also follow such a word in plain text: `AI - it is all over`.
_LOOSE_START: Final = re.compile(rf"{_HEAD}(?:\s*[\n\u2013\u2014]|\)|\s-|-\s)")
# A label left at the end of a text, as in the prompt that the release was generated with.
_TAG: Final = re.compile(r"\bTAG\s*:(.*)", re.DOTALL)
_NAME: Final = re.compile(
    r"[*_~`#|<>({\[]*[^\W\d_][\w.'\u2019-]*(?: [\w.'\u2019-]+){0,2}[*_~`|>)}\]]*\s?[:\uff1a]"
)
_FIX_SPEAKER: Final = "Correct the row, which would otherwise continue the turn above."
_NUMBER: Final = re.compile(r"\s*(\d{1,9})(\.0+)?\s*")
# Cells without a value, as programs write them.
_EMPTY: Final = ("", "nan", "null")
# Markup in HTML, Markdown, LaTeX or on a terminal.
_MARKUP: Final = frozenset('<>"`$\\|*[]{}~^')


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
    columns = read_columns(path, COLUMNS, ABOUT)
    rows = zip(*(columns[column] for column in COLUMNS), strict=True)
    corpus = build_corpus(rows, name or path.stem, path, columns)
    told = map(is_given, columns["labels"])
    if len(corpus.labelled) and all(turn.mask for turn in compress(corpus.turns, told)):
        labelled = (replace(dialogue, labelled=True) for dialogue in corpus)
        corpus = replace(corpus, dialogues=tuple(labelled))
    return corpus


def write_release(corpus: Corpus, path: Path) -> None:
    """Writes a corpus in the release's format, as :func:`.save_table` does.

    The dialogues' own ids, scenarios and timings are written if they are known.

    Raises:
        CorpusError: If a text contains a lone surrogate (half a character), which UTF-8 can't
            encode; or if only some dialogues have gold labels, and these on every row, so that the
            file would never say ``none``.
    """
    import pandas as pd

    broken = [turn.row for turn in corpus.turns if valid_unicode(turn.text) != turn.text]
    if broken:
        problem, hint = "the text has half a character", "Correct it in that row."
        raise CorpusError(problem, path=corpus.path, row=broken[0], hint=hint)
    if 0 < len(corpus.labelled) < len(corpus) and all(t.mask for t in corpus.labelled.turns):
        problem = "some dialogues have no gold labels, and the others have a label on every row"
        raise CorpusError(problem, path=corpus.path, hint="Write the two to separate files.")
    rows = [
        (
            turn.turn_id,
            turn.text if turn.continues else f"{turn.speaker}: {turn.text}",
            labels.format_mask(turn.mask) if dialogue.labelled else "",
        )
        for dialogue in corpus
        for turn in dialogue.turns
    ]
    frame = pd.DataFrame(rows, columns=list(COLUMNS))
    about: dict[str, list[str]] = {name: corpus.meta[name] for name in META if name in corpus.meta}
    if any(dialogue.own_id is not None for dialogue in corpus):
        about = {"dialogue_id": [dialogue.id for dialogue in corpus], **about}
    for name, values in about.items():
        frame[name] = np.repeat(values, [len(dialogue.turns) for dialogue in corpus])
    # Quotes around all texts: csv does not quote a text with a lone carriage return.
    save_table(frame, path, csv.QUOTE_NONNUMERIC)


def build_corpus(
    rows: Iterable[tuple[Any, Any, Any]],
    name: str,
    path: Path | None = None,
    about: Columns | None = None,
) -> Corpus:
    """Builds dialogues from rows ``(turn_id, text, labels)`` in file order.

    Args:
        rows: The rows.
        name: Name of the corpus.
        path: The file, for messages.
        about: The columns ``dialogue_id``, ``scenario`` and ``timing``, those that are known; other
            columns are ignored. Dialogues without a ``dialogue_id`` are named by their order.

    Returns:
        The corpus.

    Raises:
        CorpusError: If there is no row or a row can't be a turn; if a value of ``about`` is
            missing, not a valid name, or differs within a dialogue; if two dialogues have the same
            id; or if the name is not printable or has dots only.
    """
    dialogues: list[list[Turn]] = []
    labelled: list[bool] = []
    try:
        if not name.strip(". ") or not name.isprintable():
            # The name is also that of a folder of runs: the file `...csv` would give `..`.
            raise CorpusError(f"{brief(name)} can't be a corpus' name", hint="Rename the file.")
        for row, (turn_id, text, cell) in enumerate(rows):
            try:
                number = _turn_id(turn_id, dialogues)
                if number == 0:
                    dialogues.append([])
                    labelled.append(False)
                dialogues[-1].append(_turn(row, number, text, cell, dialogues[-1]))
                labelled[-1] |= is_given(cell)
            except CorpusError as error:
                raise error.located(row=row) from None
        if not dialogues:
            raise CorpusError("there are no rows", hint="Fetch or export it again.")
        for turns in dialogues:
            _refuse_other_names(turns)
        known = {c: _values(c, about[c], dialogues) for c in ABOUT if about and c in about}
        ids = known.pop("dialogue_id", None)
        seen: set[str] = set()
        for number, own in enumerate(ids or ()):
            if own in seen:
                problem = f"dialogue_id {own!r} is also the id of an earlier dialogue"
                hint = "Give every dialogue its own id, with its rows one after the other."
                raise CorpusError(problem, row=dialogues[number][0].row, hint=hint)
            seen.add(own)
    except CorpusError as error:
        raise error.located(path) from None
    parts = [
        Dialogue(n, tuple(turns), ids[n] if ids else None, labelled[n])
        for n, turns in enumerate(dialogues)
    ]
    return Corpus(name, tuple(parts), path, known)


def whole_number(cell: Any) -> int | None:
    """Reads a cell with a whole number from 0, which may be text or end in ``.0``."""
    found = _NUMBER.fullmatch(str(cell))
    return int(found[1]) if found else None


def _turn_id(cell: Any, dialogues: Sequence[Sequence[Turn]]) -> int:
    number = whole_number(cell)
    if number is None:
        raise CorpusError(f"turn_id is {brief(cell)}, expected a whole number from 0")
    expected = len(dialogues[-1]) if dialogues else 0
    if number not in (0, expected):
        or_new = " or 0 for a new dialogue" if dialogues else ""
        raise CorpusError(
            f"turn_id is {number}, expected {expected}{or_new}",
            hint="A row is missing, doubled or out of order.",
        )
    return number


def _turn(row: int, turn_id: int, text: Any, cell: Any, above: Sequence[Turn]) -> Turn:
    if not isinstance(text, str):
        found = "empty" if text is None else f"of the type {type(text).__name__}"
        raise CorpusError(f"text is {found}, expected text")
    match = _SPEAKER.fullmatch(text)
    speaker: Speaker
    if match:
        speaker = "User" if match[1] == "User" else "Listener"
        words = match[2]
    elif misspelt := misspelt_speaker(text):
        problem = f"found {brief(misspelt)}, expected 'User:' or 'Listener:'"
        raise CorpusError(problem, hint=_FIX_SPEAKER)
    elif not above:
        hint = "The first row of a dialogue starts with 'User:' or 'Listener:'."
        raise CorpusError("a dialogue starts with a text that names no speaker", hint=hint)
    else:
        speaker, words = above[-1].speaker, text
    tag = _TAG.search(words)
    if tag and any(n == labels.NONE or spellings.resembles(n) for n in spellings.split(tag[1])):
        problem = "the text ends with its labels, after 'TAG:'"
        raise CorpusError(problem, hint="Remove them: a model would read them.")
    return Turn(row, turn_id, speaker, words.strip(), read_mask(cell), continues=match is None)


def misspelt_speaker(text: str, form: re.Pattern[str] = _START) -> str | None:
    """Finds a misspelt speaker, which would make the row continue the one above.

    Case, width, spaces and invisible characters are ignored: ``user:``, ``User :``, a full-width
    colon and a zero-width space all read as a speaker. Other usual names do too, such as
    ``Therapist:``, and names in markup: ``**User:**`` or ``[User]``.

    Args:
        text: The text of a row.
        form: The forms in which a name may stand.

    Returns:
        The start of the text with the name; ``None`` if it names no speaker, or spells one as
        exactly ``User:`` or ``Listener:``, perhaps after white space.
    """
    start = form.match(text)
    if start is None or _SPEAKER.match(text):
        return None
    name = unicodedata.normalize("NFKC", start[1])
    letters = "".join(char for char in name if unicodedata.category(char)[0] not in "CMZ")
    return start[0].strip() if letters.strip("_").casefold() in speakers.ROLES else None


def _refuse_other_names(turns: Sequence[Turn]) -> None:
    """Refuses ``Name: text`` or ``Listener - text`` between two utterances of one speaker."""
    utterances = [turn for turn in turns if not turn.continues]
    for one, next_one in pairwise(utterances):
        for turn in turns[one.turn_id + 1 : next_one.turn_id]:
            other = _NAME.match(turn.text) or misspelt_speaker(turn.text, _LOOSE_START)
            if one.speaker == next_one.speaker and other:
                problem = f"found another name between two utterances of the {one.speaker}, "
                problem += "expected 'User:' or 'Listener:'"
                raise CorpusError(problem, row=turn.row, hint=_FIX_SPEAKER)


def is_given(cell: Any) -> bool:
    """Whether a cell gives labels, or says that there is none; not if it is empty."""
    if cell is None or cell != cell:  # NaN
        return False
    return not isinstance(cell, str) or cell.strip().lower() not in _EMPTY


def read_mask(cell: Any) -> int:
    """Reads a cell with labels in any spelling: text, a list of texts, or nothing.

    Raises:
        CorpusError: If a label is unknown, or the cell is something else.
    """
    if not is_given(cell):
        return 0
    if isinstance(cell, str):
        return spellings.parse(cell)
    if isinstance(cell, Sequence) and all(isinstance(item, str) for item in cell):
        return spellings.parse(";".join(cell))
    raise CorpusError(f"labels is {brief(cell)}, expected text")


def _values(column: str, cells: Sequence[Any], dialogues: Sequence[Sequence[Turn]]) -> list[str]:
    """Reads a value for each dialogue, which must be the same on all of its rows."""
    values = []
    for turns in dialogues:
        names = [id_of(column, cells[turn.row], turn.row) for turn in turns]
        for turn, name in zip(turns, names, strict=True):
            if name != names[0]:
                raise CorpusError(
                    f"{column} is {name!r}, and {names[0]!r} in row {turns[0].row} of the same "
                    "dialogue",
                    row=turn.row,
                    hint="A new dialogue starts at turn_id 0.",
                )
        values.append(names[0])
    return values


def id_of(column: str, value: Any, row: int) -> str:
    """Reads an id from a cell.

    Raises:
        CorpusError: If it is no name: empty, too long, or with markup.
    """
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    name = value.strip() if isinstance(value, str) else ""
    if not name:
        problem = "expected a name"
    elif len(name) > LONGEST_NAME or not name.isprintable() or not name[0].isalnum():
        problem = f"expected up to {LONGEST_NAME} printable characters, the first a letter or digit"
    elif markup := sorted(_MARKUP.intersection(name)):
        problem = f"expected a name without {' '.join(markup)}"
    else:
        return name
    hint = f"Correct it on every row, or leave out the column {column}."
    raise CorpusError(f"{column} is {brief(value)}, {problem}", row=row, hint=hint)
