"""The page of one run: an answer that could not be used is never counted as *none*."""

from __future__ import annotations

import json

import pytest

from cradle_lib import paths
from cradle_lib.display.table import Table

from .test_notebooks import show


@pytest.mark.parametrize("model", ["smollm2-135m", "smollm2-135m-tuned"])
def test_unusable_answers_are_a_category_of_their_own(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = paths.SHIPPED_RUNS / "surrogate-test" / f"{model}.jsonl"
    _header, *lines = [json.loads(line) for line in journal.read_text("utf-8").splitlines()]
    answered = {(line["dialogue"], line["turn"]): line["outcome"] for line in lines}
    unusable = sum(outcome != "ok" for outcome in answered.values())

    shown = show("inference", {"model": model}, monkeypatch)
    table = next(t for t in shown if isinstance(t, Table) and t.caption.startswith("What was pred"))
    rows = {row[0].text: [cell.text for cell in row[1:]] for row in table.grid.rows}
    assert rows.get("unusable answer", ["0", "0"]) == [f"{unusable:,}", "0"]
    headline = shown[-1].message
    labelled = {(line["dialogue"], line["turn"]) for line in lines if line["labels"] != "none"}
    assert f"it labels {len(labelled):,}, and " in headline
    assert ("of its answers are unusable." in headline) == (unusable > 0)
    turns = sum(int(turns.replace(",", "")) for turns, _ in rows.values())
    assert turns == len(answered)
