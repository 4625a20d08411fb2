"""Tables and pictures of timing and alarms; runs put together for a page."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.detection.runs import run_histories
from cradle_lib.labels import LABELS
from cradle_lib.reporting.alarm_figures import burden_figure
from cradle_lib.reporting.burden_tables import burden_table
from cradle_lib.reporting.downloads import downloads
from cradle_lib.reporting.estimate_cells import turns
from cradle_lib.reporting.figures import Figure
from cradle_lib.reporting.runs import history_runs, run_sets
from cradle_lib.reporting.tables import Table
from cradle_lib.reporting.timing_figures import delay_figure, window_figure
from cradle_lib.reporting.timing_tables import (
    early_table,
    lead_table,
    onset_label_table,
    onset_table,
    window_label_table,
    window_table,
)
from cradle_lib.scoring.burden import burden
from cradle_lib.scoring.evaluate import Estimate, evaluate
from cradle_lib.scoring.report import report
from cradle_lib.scoring.timing import timing

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


def test_timing_tables_hold_the_timing(runs: list[Predictions]) -> None:
    timings = [timing(run, draws=40) for run in runs]
    onsets = onset_table(runs, timings)
    shares = np.array([[row.cells[i].value for i in range(2, 6)] for row in onsets.rows])
    # The sample of four has no gold alert.
    expected = [100 if n else np.nan for n in column(onsets, "Onsets")]
    assert shares.sum(axis=1) == pytest.approx(expected, nan_ok=True)
    assert column(onsets, "Onsets")[:3] == [int(n) for n in timings[0].onsets[:3]]
    leads, early = lead_table(runs, timings), early_table(runs, timings)
    assert column(leads, "Dialogues with both") == [t.lead_dialogues for t in timings]
    assert column(early, "ERDE 5 (%), lower is better")[0] == pytest.approx(
        100 * timings[0].early["erde_5"].value[0]
    )
    labels, by_label = (f(runs[1], timings[1]) for f in (onset_label_table, window_label_table))
    assert len(labels.rows) == len(by_label.rows) == len(LABELS)
    windows = window_table(runs, timings)
    # Both ends of a curve are scores that are computed elsewhere, of everything and of a label.
    for level, title in (("turn", "Exact turn"), ("dialogue", "Once per dialogue")):
        scored = evaluate(runs[1], level=level, draws=0)
        assert column(windows, title)[3] == pytest.approx(100 * scored.estimate("micro_f1").value)
        # A label that never is gold has no F1 that says anything.
        expected = np.where(list(scored.support.values()), 100 * scored.scores.f1, np.nan)
        assert column(by_label, title) == pytest.approx(expected, nan_ok=True)
    assert column(by_label, "Dialogues") == [int(n) for n in timings[1].positives[3:]]
    figures: Sequence[Figure] = (window_figure(runs, timings), delay_figure(runs, timings))
    for shown in (onsets, leads, early, labels, windows, by_label, *figures):
        check(shown)
    start = 100 * evaluate(runs[1], draws=0).estimate("micro_f1").value
    end = 100 * evaluate(runs[1], level="dialogue", draws=0).estimate("micro_f1").value
    assert f"from {start:.1f} on the exact turn to {end:.1f} anywhere" in figures[0].alt


def test_alarms_are_shown_with_words_for_what_is_no_number(runs: list[Predictions]) -> None:
    burdens = [burden(run, draws=40) for run in runs]
    table = burden_table(runs, burdens)
    check(table)
    check(burden_figure(runs, [evaluate(run, draws=40) for run in runs], burdens))
    needed = [row.cells[4] for row in table.rows]
    # Always none has no alarms.
    assert needed[0].text == "n/a"
    assert needed[1].value == burdens[1].estimates["needed_to_evaluate"].value
    assert turns(Estimate(np.inf, 2.0, np.inf), "never").interval_text == "2 to never"
    assert turns(Estimate(np.inf, np.inf, np.inf)).interval_text == ""
    assert turns(Estimate(-1.5, None, None)).text == "-1.50"


def test_a_report_can_be_downloaded_with_its_schema(whole: list[Predictions]) -> None:
    made = report(whole[1], draws=10)
    shown = downloads([], [made])
    assert repr(shown) == "keyword-surrogate-test.json, report.schema.json"
    assert not re.search(r"alert\('x'\)", made.to_json())
