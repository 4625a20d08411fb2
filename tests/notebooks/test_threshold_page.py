"""The page of thresholds, over a run that stored its choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import cradle_lib
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection import Predictions
from cradle_lib.display.notice import Notice
from cradle_lib.display.table import Table
from cradle_lib.display.theme import Picture
from cradle_lib.labels import ALERT_MASK
from cradle_lib.scoring.robustness.thresholds import threshold_curve

from .test_notebooks import SOURCES, show

[PAGE] = [path for path in SOURCES if path.stem == "thresholds"]


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


def stripped(run: Predictions, kept: int) -> Predictions:
    """The same run over the same dialogues with other gold labels: only some are kept."""
    dialogues = tuple(
        Dialogue(d.index, tuple(replace(t, mask=t.mask & kept) for t in d.turns))
        for d in run.corpus
    )
    return replace(run, corpus=replace(run.corpus, dialogues=dialogues))


def page(run: Predictions, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(cradle_lib, "load_corpus", lambda *_: run.corpus)
    monkeypatch.setattr(cradle_lib, "stored_runs", lambda *_: [run])
    _, *shown = [item for item in show(PAGE, {"draws": 20}, monkeypatch) if item is not None]
    return shown


def test_a_run_with_choices_has_a_figure_and_the_thresholds_that_find_enough(
    run: Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    ability, figure, table = page(run, monkeypatch)
    assert isinstance(figure, Picture)
    assert "for any label, at even odds 0.000 of them are found" in figure.alt
    rows = [
        [str(cell) for cell in row]
        for row, group in zip(table.grid.rows, table.grid.groups, strict=True)
        if "any label" in group
    ]
    assert [row[0] for row in rows] == ["even odds", "to find 50 %", "to find 80 %", "to find 90 %"]
    curve = threshold_curve(run, draws=0)
    for row, share in zip(rows[1:], (0.5, 0.8, 0.9), strict=True):
        # The highest threshold that is low enough.
        enough = curve.thresholds[curve.recall.value >= share].max()
        assert row[1] == f"{enough:.2f}"
        assert float(row[2].split()[0]) >= 100 * share
    assert isinstance(ability, Table)
    assert ability.frame.loc[run.record.name, ["tags", "right"]].tolist() == [0, 0]
    assert ability.frame.loc[run.record.name, "gold"] == sum(
        turn.mask.bit_count() for dialogue in run.corpus for turn in dialogue.user_turns
    )


def test_what_is_nowhere_gold_has_no_curve(
    run: Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, figure, table = page(stripped(run, ALERT_MASK), monkeypatch)
    assert "for an alert" in figure.alt
    assert "for a confirm" not in figure.alt
    assert "nan" not in figure.alt
    confirms = [
        row
        for row, group in zip(table.grid.rows, table.grid.groups, strict=True)
        if "a confirm: 0 of" in group
    ]
    assert [row[2].text for row in confirms] == ["\N{EN DASH}"]


def test_without_labels_there_is_no_curve_at_all(
    run: Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, notice, _ = page(stripped(run, 0), monkeypatch)
    assert isinstance(notice, Notice)
    assert notice.message.startswith("Model <keyword>: there is no curve to draw")
