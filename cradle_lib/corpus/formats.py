"""Reads columns of a file from outside: parquet, CSV, JSON or JSON lines.

What is returned is whole. A file that was cut off, a row with a field too many or too few, a
quote that is not closed or a name that stands twice would shift or lose a label without a
trace: each is refused, with its row. A file of a few kilobytes can unpack to more than the
machine holds: only columns that have a meaning are read, and none of them without a bound.
"""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cradle_lib import strict_json
from cradle_lib.errors import CorpusError
from cradle_lib.files import read_bounded

#: The release's columns: each file has them.
COLUMNS: Final = ("turn_id", "text", "labels")
#: What a corpus may know about its dialogues beyond that; the release does not.
META: Final = ("scenario", "timing")
#: Columns that are the same on all rows of a dialogue: its name, and the above.
ABOUT: Final = ("dialogue_id", *META)
#: Most bytes of a file of text, and of the cells of a parquet file: hundreds of real corpora.
LARGEST: Final = 1 << 28
#: Most cells of a column of a parquet file, the parts of lists counted.
MOST_CELLS: Final = 10_000_000
_BATCH: Final = 1024
Columns = Mapping[str, Sequence[Any]]


def read_columns(
    path: Path, needed: Sequence[str] = COLUMNS, optional: Sequence[str] = ABOUT
) -> Columns:
    """Reads those columns of a file that have a meaning, and leaves out all others.

    Args:
        path: The file; its ending says which format it has.
        needed: The columns that the file must have.
        optional: Those that it may have.

    Returns:
        The cells of ``needed``, and of those of ``optional`` that the file has, by column. All
        columns are equally long.

    Raises:
        CorpusError: If the file is missing, empty, damaged, cut off, too large, not UTF-8, or
            lacks or doubles a column, or if a row has other fields than the rest.
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
    return reader(path, _Wanted(tuple(needed), tuple(optional)))


def brief(value: Any) -> str:
    """Shows a cell in a message: at most 60 characters, with invisible ones made visible."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        # Lists within lists without end, or a whole number of thousands of digits.
        text = f"a {type(value).__name__} that can't be shown"
    return text if len(text) <= 60 else f"{text[:57]}..."


@dataclass(frozen=True, slots=True)
class _Wanted:
    """The columns that have a meaning: those that must be there, and those that may."""

    needed: tuple[str, ...]
    optional: tuple[str, ...]

    def find(self, found: Sequence[str], path: Path, row: int | None = None) -> dict[str, int]:
        """Gives the columns that are there, and their places."""
        shown = f"{', '.join(map(str, found)) or 'none':.200}"
        if missing := [name for name in self.needed if name not in found]:
            raise CorpusError(
                f"column {', '.join(missing)} is missing; found {shown}",
                path=path,
                row=row,
                hint=f"The columns needed are {', '.join(self.needed)}.",
            )
        known = [name for name in (*self.needed, *self.optional) if name in found]
        if twice := [name for name in known if found.count(name) > 1]:
            raise CorpusError(
                f"column {', '.join(twice)} stands twice; found {shown}",
                path=path,
                row=row,
                hint="Keep one of each.",
            )
        return {name: found.index(name) for name in known}


def _parquet(path: Path, wanted: _Wanted) -> Columns:
    try:
        # Not `read_table`, which takes the names of the folders above for columns, too.
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
        known = wanted.find(schema.names, path)
        texts = [name for name, place in known.items() if not schema.types[place].num_fields]
        # Texts as they are stored: each once. Written out, one text can fill the memory.
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            # Not what is said of each column: a damaged one ends the process within pyarrow.
            _require_cells(file.metadata.num_rows, path)
            columns: dict[str, list[Any]] = {name: [] for name in known}
            size = 0
            for batch in file.iter_batches(_BATCH, columns=list(known)):
                size += sum(map(_size, batch.columns))
                if size > LARGEST:
                    raise _too_large(path, f"more than {LARGEST >> 20:,} MB of cells")
                for cells in batch.columns:
                    if pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type):
                        _require_cells(len(cells.flatten()), path)
                for name, known_cells in columns.items():
                    known_cells += batch.column(name).to_pylist()
        return columns
    except CorpusError:
        raise
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except Exception as error:  # A damaged file makes pyarrow raise almost anything.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise CorpusError(
            f"not a complete parquet file ({reason[:120]})", path=path, hint="Fetch it again."
        ) from None


def _require_cells(count: int, path: Path) -> None:
    if count > MOST_CELLS:
        raise _too_large(path, f"more than {MOST_CELLS:,} cells in a column")


def _size(cells: pa.Array) -> int:
    """Counts the bytes that cells take once each is written out."""
    if not pa.types.is_dictionary(cells.type):
        return int(cells.nbytes)
    lengths = pc.binary_length(cells.dictionary).take(cells.indices)
    return int(pc.sum(lengths).as_py() or 0)


def _too_large(path: Path, problem: str) -> CorpusError:
    return CorpusError(f"the file holds {problem}", path=path, hint="Split it, or export it again.")


def _csv(path: Path, wanted: _Wanted) -> Columns:
    # Not pandas: it fills up short rows, cuts long ones, and takes the texts `None`, `NA` and
    # `null`, which people do type, for missing.
    content = _text(path)
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
    known = wanted.find(head, path)
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


def _json(path: Path, wanted: _Wanted) -> Columns:
    text = _text(path)
    try:
        content = strict_json.loads(text)
    except json.JSONDecodeError as error:
        raise CorpusError(
            f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}",
            path=path,
            hint="One object a line needs the ending .jsonl.",
        ) from None
    except ValueError as error:
        raise CorpusError(f"not JSON that can be a corpus ({str(error)[:80]})", path=path) from None
    if isinstance(content, dict):
        columns = {name: content[name] for name in wanted.find(list(content), path)}
        if not all(isinstance(cells, list) for cells in columns.values()):
            raise CorpusError("the columns are not lists", path=path)
        if len({len(cells) for cells in columns.values()}) != 1:
            raise CorpusError("the columns differ in length", path=path)
        return columns
    if not isinstance(content, list):
        raise CorpusError("expected a list of objects, one a turn", path=path)
    return _records(content, path, wanted)


def _jsonl(path: Path, wanted: _Wanted) -> Columns:
    items: list[Any] = []
    # Not splitlines(): U+2028 and its like may stand inside a JSON text.
    for line in _text(path).split("\n"):
        if not line.strip():
            continue
        try:
            items.append(strict_json.loads(line))
        except json.JSONDecodeError as error:
            raise CorpusError(
                f"not JSON: {error.msg} in a line of {len(line):,} characters",
                path=path,
                row=len(items),
            ) from None
        except ValueError as error:
            raise CorpusError(
                f"not JSON that can be a turn ({str(error)[:80]})", path=path, row=len(items)
            ) from None
    return _records(items, path, wanted)


def _records(items: Sequence[Any], path: Path, wanted: _Wanted) -> Columns:
    columns: dict[str, list[Any]] = {name: [] for name in wanted.needed}
    for row, item in enumerate(items):
        if not isinstance(item, dict):
            raise CorpusError(f"found {brief(item)}, expected an object", path=path, row=row)
        known = wanted.find(list(item), path, row)
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


def _text(path: Path) -> str:
    try:
        return read_bounded(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except OSError as error:
        raise CorpusError(f"can't be read ({error.strerror})", path=path) from None


def not_utf8(path: Path, error: UnicodeDecodeError) -> CorpusError:
    """Makes the error of a text that is in another encoding."""
    return CorpusError(
        f"byte {error.start} is not UTF-8",
        path=path,
        hint="Save the file as UTF-8.",
    )


_READERS: Final[Mapping[str, Callable[[Path, _Wanted], Columns]]] = {
    ".parquet": _parquet,
    ".csv": _csv,
    ".json": _json,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
}
