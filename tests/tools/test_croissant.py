"""The surrogate can be loaded by Hugging Face datasets and Croissant."""

from __future__ import annotations

import json
import subprocess
import sys
from itertools import islice
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from cradle_lib import paths
from tools import croissant

SPLITS = {"train": "train", "dev": "dev", "test": "test"}


def test_the_description_has_the_checksums_and_columns_of_the_files() -> None:
    description = json.loads(croissant.FILE.read_text(encoding="utf-8"))
    assert description == croissant.describe()
    for records in description["recordSet"]:
        schema = pq.read_schema(paths.SURROGATE / f"{records['name']}.parquet")
        assert [field["name"] for field in records["field"]] == schema.names


@pytest.mark.filterwarnings("ignore")
def test_croissants_own_tool_validates_the_metadata_and_reads_the_rows() -> None:
    mlcroissant = pytest.importorskip("mlcroissant")
    found = mlcroissant.Dataset(jsonld=croissant.FILE)
    assert not found.metadata.ctx.issues.errors
    assert not found.metadata.ctx.issues.warnings
    rows = pq.read_table(paths.SURROGATE / "test.parquet").slice(0, 3).to_pylist()
    read = list(islice(found.records("test"), 3))
    assert [
        (row["test/turn_id"], row["test/text"].decode(), row["test/labels"].decode())
        for row in read
    ] == [(row["turn_id"], row["text"], row["labels"]) for row in rows]


def test_hugging_face_datasets_loads_the_folder_without_a_network(tmp_path: Path) -> None:
    code = (
        "import socket, json\n"
        "def refuse(*a, **k): raise OSError('no network')\n"
        "socket.socket.connect = refuse\n"
        "from datasets import load_dataset\n"
        f"splits = load_dataset({str(paths.SURROGATE)!r})\n"
        f"meta = load_dataset({str(paths.SURROGATE)!r}, 'meta')\n"
        "print(json.dumps([{k: v.num_rows for k, v in splits.items()}, meta['meta'].num_rows,"
        " splits['test'].column_names]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "HF_HUB_OFFLINE": "1"},
    )
    assert done.returncode == 0, done.stderr
    splits, meta, columns = json.loads(done.stdout.splitlines()[-1])
    tables = {name: pq.read_metadata(paths.SURROGATE / f"{name}.parquet") for name in SPLITS}
    assert splits == {name: table.num_rows for name, table in tables.items()}
    assert meta == pq.read_metadata(paths.SURROGATE / "meta.parquet").num_rows
    assert columns == ["turn_id", "text", "labels"]
