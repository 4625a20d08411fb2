"""The page that compares two runs turn by turn, over the journals that ship and over none."""

from __future__ import annotations

from typing import Any

import pytest

from cradle_lib import load_corpus, run_model
from cradle_lib.display.notice import Notice
from cradle_lib.display.table import Table

from .test_notebooks import show


def page(monkeypatch: pytest.MonkeyPatch, **values: str) -> list[Any]:
    return show("engine-agreement", values, monkeypatch)


def test_two_runs_are_compared_in_what_they_said_took_and_were(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    agreement, usage, records = [item for item in page(monkeypatch) if isinstance(item, Table)]
    [flips] = [row for row in agreement.grid.rows if row[0].text == "Dialogues with a flip"]
    # 1 - 0.05^(1/600) = 0.50 %.
    assert [str(cell) for cell in flips[1:]] == ["0", "600", "0.00 [0.00, 0.50]"]
    wave, reference = usage.frame.to_dict("records")
    # The reference engine computes every prompt whole.
    assert wave["computed"] < reference["computed"] == reference["tokens_in"] == wave["tokens_in"]
    same = records.frame["same"]
    assert (same["engine"], same["prompt"], same["weights"]) == ("no", "yes", "yes")


def test_a_token_that_nobody_counted_is_no_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    # Made by a build of the book, if there was one.
    run_model("keyword", load_corpus("surrogate"))
    _, usage, _ = [item for item in page(monkeypatch, second="keyword") if isinstance(item, Table)]
    assert usage.frame.loc["keyword", ["tokens_in", "computed"]].isna().all()


def test_a_run_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    shown = page(monkeypatch, second="no<b>.jsonl")
    told = [item for item in shown if isinstance(item, Notice)]
    assert len(told) == 4
    assert told[0].message.startswith("Nothing to compare yet: no<b>.jsonl was not run over")
    assert "no&lt;b&gt;.jsonl" in told[0]._repr_html_()
