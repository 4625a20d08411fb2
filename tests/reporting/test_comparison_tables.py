"""Tables and pictures of timing, alarms and errors."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.reporting.alarm_figures import category_figure
from cradle_lib.reporting.analysis_tables import (
    alert_table,
    category_table,
    consequence_table,
    dominant_table,
    escalation_table,
    history_runs,
    swap_table,
    type_table,
)
from cradle_lib.reporting.downloads import downloads
from cradle_lib.reporting.figures import Figure
from cradle_lib.reporting.runs import run_sets
from cradle_lib.reporting.tables import Table
from cradle_lib.scoring.categories import analyse
from cradle_lib.scoring.consequence import consequence
from cradle_lib.scoring.report import report

HOSTILE = "Model <keyword>"


@pytest.fixture(scope="module")
def whole(runs: list[Predictions]) -> list[Predictions]:
    return runs[:2]


def column(table: Table, title: str) -> list[Any]:
    place = [c.title for c in table.columns].index(title)
    return [row.cells[place].value for row in table.rows]


def check(shown: Table | Figure) -> None:
    """What every table and figure owes: text that is escaped, and every form of it."""
    page = shown._repr_html_()
    assert "Model <" not in page
    if isinstance(shown, Figure):
        assert shown.alt
        assert len(shown.light) < 150_000
    else:
        downloads([shown])._repr_html_()


def test_runs_are_put_into_sets_with_the_baseline_first(runs: list[Predictions]) -> None:
    sets = run_sets(runs, "keyword")
    assert [[run.record.model for run in group] for group in sets] == [["keyword", "always-none"]]
    # A sample of four is nothing to test; beside a largest set of its own kind it would stay.
    assert [len(group[0].corpus) for group in sets] == [40]
    few = [run.subset(runs[2].corpus) for run in runs[:2]]
    assert [len(group[0].corpus) for group in run_sets([*few, runs[2]])] == [4]
    large = replace(runs[2], **vars(runs[1].subset(runs[1].corpus.subset(range(20), "twenty"))))
    assert [len(group[0].corpus) for group in run_sets([*runs[:2], large])] == [40, 20]
    assert run_sets(runs[:1]) == []


def test_error_tables_add_up(runs: list[Predictions], whole: list[Predictions]) -> None:
    table = category_table(runs)
    alerts, types = alert_table(runs), type_table(whole[1])
    for name, run in zip([c.title for c in table.columns[1:]], runs, strict=True):
        *parts, total = column(table, name)
        assert sum(parts) == total
        total, found, *parts = column(alerts, name)
        assert total == found + sum(parts)
        # What is left after all errors are taken off is what was found.
        gold, tags = run.corpus.gold, run.masks
        assert found == np.bitwise_count(gold & tags & np.uint16(3)).sum()
    assert [c.title for c in table.columns][-1].endswith("(4 dialogues)")
    assert "Only columns over the same dialogues" in table.notes[-1]
    for shown in (table, dominant_table(runs), swap_table(runs), category_figure(runs)):
        check(shown)
    found = analyse(whole[1])
    assert found.made_up_most is not None
    assert f"({found.made_up_most[1]})" in dominant_table(whole).rows[1].cells[2].text
    pairs = sum(cell.value or 0 for row in types.rows for cell in row.cells[1:])
    assert pairs == sum(found.wrong_types.values())
    for shown in (alerts, types):
        check(shown)
    orders = escalation_table(whole[1])
    assert sum(column(orders, "Dialogues")) == 40
    for row in orders.rows:
        assert row.cells[1].value == sum(cell.value for cell in row.cells[2:])


def test_consequences_are_shown_where_other_histories_were_run(
    whole: list[Predictions],
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path)
    assert history_runs(whole, corpus) == []
    own = whole[1]
    told = replace(own, record=own.record.model_copy(update={"history": "gold"}))
    found = consequence({"self": own, "gold": told}, draws=20)
    table = consequence_table(HOSTILE, found)
    check(table)
    assert sum(column(table, "User turns")) == len(own.masks)
    # The same answers under both histories: no consequence anywhere.
    assert not np.nan_to_num([v for v in column(table, "self minus gold") if v is not None]).any()


def test_a_report_can_be_downloaded_with_its_schema(whole: list[Predictions]) -> None:
    made = report(whole[1], draws=10)
    shown = downloads([], [made])
    assert repr(shown) == "keyword-surrogate-test.json, report.schema.json"
    assert not re.search(r"alert\('x'\)", made.to_json())
