"""Reads columns of a file from outside: parquet here, text formats in ``text_formats``.

What is returned is whole. A file that was cut off, a row with a field too many or too few, a
quote that is not closed or a name that stands twice would shift or lose a label without a
trace: each is refused, with its row. A file of a few kilobytes can unpack to more than the
machine holds: only columns that have a meaning are read, and none of them without a bound.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from cradle_lib.errors import CorpusError

#: The release's columns: each file has them.
COLUMNS: Final = ("turn_id", "text", "labels")
#: What a corpus may know about its dialogues beyond that; the release does not.
META: Final = ("scenario", "timing")
#: Columns that are the same on all rows of a dialogue: its name, and the above.
ABOUT: Final = ("dialogue_id", *META)
#: Endings of the files that can be read; the last two are JSON lines.
ENDINGS: Final = (".parquet", ".csv", ".json", ".jsonl", ".ndjson")
#: Most bytes of a file of text, and of the cells of a parquet file: hundreds of real corpora.
LARGEST: Final = 1 << 28
#: Most cells of a column of a parquet file, the parts of lists counted.
MOST_CELLS: Final = 10_000_000
_BATCH: Final = 1024
Columns = Mapping[str, Sequence[Any]]
Names = Sequence[str]


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
    ending = path.suffix.lower()
    if ending not in ENDINGS:
        raise CorpusError(
            f"unknown ending {path.suffix!r}, expected one of {', '.join(ENDINGS)}", path=path
        )
    if not path.is_file():
        raise CorpusError("no such file", path=path, hint="Check the path.")
    if path.stat().st_size == 0:
        raise CorpusError("the file is empty", path=path, hint="Fetch or export it again.")
    try:
        if ending == ".parquet":
            return _parquet(path, needed, optional)
        # Here, because most corpora are parquet files.
        from cradle_lib.corpus import text_formats

        readers = {".csv": text_formats.read_csv, ".json": text_formats.read_json}
        return readers.get(ending, text_formats.read_json_lines)(path, needed, optional)
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


def places(found: Names, needed: Names, optional: Names, row: int | None = None) -> dict[str, int]:
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


def _parquet(path: Path, needed: Names, optional: Names) -> Columns:
    try:
        # Not `read_table`, which takes the names of the folders above for columns, too.
        with pq.ParquetFile(path) as file:
            schema = file.schema_arrow
        known = places(schema.names, needed, optional)
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
        raise not_utf8(error) from None
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


def not_utf8(error: UnicodeDecodeError, path: Path | None = None) -> CorpusError:
    """The error for a file in another encoding."""
    problem = f"byte {error.start} is not UTF-8"
    return CorpusError(problem, path=path, hint="Save the file as UTF-8.")
