"""The page of thresholds, with a run that has stored probabilities."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.table import Table
from cradle_lib.display.theme import Picture
from cradle_lib.scoring.thresholds import thresholds

from .test_notebooks import show


@pytest.fixture
def run(corpus: Corpus, make_run: Callable[..., Predictions]) -> Predictions:
    """A run without predictions whose label probabilities are higher on turns with labels.

    The branches have a tenth of the vocabulary's probability.
    """
    chance = np.random.default_rng(7)
    stored = []
    for gold in corpus.gold:
        odds = (0.25 if gold else 0.15) + 0.1 * chance.random()
        shares = {"none": 1 - odds, "al": 0.7 * odds, "con": 0.3 * odds}
        stored.append([{branch: math.log(0.1 * share) for branch, share in shares.items()}])
    without_predictions = make_run("keyword", np.zeros(len(corpus.gold), dtype=np.uint16))
    return replace(without_predictions, choices=tuple(stored), answers=("none",) * len(stored))


def page(run: Predictions) -> list[Any]:
    _, *shown = show("alarm-burden", {"draws": 20}, run.corpus, [run])
    return shown


def table_of(shown: list[Any], words: str) -> Table:
    [found] = [item for item in shown if isinstance(item, Table) and words in item.caption]
    return found


def figures_of(shown: list[Any], words: str) -> list[Picture]:
    return [item for item in shown if isinstance(item, Picture) and words in item.caption]


def test_a_run_with_choices_has_figures_and_the_thresholds_that_find_enough(
    corpus: Corpus, run: Predictions
) -> None:
    # It predicts a label on every other turn.
    some = np.where(np.arange(len(corpus.gold)) % 2, corpus.gold | 1, 0).astype(np.uint16)
    run = replace(run, masks=some)
    shown = page(run)
    [figure] = figures_of(shown, "recall and share of other turns flagged")
    [tenths] = figures_of(shown, "by tenths")
    assert "for any label " in figure.alt
    assert "any label 0." in tenths.alt
    table = table_of(shown, "thresholds and their scores")
    rows = [
        [str(cell) for cell in row]
        for row, group in zip(table.rows, table.groups, strict=True)
        if "Any label" in group
    ]
    points = ["model's own predictions", "recall of 50 %", "recall of 80 %", "recall of 90 %"]
    assert [row[0] for row in rows] == points
    curve = thresholds([run]).query("wanted == 'any'")
    for row, share in zip(rows[1:], (0.5, 0.8, 0.9), strict=True):
        # The highest threshold with enough recall.
        enough = curve.loc[curve["recall"] >= share, "threshold"].max()
        assert row[1] == f"{enough:.3f}"
        assert float(row[2].split()[0]) >= 100 * share
    # The precision of the run's own predictions is the same in both tables.
    projected = table_of(shown, "Precision of a flag").frame.query("observed").iloc[0]
    same = table.frame.query(
        "threshold.isna() and wanted == 'any label' and measure == 'precision'"
    )
    for end in ("value", "low", "high"):
        assert same.iloc[0][end] == pytest.approx(projected[end])
