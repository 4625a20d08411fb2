"""What pages of several runs say: which may be compared, and what is published of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

import cradle_lib
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.banner import banner
from cradle_lib.display.table import Table

from .test_notebooks import show

Tables = Callable[[str, list[Predictions]], list[Table]]


@pytest.fixture
def tables(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> Tables:
    """Gives the tables of a page that finds certain runs."""

    def make(page: str, runs: list[Predictions]) -> list[Table]:
        monkeypatch.setattr(cradle_lib, "load_corpus", lambda *_: corpus, raising=False)
        monkeypatch.setattr(cradle_lib, "stored_runs", lambda *_: list(runs), raising=False)
        shown: list[Any] = show(page, {"draws": 30}, monkeypatch)
        return [item for item in shown if isinstance(item, Table)]

    return make


def cells(table: Table, name: str) -> dict[str, Any]:
    """The first row of that name, by the headings of its columns."""
    row = next(row for row in table.grid.rows if row[0].text == name)
    return dict(zip(table.grid.titles, row, strict=True))


def groups(table: Table) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for heading, row in zip(table.grid.groups, table.grid.rows, strict=True):
        found.setdefault(heading, []).append(row[0].text)
    return found


def test_results_over_other_dialogues_stand_apart_without_published_values(
    runs: list[Predictions], tables: Tables
) -> None:
    # Others measured it on the real test split, under its name in the registry.
    record = runs[0].record.model_copy(update={"name": "Always none"})
    runs = [replace(runs[0], record=record), *runs[1:]]
    whole, part, paper = groups(tables("results", runs)[0]).items()
    assert "40 dialogues, 160 user turns" in whole[0]
    assert "4 dialogues, 16 of 160 user turns" in part[0]
    names = [run.record.name for run in runs]
    assert whole[1] == [names[0], names[1]]
    assert part[1] == names
    assert paper[0] == "Published values (\N{DOUBLE DAGGER})"
    assert {f"{names[0]} \N{DOUBLE DAGGER}", "Claude \N{DOUBLE DAGGER}"} <= {*paper[1]}


def test_the_papers_values_of_a_system_that_was_run_stand_with_the_others_of_the_paper(
    corpus: Corpus, make_run: Callable[..., Predictions], tables: Tables
) -> None:
    run = make_run("qwen3-32b", corpus.gold)
    named = replace(run, record=run.record.model_copy(update={"name": "Qwen3-32B"}))
    ours, paper = groups(tables("results", [named])[0]).values()
    assert ours == ["Qwen3-32B"]
    assert paper.count("Qwen3-32B \N{DOUBLE DAGGER}") == 1
    stated = cells(tables("results", [named])[0], "Qwen3-32B \N{DOUBLE DAGGER}")
    assert stated["Micro F1"].text == "43.75"
    assert stated["Exact match"].text == "\N{EN DASH}"
    # The paper's values are in no contest.
    assert not any(cell.best for row in tables("results", [named])[0].grid.rows for cell in row)


def test_unusable_answers_stand_beside_the_scores_and_keep_nobody_out(
    runs: list[Predictions], tables: Tables
) -> None:
    turn, dialogue, confirm, _ = tables("results", runs[:2])
    keyword = cells(turn, runs[1].record.name)
    # Every tenth answer of 160 is unparsed.
    assert keyword["Unusable"].text == "16"
    assert cells(turn, runs[0].record.name)["Unusable"].text == "0"
    assert keyword["Micro F1"].best
    assert "Exact match" in turn.grid.titles
    assert not {"Exact match"} & {*dialogue.grid.titles, *confirm.grid.titles}


def test_a_sample_is_outside_the_contest_of_a_label(
    runs: list[Predictions], tables: Tables
) -> None:
    table, coverage = tables("per-label", runs)
    assert "Wilson, used here" in coverage.grid.titles
    titles = table.grid.titles
    [sample] = [n for n, title in enumerate(titles) if "4 dialogues, 16 of 160" in title]
    [half] = [n for n, title in enumerate(titles) if title.endswith(runs[1].record.name)]
    assert not any(row[sample].best for row in table.grid.rows)
    assert any(row[half].best for row in table.grid.rows)
    assert len(table.grid.rows) == 16
    stated = {row[0].text: row[-1].text for row in table.grid.rows}
    assert titles[-1] == "The paper, real test split, Qwen3-32B, fine-tuned: published"
    assert stated.pop("alert_past") == "34.8"
    assert set(stated.values()) == {"\N{EN DASH}"}


def test_a_perfect_run_is_perfect_in_the_cells_that_the_paper_states(
    corpus: Corpus, make_run: Callable[..., Predictions], tables: Tables
) -> None:
    [table] = tables("confusion", [make_run("keyword", corpus.gold)])
    assert table.grid.groups == [
        "One to one",
        "All with all",
        *["Published values (\N{DOUBLE DAGGER})"] * 2,
    ]
    # Five cells of two systems, as Appendix D.3 states them, after both pairings of a run.
    assert [[cell.text for cell in row[1:]] for row in table.grid.rows] == [
        ["100", "100", "100", "0", "0"],
        ["100", "100", "100", "0", "0"],
        ["27", "14", "25", "36", "23"],
        ["45", "31", "53", "8", "20"],
    ]


def test_names_are_text_in_every_table(runs: list[Predictions], tables: Tables) -> None:
    for page in ("results", "per-label", "confusion", "error-cases"):
        for table in tables(page, runs[:2]):
            # The simulation of intervals is about no model.
            named = "Model &lt;keyword&gt;" in table._repr_html_()
            assert named or "Wilson, used here" in table.grid.titles
            assert "<keyword>" not in table._repr_html_()


def test_what_the_paper_says_of_errors_is_shown(runs: list[Predictions], tables: Tables) -> None:
    [table] = tables("error-cases", runs)
    assert cells(table, "Qwen2.5-72B \N{DOUBLE DAGGER}")["Flagged without gold (%)"].text == "24.5"
    assert cells(table, "Qwen3-14B \N{DOUBLE DAGGER}")["False negatives"].text == "442"
    assert "18 to 23 for Claude, GPT and gpt-oss-120b" in table.notes[1]


def test_a_run_that_is_not_finished_is_said_to_be_so(
    corpus: Corpus, runs: list[Predictions]
) -> None:
    part = runs[2]
    ids = [dialogue.id for dialogue in corpus][:7]
    chosen = replace(part, record=part.record.model_copy(update={"dialogues": ids}))
    done = replace(part, record=part.record.model_copy(update={"dialogues": ids[:4]}))
    said = dict.fromkeys(["whole", "part", "chosen", "done"], "")
    for name, run in zip(said, (runs[0], part, chosen, done), strict=True):
        said[name] = repr(banner(corpus=corpus, runs=[run]))
    assert "4 of 40 dialogues answered so far" in said["part"]
    assert "4 of 7 dialogues answered so far" in said["chosen"]
    assert "answered so far" not in said["whole"] + said["done"]
    page = banner(corpus=corpus, runs=[part])._repr_html_()
    assert "Not finished" in page
    assert "Model &lt;smollm2-135m&gt;: 4 of 40" in page


def test_results_take_the_gap_between_the_levels_apart(
    runs: list[Predictions], tables: Tables
) -> None:
    [steps] = [table for table in tables("results", runs) if "Repeats dropped" in table.grid.titles]
    values = steps.frame.pivot_table(index=["system", "over"], columns="measure", values="value")
    gap = values["dialogue"] - values["turn"]
    assert {run.record.name for run in runs} == set(values.index.get_level_values("system"))
    assert (values["turn_forgiven"] + values["repeats_dropped"]).tolist() == pytest.approx(
        gap.tolist()
    )
