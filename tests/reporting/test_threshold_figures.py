"""Pages of thresholds: what they say of a run that stored its choices, and of one that did not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection import Predictions
from cradle_lib.labels import ALERT_MASK
from cradle_lib.reporting.figures import Figure
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import Table
from cradle_lib.reporting.threshold_figures import (
    threshold_curves,
    threshold_figures,
    threshold_tables,
)


@pytest.fixture
def run(corpus: Corpus, make_run: Callable[..., Predictions]) -> Predictions:
    """A run that is surer of a label where there is one, but never sure enough to tag it."""
    chance = np.random.default_rng(7)
    stored = []
    for gold in corpus.gold:
        odds = (0.15 if gold else 0.05) + 0.1 * chance.random()
        stored.append([{"none": math.log(1 - odds), "al": math.log(odds / 2), "con": -3.0}])
    silent = make_run("keyword", np.zeros(len(corpus.gold), dtype=np.uint16))
    return replace(silent, choices=tuple(stored))


def test_a_run_with_choices_gets_a_figure_and_a_table(run: Predictions) -> None:
    found = threshold_curves([run], draws=20, seed=0)
    [figure] = threshold_figures(found)
    [table] = threshold_tables(found)
    assert isinstance(figure, Figure)
    assert isinstance(table, Table)
    assert (
        "for any label, at even odds 0 % are found and 0 of 100 other turns flagged" in figure.alt
    )
    rows = [row for row in table.rows if "any label" in row.group]
    assert [row.cells[0].text for row in rows] == [
        "even odds", "to find 50 %", "to find 80 %", "to find 90 %",
    ]  # fmt: skip
    assert rows[0].cells[1:3] != rows[1].cells[1:3]
    curve = found[0][1][0]
    for row, wanted in zip(rows[1:], (0.5, 0.8, 0.9), strict=True):
        # The highest threshold that is low enough.
        enough = curve.thresholds[curve.recall.value >= wanted].max()
        assert row.cells[1].value == pytest.approx(enough)
        assert row.cells[2].value is not None
        assert row.cells[2].value >= 100 * wanted
        assert row.cells[2].interval is not None


def test_a_run_without_choices_is_left_out_and_a_page_without_any_says_so(
    run: Predictions, runs: list[Predictions]
) -> None:
    found = threshold_curves([*runs, run], draws=0, seed=0)
    assert [kept.record.model for kept, _ in found] == [run.record.model]
    for shown in (threshold_figures([]), threshold_tables([])):
        [notice] = shown
        assert isinstance(notice, Notice)
        assert "No run stored log-probabilities" in notice.message


def stripped(run: Predictions, kept: int) -> Predictions:
    """The same run over the same dialogues with other gold labels: only some are kept."""
    dialogues = tuple(
        Dialogue(d.index, tuple(replace(t, mask=t.mask & kept) for t in d.turns))
        for d in run.corpus
    )
    return replace(run, corpus=replace(run.corpus, dialogues=dialogues))


def test_what_is_nowhere_gold_has_no_curve(run: Predictions) -> None:
    found = threshold_curves([stripped(run, ALERT_MASK)], draws=20, seed=0)
    [figure] = threshold_figures(found)
    assert isinstance(figure, Figure)
    assert "for an alert" in figure.alt
    assert "for a confirm" not in figure.alt
    assert "nan" not in figure.alt
    [table] = threshold_tables(found)
    assert isinstance(table, Table)
    confirms = [row for row in table.rows if "a confirm: 0 of" in row.group]
    assert [row.cells[2].text for row in confirms] == ["n/a"]


def test_without_labels_there_is_no_curve_at_all(run: Predictions) -> None:
    [notice] = threshold_figures(threshold_curves([stripped(run, 0)], draws=20, seed=0))
    assert isinstance(notice, Notice)
    assert notice.message.startswith("Model <keyword>: there is no curve to draw")
