"""Reads columns of a text file: CSV, JSON or JSON lines."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from cradle_lib import strict_json
from cradle_lib.corpus.formats import LARGEST, Columns, Names, brief, not_utf8, places
from cradle_lib.errors import CorpusError
from cradle_lib.files import read_bounded


def read_csv(path: Path, needed: Names, optional: Names = ()) -> Columns:
    """Reads columns of a CSV file with any name; otherwise as :func:`.read_columns`.

    The last line may lack its line break. A truncated file has an open quote or a row with too few
    fields.
    """
    head, rows, lines = csv_rows(read_text(path))
    known = places(head, needed, optional)
    require_fields(head, rows, lines)
    return {name: [row[place] for row in rows] for name, place in known.items()}


def csv_rows(content: str, separator: str = ",") -> tuple[list[str], list[list[str]], list[int]]:
    """Splits the content of a CSV file into header, rows, and the lines on which the rows start.

    Blank lines are left out.

    Raises:
        CorpusError: If a quote is not closed.
    """
    # Not pandas: it pads short rows, cuts long ones, and reads the texts `None`, `NA` and `null`,
    # which people do type, as missing.
    reader = csv.reader(io.StringIO(content, newline=""), strict=True, delimiter=separator)
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
            row=max(len(rows) - 1, 0),
            hint="Look for a quote that is not closed or not doubled; or the file was cut off.",
        ) from None
    head, *rows = rows or [[]]
    return head, rows, lines[1:]


def require_fields(
    head: Sequence[str], rows: Sequence[Sequence[str]], lines: Sequence[int]
) -> None:
    """Refuses a row that has more or fewer fields than the header."""
    for number, (row, line) in enumerate(zip(rows, lines, strict=True)):
        if len(row) != len(head):
            raise CorpusError(
                f"line {line} has {len(row)} fields, expected {len(head)} ({', '.join(head)[:80]})",
                row=number,
                hint="Put quotes around a text with the separator in it. If this is the last line, "
                "the file may have been cut off there: export it again.",
            )


def read_json(path: Path, needed: Names, optional: Names) -> Columns:
    """Reads a list of JSON objects: see :func:`.read_columns`."""
    content = parse_json(read_text(path))
    if not isinstance(content, list):
        raise CorpusError("expected a list of objects, one a turn")
    return _records(content, needed, optional)


def read_json_lines(path: Path, needed: Names, optional: Names) -> Columns:
    """Reads one JSON object a line: see :func:`.read_columns`."""
    # Not splitlines(): U+2028 and its like may stand inside a JSON text.
    lines = [line for line in read_text(path).split("\n") if line.strip()]
    items = [parse_json(line, row) for row, line in enumerate(lines)]
    return _records(items, needed, optional)


def parse_json(text: str, row: int | None = None) -> Any:
    """Reads strict JSON; ``row`` is the row of JSON lines that the text is.

    Raises:
        CorpusError: If it is not JSON, with the place.
    """
    try:
        return strict_json.loads(text)
    except ValueError as error:
        # A row of JSON lines is always line 1 of its own document.
        reason = str(error).replace("line 1 ", "") if row is not None else str(error)
        more = row is None and reason.startswith("Extra data")
        hint = "One object a line needs the ending .jsonl." if more else None
        problem = f"not JSON that can be read ({reason:.120})"
        raise CorpusError(problem, row=row, hint=hint) from None


def _records(items: Sequence[Any], needed: Names, optional: Names) -> Columns:
    columns: dict[str, list[Any]] = {name: [] for name in needed}
    for row, item in enumerate(items):
        if not isinstance(item, dict):
            raise CorpusError(f"found {brief(item)}, expected an object", row=row)
        known = places(list(item), needed, optional, row)
        if row == 0:
            columns = {name: [] for name in known}
        for name in columns.keys() ^ known.keys():
            raise CorpusError(
                f"{name} stands in some rows only: {'not ' * (name in columns)}in this one, "
                f"{'not ' * (name in known)}in row 0",
                row=row,
                hint="Every row has the same columns.",
            )
        for name, cells in columns.items():
            cells.append(item[name])
    return columns


def read_text(path: Path) -> str:
    """Reads a file in UTF-8, with or without a byte order mark, of at most :data:`LARGEST` bytes.

    Raises:
        CorpusError: If it can't be read, or is in another encoding.
    """
    try:
        return read_bytes(path).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(error, path) from None


def read_bytes(path: Path) -> bytes:
    """Reads a file of at most :data:`LARGEST` bytes.

    Raises:
        CorpusError: If it can't be read.
    """
    try:
        return read_bounded(path, LARGEST)
    except OSError as error:
        hint = "It must be a readable text file."
        raise CorpusError(f"can't be read ({error.strerror})", path=path, hint=hint) from None
