"""Reads the shipped surrogate files without the library, as an outside reader would."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "data" / "surrogate"


@dataclass(frozen=True)
class Row:
    """One row: who speaks (``User``, ``Listener`` or empty), the words, the labels."""

    speaker: str
    text: str
    labels: tuple[str, ...]


@dataclass(frozen=True)
class Talk:
    """One dialogue with its line of the meta file."""

    rows: tuple[Row, ...]
    scenario: str
    timing: str
    voice: str
    cases: tuple[str, ...]

    def labels(self, stage: str = "") -> list[str]:
        """All label occurrences, in order, of one stage or of both."""
        return [name for row in self.rows for name in row.labels if name.startswith(stage)]


@cache
def read(split: str) -> tuple[Talk, ...]:
    """All dialogues of a split."""
    table = pq.read_table(FOLDER / f"{split}.parquet").to_pydict()
    groups: list[list[Row]] = []
    for number, text, cell in zip(table["turn_id"], table["text"], table["labels"], strict=True):
        if number == 0:
            groups.append([])
        assert number == len(groups[-1])
        match = re.match(r"(User|Listener): (.+)", text)
        labels = () if cell == "none" else tuple(cell.split("; "))
        groups[-1].append(Row(match[1], match[2], labels) if match else Row("", text, labels))
    meta = [m for m in pq.read_table(FOLDER / "meta.parquet").to_pylist() if m["split"] == split]
    assert [m["dialogue"] for m in meta] == list(range(len(groups)))
    return tuple(
        Talk(
            tuple(rows),
            m["scenario"],
            m["timing"],
            m["voice"],
            tuple(c for c in m["cases"].split("; ") if c),
        )
        for rows, m in zip(groups, meta, strict=True)
    )


def split_sentences(text: str) -> list[str]:
    """Splits on full stops, exclamation and question marks and line ends, in lower case."""
    parts = re.split(r"[.!?\n]", text.lower())
    clean = (re.sub(r"^[^a-z0-9]+|[^a-z0-9]+$", "", part) for part in parts)
    return [re.sub(r"\s+", " ", part) for part in clean if part]


@pytest.fixture(scope="session")
def talks() -> Callable[[str], tuple[Talk, ...]]:
    return read


@pytest.fixture(scope="session")
def sentences() -> Callable[[str], list[str]]:
    return split_sentences


@pytest.fixture(scope="session")
def surrogate_folder() -> Path:
    return FOLDER
