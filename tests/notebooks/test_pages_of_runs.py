"""Pages with several runs: comparable runs, best values, and published values."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.banner import banner
from cradle_lib.display.examples import Examples
from cradle_lib.display.table import Table
from cradle_lib.labels import BITS
from cradle_lib.published import published_table

from .test_notebooks import show

Tables = Callable[[str, list[Predictions]], list[Table]]


@pytest.fixture
def tables(corpus: Corpus) -> Tables:
    """A function that returns the tables of a page with the given runs."""

    def make(page: str, runs: list[Predictions]) -> list[Table]:
        shown = show(page, {"draws": 30}, corpus, runs)
        return [item for item in shown if isinstance(item, Table)]

    return make


def cells(table: Table, name: str) -> dict[str, Any]:
    """Returns the first row of a name by the headings of its columns."""
    row = next(row for row in table.rows if row[0].text == name)
    return dict(zip(table.titles, row, strict=True))


def groups(table: Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for heading, row in zip(table.groups, table.rows, strict=True):
        found.setdefault(heading, []).append(row[0].text)
    return found


def test_subsets_of_dialogues_are_ranked_separately(
    runs: list[Predictions], tables: Tables
) -> None:
    board, turn, dialogue, confirm = tables("results", runs)[:4]
    whole, part = groups(board).items()
    assert "40 dialogues, 160 user turns" in whole[0]
    assert "4 dialogues, 16 of 160 user turns" in part[0]
    names = [run.record.name for run in runs]
    assert {*whole[1]} == {names[0], names[1]}
    assert {*part[1]} == {*names}
    ranks = board.frame.groupby("coverage")["rank"].agg(["min", "max"])
    assert ranks["min"].tolist() == [1, 1]
    assert ranks["max"].max() <= 3
    # Every tenth answer of 160 is unparsed.
    keyword = cells(turn, names[1])
    assert (keyword["Unusable"].text, cells(turn, names[0])["Unusable"].text) == ("16", "0")
    assert keyword["Micro F1"].best
    assert "Exact match" in turn.titles
    assert "Exact match" not in {*dialogue.titles, *confirm.titles}


def test_published_values_are_in_separate_tables(
    corpus: Corpus, make_run: Callable[..., Predictions], tables: Tables
) -> None:
    runs = [make_run(model, corpus.gold) for model in ("qwen3-32b", "always-none")]
    names = ["Qwen3-32B", "Always none"]
    runs = [
        replace(run, record=run.record.model_copy(update={"name": name}), masks=masks)
        for run, name, masks in zip(
            runs, names, (corpus.gold, np.zeros_like(corpus.gold)), strict=True
        )
    ]
    shown = tables("results", runs)
    ours, published = shown[:5], shown[5:8]
    for table in ours:
        assert {row[0].text for row in table.rows} == {*names}
        assert "published" not in table.frame
    # The published baseline has the same name as in the registry.
    assert {"Always none", "Claude"} <= {row[0].text for row in published[0].rows}
    qwen = cells(published[0], "Qwen3-32B")
    assert qwen["Micro F1"].text == "43.75"
    assert qwen["Micro recall"].text.endswith("\N{DAGGER}")
    assert qwen["Exact match"].text == "\N{EN DASH}"
    # Every published score is in the table of its level.
    for level, table in zip(("turn", "dialogue", "confirm"), published, strict=True):
        form = re.compile(rf"result\.{level}\.(?!micro_recall_gain)\w+\.[\w.-]+")
        keys = [key for key in published_table() if form.fullmatch(key)]
        texts = {cell.text for row in table.rows for cell in row if cell.published}
        assert {published_table()[key].text for key in keys} <= texts
        assert not any(cell.best for row in table.rows for cell in row)


def test_a_sample_is_never_best_for_a_label(runs: list[Predictions], tables: Tables) -> None:
    table, published, coverage, *_ = tables("per-label", runs)
    assert "Wilson, used here" in coverage.titles
    titles = table.titles
    [sample] = [n for n, title in enumerate(titles) if "4 dialogues, 16 of 160" in title]
    [half] = [n for n, title in enumerate(titles) if title.endswith(runs[1].record.name)]
    assert not any(row[sample].best for row in table.rows)
    assert any(row[half].best for row in table.rows)
    # A label has one row, with its support in the whole corpus.
    assert len(table.rows) == 16
    support = [row[1].text for row in table.rows]
    assert support == sorted(support, key=int, reverse=True)
    # Published values are in a separate table.
    assert not any("published" in title for title in titles)
    rows = {(row[0].text, row[1].text, row[2].text) for row in published.rows}
    assert rows == {("alert_past", "Qwen3-32B, fine-tuned", "34.8")}


def test_the_errors_page_counts_confusions_by_pair_of_labels(
    corpus: Corpus, make_run: Callable[..., Predictions]
) -> None:
    # One system predicts alert_past for alert_ongoing; the other makes no error.
    ongoing, past = BITS["alert_ongoing"], BITS["alert_past"]
    swapped = np.where(corpus.gold == ongoing, past, corpus.gold).astype(np.uint16)
    assert (times := int((corpus.gold == ongoing).sum()))
    runs = [make_run("keyword", swapped), make_run("tfidf", corpus.gold)]
    shown = show("errors", {"draws": 30}, corpus, runs)
    categories, confusions, *others = (item for item in shown if isinstance(item, Table))
    wrong, right = (run.record.name for run in runs)
    [row] = confusions.rows
    assert row[0].text == "alert_ongoing as alert_past"
    found = cells(confusions, row[0].text)
    assert [found[name].text for name in (wrong, right)] == [str(times), "0"]
    # The best system comes first.
    assert [row[0].text for row in categories.rows] == [right, wrong]
    assert [cells(categories, name)["Temporal swap"].text for name in (wrong, right)] == [
        str(times),
        "0",
    ]
    assert cells(categories, wrong)["All errors"].text == str(times)
    [examples] = (item for item in shown if isinstance(item, Examples))
    assert examples.excerpts["title"].tolist() == ["Temporal swap"]
    [published] = [table for table in others if table.caption.startswith("Published values")]
    assert cells(published, "Qwen2.5-72B")["Turns without gold labels: flagged (%)"].text == "24.5"
    assert cells(published, "Qwen3-14B")["False negatives"].text == "442"
    note = "Claude, GPT and gpt-oss-120b each take alert_ongoing for SI_passive_ongoing 18 to 23"
    assert note in " ".join(published.notes)


def test_the_banner_marks_unfinished_runs(corpus: Corpus, runs: list[Predictions]) -> None:
    part = runs[2]
    ids = [dialogue.id for dialogue in corpus][:7]
    chosen = replace(part, record=part.record.model_copy(update={"dialogues": ids}))
    done = replace(part, record=part.record.model_copy(update={"dialogues": ids[:4]}))
    banners = dict.fromkeys(["whole", "part", "chosen", "done"], "")
    for name, run in zip(banners, (runs[0], part, chosen, done), strict=True):
        banners[name] = repr(banner(corpus=corpus, runs=[run]))
    assert "4 of 40 dialogues answered so far" in banners["part"]
    assert "4 of 7 dialogues answered so far" in banners["chosen"]
    assert "answered so far" not in banners["whole"] + banners["done"]
    page = banner(corpus=corpus, runs=[part])._repr_html_()
    assert "Not finished" in page
    assert "Model &lt;smollm2-135m&gt;: 4 of 40" in page
