"""Reads the release's format: one row a turn, dialogues and speakers implicit.

The columns are ``turn_id``, ``text`` and ``labels``. A dialogue starts where ``turn_id``
is 0; the speaker stands at the start of ``text``; a row without one continues the row
above. Labels may stand on any row. Every row becomes one turn, in order.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq

from cradle_lib import labels
from cradle_lib.corpus.dialogue import Corpus, Dialogue, Speaker, Turn
from cradle_lib.errors import CorpusError, LabelError

COLUMNS: Final = ("turn_id", "text", "labels")
LONGEST_TEXT: Final = 100_000
_SPEAKER: Final = re.compile(r"\s*(User|Listener):[ \t]*(.*)", re.DOTALL)
_Row = tuple[Any, Any, Any]


def read_release(path: str | Path, name: str | None = None) -> Corpus:
    """Reads a corpus from a parquet, CSV, JSON or JSON lines file.

    Args:
        path: The file; its ending says which format it has.
        name: What to call the corpus; by default the file's name without ending.

    Returns:
        The corpus, with as many turns as the file has rows.

    Raises:
        CorpusError: If the file is missing, empty, damaged, not UTF-8, lacks a column, or
            has a row that can't be a turn. The message names the row.
    """
    path = Path(path)
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise CorpusError(
            f"unknown ending {path.suffix!r}, expected one of {', '.join(_READERS)}", path=path
        )
    if not path.is_file():
        raise CorpusError("no such file", path=path, hint="Check the path.")
    if path.stat().st_size == 0:
        raise CorpusError("the file is empty", path=path, hint="Fetch or export it again.")
    return build_corpus(reader(path), name or path.stem, path)


def build_corpus(rows: Iterable[_Row], name: str, path: Path | None = None) -> Corpus:
    """Assembles dialogues from rows.

    Args:
        rows: ``(turn_id, text, labels)`` in file order.
        name: What to call the corpus.
        path: Where the rows came from, for messages.

    Returns:
        The corpus.

    Raises:
        CorpusError: If there is no row, or one of them can't be a turn.
    """
    dialogues: list[list[Turn]] = []
    for row, (turn_id, text, cell) in enumerate(rows):
        number = _turn_id(turn_id, path, row)
        if number == 0:
            dialogues.append([])
        elif not dialogues:
            raise CorpusError(
                f"the first turn_id is {number}, expected 0", path=path, row=row, hint=_START
            )
        elif number != len(dialogues[-1]):
            raise CorpusError(
                f"turn_id is {number}, expected {len(dialogues[-1])} or 0 for a new dialogue",
                path=path,
                row=row,
                hint="A row is missing, doubled or out of order.",
            )
        above = dialogues[-1][-1] if dialogues[-1] else None
        dialogues[-1].append(_turn(row, number, text, cell, above, path))
    if not dialogues:
        raise CorpusError("there are no rows", path=path, hint="Fetch or export it again.")
    return Corpus(
        name=name,
        dialogues=tuple(Dialogue(i, tuple(turns)) for i, turns in enumerate(dialogues)),
        path=path,
    )


_START: Final = "Every dialogue starts at turn_id 0; is this the head of a longer file?"


def _turn_id(value: Any, path: Path | None, row: int) -> int:
    number = value
    if isinstance(value, str) and (found := re.fullmatch(r"\s*(\d{1,18})(\.0+)?\s*", value)):
        number = int(found[1])
    elif isinstance(value, float) and value.is_integer():
        number = int(value)
    if isinstance(number, bool) or not isinstance(number, int) or number < 0:
        raise CorpusError(
            f"turn_id is {_brief(value)}, expected a whole number from 0", path=path, row=row
        )
    return number


def _turn(
    row: int, turn_id: int, text: Any, cell: Any, above: Turn | None, path: Path | None
) -> Turn:
    if not isinstance(text, str):
        raise CorpusError(f"text is {_brief(text)}, expected text", path=path, row=row)
    if len(text) > LONGEST_TEXT:
        raise CorpusError(
            f"the text has {len(text):,} characters, expected at most {LONGEST_TEXT:,}",
            path=path,
            row=row,
            hint="A turn this long is a damaged file: look for an unclosed quote.",
        )
    said = _SPEAKER.fullmatch(text)
    speaker: Speaker
    if said:
        speaker = "User" if said[1] == "User" else "Listener"
        words = said[2]
    elif above is None:
        raise CorpusError(
            f"a dialogue starts with {_brief(text)}, which names no speaker",
            path=path,
            row=row,
            hint="The first row of a dialogue starts with 'User:' or 'Listener:'.",
        )
    else:
        speaker, words = above.speaker, text
    return Turn(
        row=row,
        turn_id=turn_id,
        speaker=speaker,
        text=words.strip(),
        mask=_mask(cell, path, row),
        continues=said is None,
    )


def _mask(cell: Any, path: Path | None, row: int) -> int:
    if cell is None or (isinstance(cell, float) and cell != cell):
        return 0
    try:
        if isinstance(cell, str):
            return labels.parse(cell)
        if isinstance(cell, Sequence) and all(isinstance(item, str) for item in cell):
            return labels.parse(";".join(cell))
    except LabelError as error:
        raise CorpusError(str(error), path=path, row=row) from None
    raise CorpusError(f"labels is {_brief(cell)}, expected text", path=path, row=row)


def _brief(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _parquet(path: Path) -> list[_Row]:
    try:
        table = pq.read_table(path)
        columns = {name: table.column(name).to_pylist() for name in table.column_names}
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise CorpusError(
            f"not a complete parquet file ({str(error).splitlines()[0][:120]})",
            path=path,
            hint="Fetch it again.",
        ) from None
    _require(table.column_names, path)
    return list(zip(*(columns[name] for name in COLUMNS), strict=True))


def _csv(path: Path) -> list[_Row]:
    # pandas would read the texts `None`, `NA` and `null`, which people do type, as missing.
    try:
        table = pd.read_csv(
            path, dtype=str, keep_default_na=False, na_filter=False, index_col=False
        )
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from None
    except (pd.errors.ParserError, pd.errors.EmptyDataError) as error:
        raise CorpusError(f"not a readable CSV file ({error})", path=path) from None
    _require(list(table.columns), path)
    return list(zip(*(table[name].tolist() for name in COLUMNS), strict=True))


def _json(path: Path) -> list[_Row]:
    text = _text(path)
    try:
        content = json.loads(text)
    except json.JSONDecodeError as error:
        raise CorpusError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            path=path,
            hint="One object a line needs the ending .jsonl.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"not JSON that can be a corpus ({str(error)[:80]})", path=path) from None
    if isinstance(content, dict):
        _require(list(content), path)
        if not all(isinstance(content[name], list) for name in COLUMNS):
            raise CorpusError("the columns are not lists", path=path)
        if len({len(content[name]) for name in COLUMNS}) != 1:
            raise CorpusError("the columns differ in length", path=path)
        return list(zip(*(content[name] for name in COLUMNS), strict=True))
    if not isinstance(content, list):
        raise CorpusError("expected a list of objects, one a turn", path=path)
    return [_record(item, path, row) for row, item in enumerate(content)]


def _jsonl(path: Path) -> list[_Row]:
    rows: list[_Row] = []
    # Not splitlines(): U+2028 and its like may stand inside a JSON text.
    for line in _text(path).split("\n"):
        if not line.strip():
            continue
        try:
            item = json.loads(line)
        except json.JSONDecodeError as error:
            raise CorpusError(
                f"not JSON: {error.msg} in a line of {len(line):,} characters",
                path=path,
                row=len(rows),
            ) from None
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                f"not JSON that can be a turn ({str(error)[:80]})", path=path, row=len(rows)
            ) from None
        rows.append(_record(item, path, len(rows)))
    return rows


def _record(item: Any, path: Path, row: int) -> _Row:
    if not isinstance(item, dict):
        raise CorpusError(f"found {_brief(item)}, expected an object", path=path, row=row)
    _require(list(item), path, row)
    return item["turn_id"], item["text"], item["labels"]


def _require(found: Sequence[str], path: Path, row: int | None = None) -> None:
    missing = [name for name in COLUMNS if name not in found]
    if missing:
        raise CorpusError(
            f"column {', '.join(missing)} is missing; found {', '.join(map(str, found)) or 'none'}",
            path=path,
            row=row,
            hint=f"The release's columns are {', '.join(COLUMNS)}.",
        )


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(path, error) from None


def _not_utf8(path: Path, error: UnicodeDecodeError) -> CorpusError:
    return CorpusError(
        f"byte {error.start} is not UTF-8",
        path=path,
        hint="Save the file as UTF-8.",
    )


_READERS: Final = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".json": _json,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
}
