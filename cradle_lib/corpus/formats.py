"""Reads columns of a file from outside: parquet, CSV, JSON or JSON lines.

What is returned is whole. A file that was cut off, a row with a field too many or too few, a
quote that is not closed or a name that stands twice would shift or lose a label without a
trace: each is refused, with its row. A file of a few kilobytes can unpack to more than the
machine holds: only columns that have a meaning are read, and none of them without a bound.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Mapping, Sequence
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
_Names = Sequence[str]


def read_columns(
    path: Path, needed: Sequence[str] = COLUMNS, optional: Sequence[str] = ABOUT
) -> Columns:
    """Reads those columns of a file that have a meaning, and leaves out all others.

    Its ending says which format it has. The cells of ``needed``, and of those of ``optional`` that
    the file has, are given by column; all columns are equally long.

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
    try:
        return reader(path, needed, optional)
    except CorpusError as error:
        raise CorpusError(error.problem, path=path, row=error.row, hint=error.hint) from None


def brief(value: Any) -> str:
    """Shows a cell in a message: at most 60 characters, with invisible ones made visible."""
    try:
        text = repr(value)
    except (RecursionError, ValueError):
        # Lists within lists without end, or a whole number of thousands of digits.
        text = f"a {type(value).__name__} that can't be shown"
    return text if len(text) <= 60 else f"{text[:57]}..."


def _places(
    found: _Names, needed: _Names, optional: _Names, row: int | None = None
) -> dict[str, int]:
    """Gives the columns that have a meaning and are there, and their places."""
    shown = f"{', '.join(map(str, found)) or 'none':.200}"
    if missing := [name for name in needed if name not in found]:
        raise CorpusError(
            f"column {', '.join(missing)} is missing; found {shown}",
            row=row,
            hint=f"The columns needed are {', '.join(needed)}.",
        )
    known = [name for name in (*needed, *optional) if name in found]
    if twice := [name for name in known if found.count(name) > 1]:
        raise CorpusError(
            f"column {', '.join(twice)} stands twice; found {shown}",
            row=row,
            hint="Keep one of each.",
        )
    return {name: found.index(name) for name in known}


def _parquet(path: Path, needed: _Names, optional: _Names) -> Columns:
    try:
        # Not `read_table`, which takes the names of the folders above for columns, too.
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
        known = _places(schema.names, needed, optional)
        texts = [name for name, place in known.items() if not schema.types[place].num_fields]
        # Texts as they are stored: each once. Written out, one text can fill the memory.
        with pq.ParquetFile(path, read_dictionary=texts) as file:
            # Not what is said of each column: a damaged one ends the process within pyarrow.
            _require_cells(file.metadata.num_rows)
            columns: dict[str, list[Any]] = {name: [] for name in known}
            size = 0
            for batch in file.iter_batches(_BATCH, columns=list(known)):
                size += sum(map(_size, batch.columns))
                if size > LARGEST:
                    raise _too_large(f"{LARGEST >> 20:,} MB of cells")
                for cells in batch.columns:
                    if pa.types.is_list(cells.type) or pa.types.is_large_list(cells.type):
                        _require_cells(len(cells.flatten()))
                for name, known_cells in columns.items():
                    known_cells += batch.column(name).to_pylist()
        return columns
    except CorpusError:
        raise
    except UnicodeDecodeError as error:
        raise _not_utf8(error) from None
    except Exception as error:  # A damaged file makes pyarrow raise almost anything.
        reason = " ".join(str(error).split()) or type(error).__name__
        problem = f"not a complete parquet file ({reason[:120]})"
        raise CorpusError(problem, hint="Fetch it again.") from None


def _require_cells(count: int) -> None:
    if count > MOST_CELLS:
        raise _too_large(f"{MOST_CELLS:,} cells in a column")


def _size(cells: pa.Array) -> int:
    """Counts the bytes that cells take once each is written out."""
    if not pa.types.is_dictionary(cells.type):
        return int(cells.nbytes)
    lengths = pc.binary_length(cells.dictionary).take(cells.indices)
    return int(pc.sum(lengths).as_py() or 0)


def _too_large(most: str) -> CorpusError:
    return CorpusError(f"the file holds more than {most}", hint="Split it, or export it again.")


def read_csv(path: Path, needed: _Names, optional: _Names = ()) -> Columns:
    """Reads columns of a CSV file, whatever its ending; otherwise as :func:`read_columns`.

    The last line may lack its line break. A file that was cut off shows by a quote that is not
    closed or by a row with too few fields.
    """
    # Not pandas: it fills up short rows, cuts long ones, and takes the texts `None`, `NA` and
    # `null`, which people do type, for missing.
    content = read_text(path)
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
            row=max(len(rows) - 1, 0),
            hint="Look for a quote that is not closed or not doubled; or the file was cut off.",
        ) from None
    head, *rows = rows or [[]]
    known = _places(head, needed, optional)
    for number, (row, line) in enumerate(zip(rows, lines[1:], strict=True)):
        if len(row) != len(head):
            raise CorpusError(
                f"line {line} has {len(row)} fields, expected {len(head)} ({', '.join(head)[:80]})",
                row=number,
                hint="Put quotes around a text with a comma in it. If this is the last line, the "
                "file may have been cut off there: export it again.",
            )
    return {name: [row[place] for row in rows] for name, place in known.items()}


def _json(path: Path, needed: _Names, optional: _Names) -> Columns:
    content = _parsed(read_text(path))
    if isinstance(content, dict):
        columns = {name: content[name] for name in _places(list(content), needed, optional)}
        if not all(isinstance(cells, list) for cells in columns.values()):
            raise CorpusError("the columns are not lists")
        if len({len(cells) for cells in columns.values()}) != 1:
            raise CorpusError("the columns differ in length")
        return columns
    if not isinstance(content, list):
        raise CorpusError("expected a list of objects, one a turn")
    return _records(content, needed, optional)


def _jsonl(path: Path, needed: _Names, optional: _Names) -> Columns:
    # Not splitlines(): U+2028 and its like may stand inside a JSON text.
    lines = [line for line in read_text(path).split("\n") if line.strip()]
    items = [_parsed(line, row) for row, line in enumerate(lines)]
    return _records(items, needed, optional)


def _parsed(text: str, row: int | None = None) -> Any:
    try:
        return strict_json.loads(text)
    except ValueError as error:
        # A row is a line of its own, the first one for whoever reads it alone.
        told = str(error).replace("line 1 ", "") if row is not None else str(error)
        more = row is None and told.startswith("Extra data")
        hint = "One object a line needs the ending .jsonl." if more else None
        raise CorpusError(f"not JSON that can be read ({told:.120})", row=row, hint=hint) from None


def _records(items: Sequence[Any], needed: _Names, optional: _Names) -> Columns:
    columns: dict[str, list[Any]] = {name: [] for name in needed}
    for row, item in enumerate(items):
        if not isinstance(item, dict):
            raise CorpusError(f"found {brief(item)}, expected an object", row=row)
        known = _places(list(item), needed, optional, row)
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
    """Reads a file in UTF-8, with or without a mark of that, and within :data:`LARGEST`.

    Raises:
        CorpusError: If it can't be read, or is in another encoding.
    """
    try:
        return read_bounded(path, LARGEST).decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _not_utf8(error, path) from None
    except OSError as error:
        hint = "It must be a readable text file."
        raise CorpusError(f"can't be read ({error.strerror})", path=path, hint=hint) from None


def _not_utf8(error: UnicodeDecodeError, path: Path | None = None) -> CorpusError:
    problem = f"byte {error.start} is not UTF-8"
    return CorpusError(problem, path=path, hint="Save the file as UTF-8.")


_READERS: Final[Mapping[str, Callable[[Path, _Names, _Names], Columns]]] = {
    ".parquet": _parquet,
    ".csv": read_csv,
    ".json": _json,
    ".jsonl": _jsonl,
    ".ndjson": _jsonl,
}
