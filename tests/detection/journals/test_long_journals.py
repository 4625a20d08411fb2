"""A long journal needs no more memory than a short one."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from cradle_lib.detection import Journal
from cradle_lib.detection.journals import shards as module
from cradle_lib.detection.journals.journal import each_line
from cradle_lib.detection.journals.shards import join

from .test_journal import make_prediction, make_record

SHORT, LONG = 1_000, 4_000


def write(path: Path, answers: int) -> None:
    record = make_record(shard="0/1", dialogues=[f"d{i:04}" for i in range(10)])
    with Journal.open(path, record) as journal:
        for turn in range(answers):
            journal.append(make_prediction(turn // 10, dialogue=f"d{turn % 10:04}"))


def read(path: Path) -> None:
    for _ in each_line(path):
        pass


def joined(path: Path) -> None:
    join([path], path.with_name("joined.jsonl"), dialogues=11)


def peak(action: Callable[[], None]) -> int:
    tracemalloc.start()
    try:
        action()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_writing_reading_and_joining_hold_no_run_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Pieces so small that both journals have several.
    monkeypatch.setattr(module, "_TOGETHER", 250)
    peaks = {}
    for answers in (SHORT, LONG):
        folder = tmp_path / str(answers)
        folder.mkdir()
        path = folder / "k.jsonl"
        for step in (lambda path=path, n=answers: write(path, n), lambda path=path: read(path),
                     lambda path=path: joined(path)):  # fmt: skip
            peaks.setdefault(answers, []).append(peak(step))
    # An answer that is held takes more than two hundred bytes. There are more pieces, and the file
    # of each takes some forty for an answer.
    for short, long in zip(peaks[SHORT], peaks[LONG], strict=True):
        assert long - short < 100 * (LONG - SHORT)
