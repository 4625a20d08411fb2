"""The page of thresholds, over a run that stored its choices."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection import Predictions
from cradle_lib.display.table import Table
from cradle_lib.display.theme import Picture
from cradle_lib.labels import ALERT_MASK
from cradle_lib.scoring.thresholds import thresholds

from .test_notebooks import show


@pytest.fixture
def run(corpus: Corpus, make_run: Callable[..., Predictions]) -> Predictions:
    """A run that is surer of a label where there is one, but never sure enough to tag it.

    Of the vocabulary's probability the branches hold a tenth.
    """
    chance = np.random.default_rng(7)
    stored = []
    for gold in corpus.gold:
        odds = (0.25 if gold else 0.15) + 0.1 * chance.random()
        shares = {"none": 1 - odds, "al": 0.7 * odds, "con": 0.3 * odds}
        stored.append([{branch: math.log(0.1 * share) for branch, share in shares.items()}])
    silent = make_run("keyword", np.zeros(len(corpus.gold), dtype=np.uint16))
    return replace(silent, choices=tuple(stored), answers=("none",) * len(stored))


def stripped(run: Predictions, kept: int) -> Predictions:
    """The same run over the same dialogues with other gold labels: only some are kept."""
    dialogues = tuple(
        Dialogue(d.index, tuple(replace(t, mask=t.mask & kept) for t in d.turns))
        for d in run.corpus
    )
    return replace(run, corpus=replace(run.corpus, dialogues=dialogues))


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
        # The highest threshold that is low enough.
        enough = curve.loc[curve["recall"] >= share, "threshold"].max()
        assert row[1] == f"{enough:.3f}"
        assert float(row[2].split()[0]) >= 100 * share
    # The precision of the run's own flags has one interval on the page.
    projected = table_of(shown, "Precision of a flag").frame.query("observed").iloc[0]
    same = table.frame.query(
        "threshold.isna() and wanted == 'any label' and measure == 'precision'"
    )
    for end in ("value", "low", "high"):
        assert same.iloc[0][end] == pytest.approx(projected[end])


def test_the_page_tells_a_bias_and_writes_shares_without_exponents(run: Predictions) -> None:
    # Of every ten turns on three a label is likelier than none.
    shares = [0.6 if turn % 10 < 3 else 0.2 for turn in range(len(run.choices))]
    branches = [{"none": 1 - p, "al": 0.9 * p, "con": 0.1 * p} for p in shares]
    choices = tuple([{b: math.log(0.012341 * p) for b, p in each.items()}] for each in branches)
    decoding = {"mode": "constrained", "none_bias": 1.4}
    record = run.record.model_copy(update={"decoding": decoding})
    shown = page(replace(run, choices=choices, record=record))
    assert "have a median of 1.234 % of" in " ".join(table_of(shown, "probabilities of").notes)
    notes = table_of(shown, "thresholds and their").notes
    assert [note for note in notes if "none_bias" in note] == ["none_bias is 1.4."]


def test_what_is_nowhere_gold_has_no_curve(run: Predictions) -> None:
    shown = page(stripped(run, ALERT_MASK))
    [figure] = figures_of(shown, "recall and share of other turns flagged")
    assert "for an alert" in figure.alt
    assert "for a confirm" not in figure.alt
    assert "nan" not in figure.alt
    table = table_of(shown, "thresholds and their scores")
    confirms = [
        row
        for row, group in zip(table.rows, table.groups, strict=True)
        if "A confirm: 0 of" in group
    ]
    assert [row[2].text for row in confirms] == ["\N{EN DASH}"]
