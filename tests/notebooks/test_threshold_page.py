"""The page of thresholds, over a run that stored its choices."""

from __future__ import annotations

import math
import re
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
from cradle_lib.scoring.robustness.thresholds import thresholds

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


def page(run: Predictions, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    monkeypatch.setattr(cradle_lib, "load_corpus", lambda *_: run.corpus)
    monkeypatch.setattr(cradle_lib, "stored_runs", lambda *_: [run])
    _, *shown = [
        item for item in show("thresholds", {"draws": 20}, monkeypatch) if item is not None
    ]
    return shown


def by_name(shown: list[Any], start: str) -> Table:
    [found] = [item for item in shown if isinstance(item, Table) and item.caption.startswith(start)]
    return found


def test_a_run_with_choices_has_figures_and_the_thresholds_that_find_enough(
    run: Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = page(run, monkeypatch)
    figure, tenths = [item for item in shown if isinstance(item, Picture)]
    assert "for any label, the model's own tags find 0.000 and flag 0.000" in figure.alt
    assert "any label: of the likeliest, at 0." in tenths.alt
    table = by_name(shown, "Thresholds on the chance")
    rows = [
        [str(cell) for cell in row]
        for row, group in zip(table.grid.rows, table.grid.groups, strict=True)
        if "any label" in group
    ]
    points = ["the model's own tags", "to find 50 %", "to find 80 %", "to find 90 %"]
    assert [row[0] for row in rows] == points
    curve = thresholds([run], draws=0).query("wanted == 'any' and measure == 'recall'")
    for row, share in zip(rows[1:], (0.5, 0.8, 0.9), strict=True):
        # The highest threshold that is low enough.
        enough = curve.loc[curve["value"] >= share, "threshold"].max()
        assert row[1] == f"{enough:.3f}"
        assert float(row[2].split()[0]) >= 100 * share
    ability = by_name(shown, "How far the models")
    assert ability.frame.loc[run.record.name, ["tags", "right"]].tolist() == [0, 0]
    assert ability.frame.loc[run.record.name, "gold"] == sum(
        turn.mask.bit_count() for dialogue in run.corpus for turn in dialogue.user_turns
    )


def test_the_page_says_how_little_the_branches_hold_and_what_is_below_chance(
    run: Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes = " ".join(by_name(page(run, monkeypatch), "What the chances").notes)
    assert "the branches of the first fork together have 10 % of the model's probability" in notes
    assert re.search(r"ranked above chance, [^:]*: any label", notes)
    assert "looking for any label: with a threshold" not in notes
    # The same run with its chances turned round ranks the other way.
    turned = []
    for [fork] in run.choices:  # type: ignore[misc]
        odds = 0.1 - math.exp(fork["none"])
        turned.append([fork | {"none": math.log(odds), "al": math.log(0.07 - 0.7 * odds),
                               "con": math.log(0.03 - 0.3 * odds)}])  # fmt: skip
    notes = " ".join(
        by_name(page(replace(run, choices=tuple(turned)), monkeypatch), "What the chances").notes
    )
    assert re.search(r"ranked below chance, [^:]*: any label", notes)
    assert "looking for any label: with a threshold from 0." in notes
    assert "the curve lies below the dotted line" in notes


@pytest.mark.parametrize(
    ("bias", "mass", "said"),
    [(1.4, 0.9998, "99.98 %"), (0.3, 0.5, "50 %"), (None, 0.012345, "1.234 %")],
)
def test_the_page_counts_what_a_bias_changed_and_writes_shares_without_exponents(
    run: Predictions, monkeypatch: pytest.MonkeyPatch, bias: float | None, mass: float, said: str
) -> None:
    # Of every ten turns on three a label is likelier than none.
    shares = [0.6 if turn % 10 < 3 else 0.2 for turn in range(len(run.choices))]
    branches = [{"none": 1 - p, "al": 0.9 * p, "con": 0.1 * p} for p in shares]
    choices = tuple([{b: math.log(mass * p) for b, p in each.items()}] for each in branches)
    decoding = {"mode": "constrained"} | ({} if bias is None else {"none_bias": bias})
    record = run.record.model_copy(update={"decoding": decoding})
    [*notes] = by_name(
        page(replace(run, choices=choices, record=record), monkeypatch), "What the chances"
    ).notes
    assert f"together have {said} of the model's probability" in " ".join(notes)
    told = [note for note in notes if "was added to the log-probability of none" in note]
    changed = sum(p > 0.5 for p in shares) if bias == 1.4 else 0
    expected = f"changed what the model wrote on {changed} of {len(shares)} turns"
    assert [expected in note for note in told] == ([] if bias is None else [True])


def test_without_a_dev_run_the_page_says_that_no_threshold_was_chosen(
    run: Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    *_, notice, _ = page(run, monkeypatch)
    assert isinstance(notice, Notice)
    assert "no run over other dialogues, the dev split, is stored" in notice.message


def test_what_is_nowhere_gold_has_no_curve(
    run: Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = page(stripped(run, ALERT_MASK), monkeypatch)
    figure = next(item for item in shown if isinstance(item, Picture))
    assert "for an alert" in figure.alt
    assert "for a confirm" not in figure.alt
    assert "nan" not in figure.alt
    table = by_name(shown, "Thresholds on the chance")
    confirms = [
        row
        for row, group in zip(table.grid.rows, table.grid.groups, strict=True)
        if "a confirm: 0 of" in group
    ]
    assert [row[2].text for row in confirms] == ["\N{EN DASH}"]


def test_without_labels_there_is_no_curve_at_all(
    run: Predictions, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices = [i.message for i in page(stripped(run, 0), monkeypatch) if isinstance(i, Notice)]
    assert notices[0].startswith("Model <keyword>: there is no curve to draw")
