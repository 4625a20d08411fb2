"""Reads columns of a corpus file: parquet here, text formats in ``text_formats``.

A file that was cut off, a row with a field too many or too few, a quote that is not closed and a
column name that occurs twice are refused, with the row: each would shift or lose a label without a
trace. A parquet file of a few kilobytes can unpack to gigabytes: only the columns that have a
meaning are read, up to a limit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from cradle_lib.errors import CorpusError

#: The release's columns: each file has them.
COLUMNS: Final = ("turn_id", "text", "labels")
#: Optional columns about a dialogue; the release has none.
META: Final = ("scenario", "timing")
#: Columns that are the same on all rows of a dialogue: its name, and the above.
ABOUT: Final = ("dialogue_id", *META)
#: Endings of the files that can be read; the last two are JSON lines.
ENDINGS: Final = (".parquet", ".csv", ".json", ".jsonl", ".ndjson")
#: Most bytes of a file of text, and most characters of a parquet file: hundreds of real corpora.
LARGEST: Final = 1 << 28
# Rows that are unpacked at a time, before their size is known.
_BATCH: Final = 64
Columns = Mapping[str, Sequence[Any]]
Names = Sequence[str]


def read_columns(
    path: Path, needed: Sequence[str] = COLUMNS, optional: Sequence[str] = ABOUT
) -> Columns:
    """Reads the needed columns of a file, and the optional ones that it has.

    The name's ending determines the format. All columns have the same length.

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
            return read_parquet(path, needed, optional)
        # Here, because most corpora are parquet files.
        from cradle_lib.corpus import text_formats

        readers = {".csv": text_formats.read_csv, ".json": text_formats.read_json}
        return readers.get(ending, text_formats.read_json_lines)(path, needed, optional)
    except CorpusError as error:
        raise CorpusError(error.problem, path=path, row=error.row, hint=error.hint) from None


def brief(value: Any) -> str:
    """Quotes a cell in a message: at most 60 characters, with invisible ones escaped."""
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def places(found: Names, needed: Names, optional: Names, row: int | None = None) -> dict[str, int]:
    """Finds the positions of the known columns."""
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
            f"column {', '.join(twice)} appears twice; found {shown}",
            row=row,
            hint="Keep one of each.",
        )
    return {name: found.index(name) for name in known}


def read_parquet(path: Path, needed: Names, optional: Names | None) -> Columns:
    """Reads columns of a parquet file: see :func:`.read_columns`; ``optional=None`` reads all."""
    try:
        # Not `read_table`, which takes the names of the folders above for columns, too.
        with pq.ParquetFile(path) as file:
            names = file.schema_arrow.names
            known = places(names, needed, names if optional is None else optional)
            columns: dict[str, list[Any]] = {name: [] for name in known}
            size = 0
            for batch in file.iter_batches(_BATCH, columns=list(known)):
                for name, column in columns.items():
                    cells = batch.column(name).to_pylist()
                    size += sum(len(cell) for cell in cells if isinstance(cell, str))
                    column += cells
                if size > LARGEST:
                    raise CorpusError(
                        f"the file holds more than {LARGEST >> 20:,} MB of cells",
                        hint="Split it, or export it again.",
                    )
        return columns
    except CorpusError:
        raise
    except UnicodeDecodeError as error:
        raise not_utf8(error) from None
    except Exception as error:  # A damaged file makes pyarrow raise almost anything.
        reason = " ".join(str(error).split()) or type(error).__name__
        problem = f"not a complete parquet file ({reason[:120]})"
        raise CorpusError(problem, hint="Fetch it again.") from None


def not_utf8(error: UnicodeDecodeError, path: Path | None = None) -> CorpusError:
    """The error for a file in another encoding."""
    problem = f"byte {error.start} is not UTF-8"
    return CorpusError(problem, path=path, hint="Save the file as UTF-8.")
