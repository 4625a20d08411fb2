"""The shipped surrogate, read without the library, as an outside reader would."""

from __future__ import annotations

import re
import statistics
from collections import Counter
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import pyarrow.parquet as pq
import pytest

FOLDER = Path(__file__).resolve().parents[3] / "data" / "surrogate"
PHASES = {"early": {3, 5, 7}, "mid": {7, 9, 11}, "late": {11, 13, 15}}

# Counted on the real release, rows that start with "User:".
USER_ROW_LABELS = {
    "alert_ongoing": 172,
    "alert_past": 64,
    "confirm_CA_ongoing": 8,
    "confirm_CA_past": 27,
    "confirm_DV_ongoing": 25,
    "confirm_DV_past": 31,
    "confirm_RA_ongoing": 7,
    "confirm_RA_past": 59,
    "confirm_SH_ongoing": 77,
    "confirm_SH_past": 27,
    "confirm_SHA_ongoing": 23,
    "confirm_SHA_past": 40,
    "confirm_SI_active_ongoing": 58,
    "confirm_SI_active_past": 11,
    "confirm_SI_passive_ongoing": 78,
    "confirm_SI_passive_past": 4,
}


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

    def labels(self, stage: str = "") -> list[str]:
        """All label occurrences, in order, of one stage or of both."""
        return [name for row in self.rows for name in row.labels if name.startswith(stage)]

    def turns(self, stage: str) -> list[int]:
        """Turns, counted from 1, with a label of the stage."""
        return [
            number
            for number, row in enumerate(self.rows, start=1)
            if any(name.startswith(stage) for name in row.labels)
        ]


@cache
def talks(split: str) -> tuple[Talk, ...]:
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
    return tuple(
        Talk(tuple(rows), m["scenario"], m["timing"], m["voice"])
        for rows, m in zip(groups, meta, strict=True)
    )


def test_the_test_split_has_the_published_counts() -> None:
    found = talks("test")
    rows = [row for talk in found for row in talk.rows]
    users = [row for row in rows if row.speaker == "User"]
    assert (len(found), len(rows), len(users)) == (600, 8975, 4527)
    assert Counter(name for row in users for name in row.labels) == USER_ROW_LABELS
    # 703 rows, 711 labels: eight rows with two.
    assert Counter(len(row.labels) for row in users) == {0: 4527 - 703, 1: 695, 2: 8}
    others = [(row.speaker, row.labels) for row in rows if row.labels and row.speaker != "User"]
    assert sorted(others) == [("", ("confirm_SH_ongoing",)), ("Listener", ("alert_ongoing",))]
    kinds = Counter((bool(t.labels("alert")), bool(t.labels("confirm"))) for t in found)
    assert kinds == {(True, True): 203, (True, False): 23, (False, True): 214, (False, False): 160}
    assert Counter(talk.scenario for talk in found) == {
        "S1": 96, "S2": 97, "S3": 91, "S4": 67, "S5": 56, "S6": 97, "S7": 96,
    }  # fmt: skip
    assert Counter(talk.timing for talk in found) == {"early": 200, "mid": 200, "late": 200}
    # Unique labels per dialogue round to the published density.
    for stage, density in (("", "1.18 0.89"), ("alert", "0.38 0.50"), ("confirm", "0.79 0.61")):
        unique = [len(set(talk.labels(stage))) for talk in found]
        assert f"{statistics.fmean(unique):.2f} {statistics.pstdev(unique):.2f}" == density


@pytest.mark.parametrize(
    ("split", "dialogues", "rows"), [("train", 3058, 48557), ("dev", 420, 6679)]
)
def test_generated_dialogues_follow_the_rules_of_the_training_prompt(
    split: str, dialogues: int, rows: int
) -> None:
    found = talks(split)
    assert (len(found), sum(len(talk.rows) for talk in found)) == (dialogues, rows)
    for talk in found:
        speakers = [row.speaker for row in talk.rows]
        assert len(speakers) >= 15
        assert speakers == [("User", "Listener")[i % 2] for i in range(len(speakers))]
        assert not [row for row in talk.rows if row.labels and row.speaker != "User"]
        alerts, confirms = talk.turns("alert"), talk.turns("confirm")
        assert len(alerts) <= 1
        assert {*confirms} <= PHASES[talk.timing]
        assert len(confirms) <= 1
        assert not alerts or not confirms or alerts[0] < confirms[0]
    names = Counter(name for talk in found for name in talk.labels())
    assert round(100 * names["alert_ongoing"] / names.total()) == 30
    both = sum(bool(t.labels("alert")) and bool(t.labels("confirm")) for t in found)
    assert round(both / len(found), 2) == 0.5
    counts = Counter(talk.timing for talk in found).values()
    assert max(counts) - min(counts) <= 1


def sentences(split: str, *, labelled: bool = False) -> list[str]:
    """Splits on full stops, exclamation and question marks, in lower case."""
    texts = [row.text for talk in talks(split) for row in talk.rows if row.labels or not labelled]
    parts = (part.strip(" ,'\"-") for part in re.split(r"[.!?\n]", "\n".join(texts).lower()))
    return [part for part in parts if part]


def test_no_sentence_is_frequent_and_no_labelled_one_is_shared_with_the_test_split() -> None:
    every = {split: Counter(sentences(split)) for split in ("train", "dev", "test")}
    for split, counts in every.items():
        assert len(counts) > 5000
        assert {s: n for s, n in counts.items() if n > 3} == {}
        told = {*sentences(split, labelled=True)}
        assert len(told) > 500
        others = ("train", "dev") if split == "test" else ("test",)
        assert not any(told & every[other].keys() for other in others)
