"""Reads the columns of a corpus file: parquet, CSV, JSON or JSON lines.

What is returned is whole. A file that was cut off, a row with a field too many or too few, a
quote that is not closed or a name that stands twice would shift or lose a label without a
trace: each is refused, with its row.
"""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cradle_lib.errors import CorpusError

#: The release's columns: each file has them.
COLUMNS: Final = ("turn_id", "text", "labels")
#: What a corpus may know about its dialogues beyond that; the release does not.
META: Final = ("scenario", "timing")
#: Columns that are the same on all rows of a dialogue: its name, and the above.
ABOUT: Final = ("dialogue_id", *META)
Columns = Mapping[str, Sequence[Any]]


def read_columns(path: Path) -> Columns:
    """Reads those columns of a file that have a meaning here, and leaves out all others.

    Args:
        path: The file; its ending says which format it has.

    Returns:
        The cells of :data:`COLUMNS`, and of those of :data:`ABOUT` that the file has, by
        column. All columns are equally long.

    Raises:
        CorpusError: If the file is missing, empty, damaged, cut off, not UTF-8, or lacks a
            column, or if a row has other fields than the rest.
    """
    reader = _READERS.get(path.suffix.lower())
    if reader is None:
        raise CorpusError(
            f"unknown ending {path.suffix!r}, expected one of {', '.join(_READERS)}", path=path
        )
    if not path.is_file():
        raise CorpusError("no such file", path=path, hint="Check the path.")
    if path.stat().st_size == 0:
        raise CorpusError("the file is empty", path=path, hint="Fetch or export it again.")
    return reader(path)


def brief(value: Any) -> str:
    """Shows a cell in a message: at most 60 characters, with invisible ones made visible."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _parquet(path: Path) -> Columns:
    try:
        # Not `read_table`, which takes the names of the folders above for columns, too.
        with pq.ParquetFile(path) as file:
            table = file.read()
        places = _known(table.column_names, path)
        return {name: table.column(place).to_pylist() for name, place in places.items()}
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except (pa.ArrowInvalid, OSError) as error:
        raise CorpusError(
            f"not a complete parquet file ({str(error).splitlines()[0][:120]})",
            path=path,
            hint="Fetch it again.",
        ) from None


def _csv(path: Path) -> Columns:
    # Not pandas: it fills up short rows, cuts long ones, and takes the texts `None`, `NA` and
    # `null`, which people do type, for missing.
    try:
        content = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    reader = csv.reader(io.StringIO(content, newline=""), strict=True)
    rows: list[list[str]] = []
    lines: list[int] = []
    start = 1
    try:
        for row in reader:
            if row:
                rows.append(row)
                lines.append(start)
            start = reader.line_num + 1
    except csv.Error as error:
        raise CorpusError(
            f"not a readable CSV file: {error} in the row that starts on line {start}",
            path=path,
            row=max(len(rows) - 1, 0),
            hint="Look for a quote that is not closed or not doubled; or the file was cut off.",
        ) from None
    head, *rows = rows or [[]]
    known = _known(head, path)
    if not content.endswith(("\n", "\r")):
        raise CorpusError(
            f"the last line ({lines[-1]}) has no line break: the file may have been cut off there",
            path=path,
            hint="If it is whole, add a line break at its end; if not, export it again.",
        )
    for number, (row, line) in enumerate(zip(rows, lines[1:], strict=True)):
        if len(row) != len(head):
            raise CorpusError(
                f"line {line} has {len(row)} fields, expected {len(head)} ({', '.join(head)[:80]})",
                path=path,
                row=number,
                hint="Put quotes around a text with a comma in it, or export the file again.",
            )
    return {name: [row[place] for row in rows] for name, place in known.items()}


def _json(path: Path) -> Columns:
    text = _text(path)
    try:
        content = _loads(text)
    except json.JSONDecodeError as error:
        raise CorpusError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            path=path,
            hint="One object a line needs the ending .jsonl.",
        ) from None
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"not JSON that can be a corpus ({str(error)[:80]})", path=path) from None
    if isinstance(content, dict):
        columns = {name: content[name] for name in _known(list(content), path)}
        if not all(isinstance(cells, list) for cells in columns.values()):
            raise CorpusError("the columns are not lists", path=path)
        if len({len(cells) for cells in columns.values()}) != 1:
            raise CorpusError("the columns differ in length", path=path)
        return columns
    if not isinstance(content, list):
        raise CorpusError("expected a list of objects, one a turn", path=path)
    return _records(content, path)


def _jsonl(path: Path) -> Columns:
    items: list[Any] = []
    # Not splitlines(): U+2028 and its like may stand inside a JSON text.
    for line in _text(path).split("\n"):
        if not line.strip():
            continue
        try:
            items.append(_loads(line))
        except json.JSONDecodeError as error:
            raise CorpusError(
                f"not JSON: {error.msg} in a line of {len(line):,} characters",
                path=path,
                row=len(items),
            ) from None
        except (ValueError, RecursionError) as error:
            raise CorpusError(
                f"not JSON that can be a turn ({str(error)[:80]})", path=path, row=len(items)
            ) from None
    return _records(items, path)


def _loads(text: str) -> Any:
    return json.loads(text, object_pairs_hook=_object)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        twice = Counter(name for name, _ in pairs).most_common(1)[0][0]
        raise ValueError(f"{brief(twice)} stands twice in an object")
    return found


def _records(items: Sequence[Any], path: Path) -> Columns:
    columns: dict[str, list[Any]] = {name: [] for name in COLUMNS}
    for row, item in enumerate(items):
        if not isinstance(item, dict):
            raise CorpusError(f"found {brief(item)}, expected an object", path=path, row=row)
        known = _known(list(item), path, row)
        if row == 0:
            columns = {name: [] for name in known}
        for name in columns.keys() ^ known.keys():
            raise CorpusError(
                f"{name} stands in some rows only: {'not ' * (name in columns)}in this one, "
                f"{'not ' * (name in known)}in row 0",
                path=path,
                row=row,
                hint="Every row has the same columns.",
            )
        for name, cells in columns.items():
            cells.append(item[name])
    return columns


def _known(found: Sequence[str], path: Path, row: int | None = None) -> dict[str, int]:
    """Finds the columns that have a meaning, and their places."""
    shown = ", ".join(map(str, found)) or "none"
    if missing := [name for name in COLUMNS if name not in found]:
        raise CorpusError(
            f"column {', '.join(missing)} is missing; found {shown}",
            path=path,
            row=row,
            hint=f"The release's columns are {', '.join(COLUMNS)}.",
        )
    known = [name for name in (*COLUMNS, *ABOUT) if name in found]
    if twice := [name for name in known if found.count(name) > 1]:
        raise CorpusError(
            f"column {', '.join(twice)} stands twice; found {shown}",
            path=path,
            row=row,
            hint="Keep one of each.",
        )
    return {name: found.index(name) for name in known}


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None


def not_utf8(path: Path, error: UnicodeDecodeError) -> CorpusError:
    """Makes the error of a text that is in another encoding."""
    return CorpusError(
        f"byte {error.start} is not UTF-8",
        path=path,
        hint="Save the file as UTF-8.",
    )


_READERS: Final[Mapping[str, Callable[[Path], Columns]]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".json": _json,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
}
