"""Reads and writes tables: CSV, JSON, JSON lines and parquet.

A truncated file, a row with a field too many or too few, a quote that is not closed and a column
name that occurs twice are refused, with the place: each would shift or lose a label silently.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow as pa
import pyarrow.parquet as pq

from cradle_lib import strict_json
from cradle_lib.errors import CorpusError
from cradle_lib.files import replacing

if TYPE_CHECKING:
    import pandas as pd

#: Endings of the files that can be read; the last two are JSON lines.
ENDINGS: Final = (".parquet", ".csv", ".json", ".jsonl", ".ndjson")
Columns = Mapping[str, Sequence[Any]]
_FIX_FIELDS: Final = (
    "Was the file cut off? Or put quotes around a text or column name with a separator in it, and "
    "look for a quote that is not closed or not doubled."
)


def read_columns(path: Path, needed: Sequence[str], optional: Sequence[str] = ()) -> Columns:
    """Reads the needed columns of a file, and the optional ones that it has.

    The name's ending determines the format. All columns have the same length.

    Raises:
        CorpusError: If the file is missing, damaged, cut off, not UTF-8, or lacks or doubles a
            column, or if a row has other fields than the rest.
    """
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        problem = f"unknown ending {path.suffix!r}, expected one of {', '.join(ENDINGS)}"
        raise CorpusError(problem, path=path)
    if not path.is_file():
        raise CorpusError("no such file", path=path, hint="Check the path.")
    try:
        columns: Columns
        if ending == ".parquet":
            columns = read_parquet(path, {*needed, *optional})
        elif ending == ".csv":
            columns = read_csv(path.read_bytes().decode("utf-8-sig"))
        else:
            records = parse_json(path.read_bytes().decode("utf-8-sig"))
            for row, record in enumerate(records):
                if not isinstance(record, dict):
                    raise CorpusError(f"found {brief(record)}, expected an object", row=row)
                _require(needed, record, row)
            names = dict.fromkeys(name for record in records for name in record)
            columns = {name: [record.get(name) for record in records] for name in names}
        _require(needed, columns)
        return {name: columns[name] for name in (*needed, *optional) if name in columns}
    except CorpusError as error:
        raise error.located(path) from None
    except UnicodeDecodeError as error:
        problem = f"{byte_place(error.object, error.start)} is not UTF-8"
        raise CorpusError(problem, path=path, hint="Save the file as UTF-8.") from None
    except OSError as error:
        raise CorpusError(f"can't be read ({error.strerror})", path=path) from None


def read_csv(text: str, separator: str = ",") -> Columns:
    """Reads the columns of a CSV file, as texts; rows without any content are left out.

    The last line may lack its line break. A truncated file has an open quote or a row with too few
    fields. A column without a name gets one from its position.

    Raises:
        CorpusError: If a quote is not closed, a row has more or fewer fields than the header, or a
            name occurs twice.
    """
    lines = io.StringIO(text, newline="")
    allow_long_fields(text)
    try:
        # Refuses text after a closing quote: a missing quote would join two rows.
        records = [*csv.reader(lines, delimiter=separator, strict=True)]
    except csv.Error as error:
        read = text[: lines.tell()]
        quote = read.count("\n", 0, read.rfind('"') + 1) + 1
        hint = f"{_FIX_FIELDS} The last quote that was read is in line {quote}."
        raise CorpusError(f"not a readable table: {error}", hint=hint) from None
    header, *rows = [record for record in records if any(map(str.strip, record))] or [[]]
    names = [name.strip() or f"column {place}" for place, name in enumerate(header, 1)]
    _require_distinct(names)
    if rows and all(len(row) == len(names) + 1 and not row[-1].strip() for row in rows):
        rows = [row[:-1] for row in rows]  # Each row ends with a separator.
    for number, row in enumerate(rows):
        if len(row) != len(names):
            expected = f"{len(names)} ({', '.join(names):.80})"
            problem = f"the row has {len(row)} fields, expected {expected}"
            raise CorpusError(problem, row=number, hint=_FIX_FIELDS)
    cells = zip(*rows, strict=True) if rows else ([] for _ in names)
    return {name: list(column) for name, column in zip(names, cells, strict=True)}


def allow_long_fields(text: str) -> None:
    """Raises the limit of a field, by default 131,072 characters, for all CSV of the process."""
    csv.field_size_limit(max(csv.field_size_limit(), len(text)))


def parse_json(text: str) -> list[Any]:
    """Reads the items of a JSON list, or of JSON lines if the first line is a complete document.

    Any other single document is the only item.

    Raises:
        CorpusError: If it is not JSON, with the place.
    """
    # Not splitlines(): U+2028 and similar characters may be in a text.
    lines = [line for line in text.split("\n") if line.strip()]
    try:
        strict_json.loads(lines[0])
    except (ValueError, IndexError):
        lines = []
    if len(lines) > 1:
        return [_parse(line, row) for row, line in enumerate(lines)]
    document = _parse(text)
    return document if isinstance(document, list) else [document]


def _parse(text: str, row: int | None = None) -> Any:
    try:
        return strict_json.loads(text)
    except ValueError as error:
        # A row of JSON lines is always line 1 of its own document.
        reason = str(error).replace("line 1 ", "") if row is not None else str(error)
        problem = f"not JSON that can be read ({reason:.120})"
        raise CorpusError(problem, row=row, hint="The file may have been cut off.") from None


def read_parquet(path: Path, wanted: Collection[str] | None = None) -> Columns:
    """Reads the columns of a parquet file: those wanted that it has; all of them if ``None``.

    Raises:
        CorpusError: If the file is damaged, or a name occurs twice.
    """
    # Not `read_table`: some versions add a column for a parent folder `NAME=VALUE`.
    with _refusing_damage("parquet"), pq.ParquetFile(path) as file:
        names = file.schema_arrow.names
        _require_distinct(names)
        read = [name for name in names if wanted is None or name in wanted]
        columns: Columns = file.read(columns=read).to_pydict()
        return columns


def read_arrow(path: Path) -> Columns:
    """Reads the columns of an Arrow file, such as ``Dataset.save_to_disk`` writes.

    Raises:
        CorpusError: If the file is damaged, or a name occurs twice.
    """
    with _refusing_damage("Arrow"):
        content = path.read_bytes()
        is_file = content.startswith(b"ARROW1")
        reader = pa.ipc.open_file(content) if is_file else pa.ipc.open_stream(content)
        _require_distinct(reader.schema.names)
        columns: Columns = reader.read_all().to_pydict()
        return columns


@contextmanager
def _refusing_damage(kind: str) -> Iterator[None]:
    try:
        yield
    except (CorpusError, UnicodeDecodeError, FileNotFoundError):
        raise
    except Exception as error:  # A damaged file makes pyarrow raise almost anything.
        reason = " ".join(str(error).split()) or type(error).__name__
        problem = f"not a complete {kind} file ({reason[:120]})"
        raise CorpusError(problem, hint="Fetch or export it again.") from None


def _require(needed: Sequence[str], found: Iterable[str], row: int | None = None) -> None:
    if missing := [name for name in needed if name not in found]:
        raise CorpusError(
            f"column {', '.join(missing)} is missing; found {', '.join(found) or 'none':.200}",
            row=row,
            hint=f"The columns needed are {', '.join(needed)}.",
        )


def _require_distinct(names: Sequence[str]) -> None:
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise CorpusError(f"column {', '.join(twice)} appears twice", hint="Keep one of each.")


def byte_place(content: bytes, start: int) -> str:
    """Describes the position of a byte: its line and place in it, from 1, and its value."""
    line = content.rfind(b"\n", 0, start)
    number = content.count(b"\n", 0, start) + 1
    return f"line {number:,}, byte {start - line} ({content[start : start + 1].hex()})"


def brief(value: Any) -> str:
    """Quotes a cell in a message: at most 60 characters, with invisible ones escaped."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def save_table(frame: pd.DataFrame, path: Path, quoting: Literal[0, 2] = csv.QUOTE_MINIMAL) -> None:
    """Saves a table as parquet or CSV by the name's ending, atomically.

    Raises:
        CorpusError: If the ending is neither ``.parquet`` nor ``.csv``.
        CradleError: If the file can't be written.
    """
    check_ending(path)
    with replacing(path) as part:
        if path.suffix == ".parquet":
            frame.to_parquet(part, index=False, compression="zstd")
        else:
            frame.to_csv(part, index=False, lineterminator="\n", quoting=quoting)


def check_ending(path: Path) -> None:
    """Refuses a name with an unknown ending, before any work is done."""
    if path.suffix not in (".parquet", ".csv"):
        raise CorpusError(
            f"unknown ending {path.suffix!r}", path=path, hint="Use .parquet or .csv."
        )
