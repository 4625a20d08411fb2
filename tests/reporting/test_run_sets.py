"""Runs put together for a page, and a report to take away."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.detection.runs import run_histories
from cradle_lib.reporting.downloads import downloads
from cradle_lib.reporting.runs import history_runs, run_sets
from cradle_lib.scoring.core.report import report

HOSTILE = "Model <keyword>"


@pytest.fixture(scope="module")
def whole(runs: list[Predictions]) -> list[Predictions]:
    return runs[:2]


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


def test_other_histories_are_found_where_they_were_run(
    whole: list[Predictions], corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path)
    assert history_runs(whole, corpus) == []
    run_histories(["always-none"], corpus)
    [found] = history_runs(whole, corpus)
    assert {history: run.record.history for history, run in found.items()} == {
        name: name for name in ("self", "gold", "none")
    }
    assert {run.record.model for run in found.values()} == {"always-none"}


def test_a_report_can_be_downloaded_with_its_schema(whole: list[Predictions]) -> None:
    made = report(whole[1], draws=10)
    shown = downloads([], [made])
    assert repr(shown) == "keyword-surrogate-test.json, report.schema.json"
    assert not re.search(r"alert\('x'\)", made.to_json())
