"""Reads the paper's numbers from data files; no published number is written in code.

The numbers are facts from CRADLE-Dialogue (arXiv 2606.10380); ``data/published/README.md`` says
which sentences they come from. Unknown numbers are missing here, and shown as a dash.
"""

from __future__ import annotations

import csv
from dataclasses import dataclass
from functools import cache
from typing import Any

from cradle_lib import paths


@dataclass(frozen=True, slots=True)
class Published:
    """One number of the paper.

    Attributes:
        key: Dotted name, such as ``corpus.dialogues``.
        value: The number, in its unit.
        text: The number as printed, which shows its precision.
        unit: ``count``, ``percent``, ``turns`` and so on.
        where: Section of the paper.
        note: Further remarks.
    """

    key: str
    value: float
    text: str
    unit: str
    where: str
    note: str


@cache
def published_table() -> dict[str, Published]:
    """Reads ``data/published/published.csv``.

    Returns:
        All published numbers by key, in the file's order.
    """
    return {
        row["key"]: Published(**row | {"value": float(row["value"]), "text": row["value"]})
        for row in _rows("published.csv")
    }


@cache
def published_label_counts() -> dict[str, int]:
    """Gives the number of user turns of the real test split with each label."""
    return {row["label"]: int(row["user_turn_occurrences"]) for row in _rows("label_counts.csv")}


def _rows(name: str) -> list[dict[str, Any]]:
    with (paths.PUBLISHED / name).open(newline="", encoding="utf-8") as handle:
        return list(csv.DictReader(handle))
