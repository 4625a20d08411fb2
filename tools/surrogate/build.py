"""Builds the parquet files of the surrogate corpus from the written dialogues.

The same text files give the same bytes. A file with a fault ends the build before anything is
written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.parquet as pq

from cradle_extras.construction.validators.draft import Draft, Line
from cradle_lib import paths
from cradle_lib.corpus.load import SUMS
from cradle_lib.files import replacing
from cradle_lib.labels import mask_of
from tools.surrogate.dialogue_files import Written, file_paths, load_dialogues
from tools.surrogate.plans import SPLITS, read_plans

NOTICE: Final = "surrogate, written by this project, CC BY 4.0"
_SPEAKERS: Final = {"U": "User", "L": "Listener"}


def build_surrogate(out: Path = paths.SURROGATE) -> None:
    """Writes ``train``, ``dev``, ``test`` and ``meta`` as parquet files, and their checksums.

    Args:
        out: Folder for the four files; created if it is missing.

    Raises:
        CorpusError: If a text file is missing or has a fault; then no file is written.
    """
    written: dict[str, list[Written]] = {split: [] for split in SPLITS}
    for path in file_paths():
        written[path.parent.name] += load_dialogues(path)
    for split, dialogues in written.items():
        rows = [row for dialogue in dialogues for row in draft_of(dialogue).rows()]
        turns, texts, labels = zip(*rows, strict=True)
        columns = {"turn_id": turns, "text": texts, "labels": labels}
        _save_table(columns, out / f"{split}.parquet")
    plans = read_plans()
    made = [dialogue for split in SPLITS for dialogue in written[split]]
    meta: dict[str, list[Any]] = {
        "split": [plans[dialogue.id].split for dialogue in made],
        "dialogue": [plans[dialogue.id].dialogue for dialogue in made],
        "scenario": [plans[dialogue.id].scenario for dialogue in made],
        "timing": [plans[dialogue.id].timing for dialogue in made],
        "seed": [dialogue.headers["seed"] for dialogue in made],
    }
    _save_table(meta, out / "meta.parquet")
    sums = (
        f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}\n"
        for path in sorted(out.glob("*.parquet"))
    )
    with replacing(out / SUMS) as part:
        part.write_text("".join(sums), encoding="ascii")


def draft_of(dialogue: Written) -> Draft:
    """Converts a dialogue of a text file to the rows of the corpus."""
    lines: list[Line] = []
    for row in dialogue.rows:
        continues = row.speaker == "-"
        speaker = lines[-1].speaker if continues else _SPEAKERS[row.speaker]
        text = f"- {row.text}" if continues else row.text
        lines.append(Line(speaker, text, mask_of(row.labels), continues))
    return Draft(tuple(lines))


def _save_table(columns: Mapping[str, Sequence[Any]], path: Path) -> None:
    """Writes columns to a parquet file; the same columns give the same bytes."""
    fields = [
        (name, pa.int64() if isinstance(cells[0], int) else pa.string())
        for name, cells in columns.items()
    ]
    schema = pa.schema(fields).with_metadata({"notice": NOTICE})
    with replacing(path) as part:
        pq.write_table(
            pa.Table.from_pydict(columns, schema=schema),
            part,
            version="2.6",
            compression="zstd",
            compression_level=19,
            use_dictionary=["labels"] if "labels" in columns else False,
            row_group_size=1 << 20,
            data_page_version="1.0",
        )
