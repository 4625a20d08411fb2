"""Tables and figures of the annotation pages, compared with a study counted by hand."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import cradle_lib.scoring
from cradle_lib.annotation import write_annotations
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.table import Table
from cradle_lib.display.theme import Picture
from cradle_lib.labels import LABELS
from cradle_lib.scoring.analyses.explorer_data import explorer_data

from ..annotation.hand_study import hand_study
from .test_notebooks import show

Page = Callable[[str], list[Any]]


def run(name: str, folder: Path) -> list[Any]:
    """Runs the notebook of a page on files of the hand-counted study; returns its results."""
    study = hand_study()
    corpus, annotations = folder / "hand.csv", folder / "annotations.csv"
    rows = [(t.turn_id, f"{t.speaker}: {t.text}", "none") for t in study.corpus.turns]
    pd.DataFrame(rows, columns=["turn_id", "text", "labels"]).to_csv(corpus, index=False)
    write_annotations(study, annotations)
    values = {"corpus": str(corpus), "annotations": str(annotations), "draws": 0}
    return show(name, values)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Page:
    """A function that returns the tables and pictures of a page on the hand-counted study."""

    @cache
    def make(name: str) -> list[Any]:
        found = run(name, tmp_path_factory.mktemp("study"))
        return [item for item in found if isinstance(item, Table | Picture)]

    return make


def lines(table: Table) -> dict[tuple[str, str], dict[str, str]]:
    """Returns the cells of a table by group and name of the row."""
    titles = table.titles
    return {
        (group, str(row[0])): dict(zip(titles, map(str, row), strict=True))
        for group, row in zip(table.groups, table.rows, strict=True)
    }


def test_given_labels_and_exact_matches_are_beside_published_values(page: Page) -> None:
    _, given, same, *_, slips = page("agreement")
    assert given.frame[["annotator", "turns", "labels", "alerts"]].to_numpy().tolist() == [
        ["A", 8, 3, 2], ["B", 8, 2, 1], ["C", 8, 2, 2], ["D", 8, 2, 1],
    ]  # fmt: skip
    first, second = lines(same).values()
    # Team 1: 7 of 8 turns and 5 of 6 user turns are equal, and two of three labelled turns.
    assert first["All turns"] == "87.50"
    assert first["User turns"] == "83.33"
    assert first["All turns: published"] == "96.78"
    assert first["Turns without a label"] == "5"
    assert second["All turns"] == "62.50"
    assert [group for group, _ in lines(same)] == ["Team 1: A and B", "Team 2: C and D"]
    assert set(slips.frame["annotator"]) == set("ABCDS")


def test_published_ranges_are_beside_those_of_the_study(page: Page) -> None:
    _, _, _, *labels, ranges, units = page("agreement")[:7]
    found = {name: row for (_, name), row in lines(ranges).items()}
    one, two, published = "Team 1, round 1", "Team 2, round 1", "Team 1, published"
    assert len(found) == 8
    exact = found["Exact match, all turns (%)"]
    assert (exact[one], exact[published]) == ("87.50", "96.78")
    # Team 1 on its three labelled turns: alerts 1 of 2, self-harm 1 of 1.
    assert found["Jaccard of alerts"][one] == "0.50 to 0.50"
    confirms = found["Jaccard of confirms, except SI_passive"]
    assert (confirms[one], confirms[two]) == ("1.00 to 1.00", "0.00 to 0.00")
    assert confirms[published] == "0.67 to 1.00"
    # Nobody gave this label, so that there is only the published value.
    passive = found["Jaccard of SI_passive_ongoing"]
    assert (passive[one], passive[published]) == ("\N{EN DASH}", "0.30")
    # Alert: 2 of 3 equal, chance (2 x 1 + 1 x 2) / 9 = 4/9: kappa 0.4. Self-harm: all equal.
    assert found["Kappa of each label"][one] == "0.40 to 1.00"
    by_label = {
        (table.caption.partition(":")[0], label): row
        for table in labels
        for (_, label), row in lines(table).items()
    }
    assert len(by_label) == 2 * (len(LABELS) + 1)
    alert = by_label["Team 1, round 1", "alert_ongoing"]
    assert (alert["Both"], alert["Only the first"], alert["Only the second"]) == ("1", "1", "0")
    assert (alert["Jaccard"], alert["Jaccard: published"]) == ("0.50", "0.42 to 0.69")
    exact_match = lines(units)["Team 1: A and B", "Exact match"]
    assert list(exact_match.values())[1:] == ["0.67", "0.83", "0.88"]


def test_outcomes_and_deciding_votes_are_counted(page: Page) -> None:
    items = page("agreement")
    first = next(n for n, item in enumerate(items) if "Outcomes of adj" in item.caption)
    flow, outcomes, decided, *others = items[first:]
    [trail] = [item for item in others if "d0003" in item.caption]
    counted = outcomes.frame.query("team == 'All'")
    assert [*counted["value"]] == [1, 1, 1, 0, 1]
    paper = outcomes.frame.query("team == 'Published'").set_index("outcome")["published"]
    assert [paper[outcome] for outcome in counted["outcome"]] == ["323", "132", "11", "48", "86"]
    assert outcomes.frame.query("team == 'Team 1'")["value"].tolist() == [1, 1, 0, 0, 0]
    # d0000: agreement; d0001: majority; d0002: the senior, against two votes; d0003: rejected.
    by_label = {name: [*row.values()][1:] for (_, name), row in lines(decided).items()}
    assert by_label["alert_ongoing"] == ["1", "1", "1", "3"]
    assert by_label["confirm_SH_ongoing"] == ["1", "0", "1", "0"]
    assert by_label["all labels"] == ["2", "1", "2", "3"]
    assert len(by_label) == len(LABELS) + 1
    assert "Bars of 4 dialogues" in flow.alt
    assert "exact agreement 1; resolved 2:1 1; final mismatch, labels agree 3:0 1" in flow.alt
    assert [tuple(map(str, row)) for row in trail.rows] == [
        ("1", "alert_ongoing", "C", "senior", "rejected"),
        ("1", "confirm_SH_ongoing", "D S", "senior", "gold"),
    ]
    assert trail.notes[0] == (
        "Who voted: C (annotator), D (annotator), B (adjudicator), S (senior)."
    )


def test_the_alternative_text_of_confusion_has_its_counts(page: Page) -> None:
    items = page("agreement")
    last = next(n for n, item in enumerate(items) if "most frequent diff" in item.caption)
    one, two, often = items[last - 2 : last + 1]
    # B gave 2 of A's 3 labels, and nothing for one. D gave SH instead of one alert of C.
    assert "Of 3 labels of A, B gave 2 on the same turn, nothing for 1 and another for 0" in one.alt
    assert "Of 2 labels of C, D gave 0 on the same turn, nothing for 1 and another for 1" in two.alt
    assert len(often.rows) == 1 + 3


@pytest.mark.parametrize(
    ("explorer", "own", "linked"),
    [("surrogate", False, True), ("hub", False, False), ("surrogate", True, False)],
)
def test_only_annotators_of_the_explorer_are_linked(
    page: Page, explorer: str, own: bool, linked: bool
) -> None:
    found = page("agreement") if own else show("agreement", {"draws": 0, "explorer": explorer})
    text = "".join(item._repr_html_() for item in found)
    assert ("explore.html#v=annotators" in text) == linked
    assert ("gold labels are those of its plans" in text) != own


@pytest.mark.parametrize("some", [True, False])
def test_the_explorer_explains_a_switch_only_if_there_is_one(
    some: bool, corpus: Corpus, runs: list[Predictions], monkeypatch: pytest.MonkeyPatch
) -> None:
    people = explorer_data(corpus, runs[:1]) if some else None
    monkeypatch.setattr(cradle_lib.scoring, "annotators_data", lambda *_, **__: people)
    text = "".join(map(repr, show("explore", {}, corpus, runs)))
    assert ("Show: Annotators" in text) == some
