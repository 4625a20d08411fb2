"""Tables and figures of the annotation pages: counts by hand, and published values beside ours."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cradle_lib import paths
from cradle_lib.annotation import Annotations, adjudicate, write_annotations
from cradle_lib.annotation.interface import HOTKEYS
from cradle_lib.display.table import Table
from cradle_lib.display.theme import Picture
from cradle_lib.labels import LABELS
from cradle_lib.reporting.adjudication_tables import (
    decision_table,
    outcome_counts_table,
    trail_table,
)
from cradle_lib.reporting.annotation_figures import (
    adjudication_figure,
)
from cradle_lib.reporting.annotation_tables import (
    interface_table,
)
from cradle_lib.reporting.tables import Table as OldTable

from ..annotation.hand_study import hand_study
from .test_notebooks import show

Page = Callable[[str], list[Any]]


@pytest.fixture(scope="module")
def study() -> Annotations:
    return hand_study()


@pytest.fixture
def page(study: Annotations, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Page:
    """Runs the notebook of a page over the study, and gives the tables and pictures on it."""
    corpus, annotations = tmp_path / "hand.csv", tmp_path / "annotations.csv"
    rows = [(t.turn_id, f"{t.speaker}: {t.text}", "none") for t in study.corpus.turns]
    pd.DataFrame(rows, columns=["turn_id", "text", "labels"]).to_csv(corpus, index=False)
    write_annotations(study, annotations)
    values = {"corpus": str(corpus), "annotations": str(annotations), "draws": 0}

    def run(name: str) -> list[Any]:
        found = show(paths.NOTEBOOKS / f"{name}.ipynb", values, monkeypatch)
        return [item for item in found if isinstance(item, Table | Picture)]

    return run


def rows(table: OldTable) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(table.to_csv())))


def lines(table: Table) -> dict[tuple[str, str], dict[str, str]]:
    """What is seen in a table: its cells by heading of the group and name of the row."""
    titles = table.grid.titles
    return {
        (group, str(row[0])): dict(zip(titles, map(str, row), strict=True))
        for group, row in zip(table.grid.groups, table.grid.rows, strict=True)
    }


def test_what_annotators_gave_stands_beside_what_is_published(page: Page) -> None:
    given, same, slips = page("annotation-statistics")
    assert given.frame[["annotator", "turns", "labels", "alerts"]].to_numpy().tolist() == [
        ["A", 8, 3, 2], ["B", 8, 2, 1], ["C", 8, 2, 2], ["D", 8, 2, 1],
    ]  # fmt: skip
    first, second = lines(same).values()
    # Team 1: 7 of 8 turns are equal, 5 of 6 user turns; two labelled turns are the same.
    assert first["All turns"] == "87.50"
    assert first["User turns"] == "83.33"
    assert first["All turns: published"] == "96.78"
    assert first["Turns without a label"] == "5"
    assert second["All turns"] == "62.50"
    assert [group for group, _ in lines(same)] == ["Team 1: A and B", "Team 2: C and D"]
    assert set(slips.frame["annotator"]) == set("ABCDS")


def test_every_stated_range_stands_beside_what_is_found(page: Page) -> None:
    _, labels, ranges, units = page("agreement")
    found = lines(ranges)
    here, otherwise = "As the ranges are read here", "Read otherwise"
    one, two = "Team 1, round 1", "Team 2, round 1"
    assert len({name.removesuffix(": published") for _, name in found}) == 8
    exact = "Exact match, all turns (%)"
    assert found[here, exact][one] == "87.50"
    stated = found[here, f"{exact}: published"]
    assert (stated[one], stated[two]) == ("96.78", "91.69")
    assert found[otherwise, "Exact match, user turns (%)"][one] == "83.33"
    # Team 1 on its three labelled turns: alerts 1 of 2, self-harm 1 of 1.
    assert found[here, "Jaccard of alerts"][one] == "0.50 to 0.50"
    confirms = found[here, "Jaccard of confirms but passive"]
    assert (confirms[one], confirms[two]) == ("1.00 to 1.00", "0.00 to 0.00")
    assert found[here, "Jaccard of confirms but passive: published"][one] == "0.67 to 1"
    # Nobody gave it, so that what the paper states stands alone.
    assert (here, "Jaccard of passive, ongoing") not in found
    assert found[here, "Jaccard of passive, ongoing: published"][one] == "0.3"
    # Alert: 2 of 3 the same, chance (2 x 1 + 1 x 2) / 9 = 4/9: 0.4. Self-harm: all the same.
    assert found[otherwise, "Kappa of each label"][one] == "0.40 to 1.00"
    by_label = lines(labels)
    assert len(by_label) == 2 * (len(LABELS) + 1)
    alert = by_label["Team 1, round 1", "alert_ongoing"]
    assert (alert["Both"], alert["Only one"], alert["Only the other"]) == ("1", "1", "0")
    assert (alert["Jaccard"], alert["Jaccard: published"]) == ("0.50", "0.42 to 0.69")
    assert by_label[two, "confirm_SI_passive_past"]["Jaccard: published"] == "0.3"
    assert by_label[two, "confirm_DV_past"]["Jaccard: published"] == "0.5 to 1"
    assert by_label[two, "all labels"]["Cohen's kappa: published"] == "0.51 to 0.75"
    exact_match = lines(units)["Team 1: A and B", "Exact match"]
    assert list(exact_match.values())[1:] == ["0.67", "0.83", "0.88"]


def test_outcomes_and_deciders_are_counted(study: Annotations) -> None:
    result = adjudicate(study)
    counted = {row["Outcome"]: row for row in rows(outcome_counts_table(result))}
    assert [counted[name]["All"] for name in counted] == ["1", "1", "1", "0", "1"]
    assert [counted[name]["Published"] for name in counted] == [
        "323.0", "132.0", "11.0", "48.0", "86.0",
    ]  # fmt: skip
    decided = {row["Label"]: row for row in rows(decision_table(result))}
    # d0000: both; d0001: the majority; d0002: the senior, not the other two; d0003: rejected.
    assert list(decided["alert_ongoing"].values())[1:] == ["1", "1", "1", "3"]
    assert list(decided["SH_ongoing"].values())[1:] == ["1", "0", "1", "0"]


def test_the_trail_of_a_conflict_names_everybody(study: Annotations) -> None:
    table = trail_table(adjudicate(study))
    assert "d0003" in table.caption
    assert [tuple(row.values()) for row in rows(table)] == [
        ("Turn 0", "alert_ongoing", "C", "Senior", "Rejected"),
        ("Turn 0", "SH_ongoing", "D, S", "Senior", "Gold"),
    ]
    assert table.notes[0] == (
        "Who voted: C (annotator), D (annotator), B (adjudicator), S (senior)."
    )
    calm = Annotations.of(study.corpus, (e for e in study.entries if e.dialogue == "d0000"))
    assert rows(trail_table(adjudicate(calm))) == []


def test_the_interface_is_listed_with_its_keys() -> None:
    found = rows(interface_table())
    assert len(found) == len(LABELS) / 2
    keys = [row[state] for row in found for state in ("Ongoing", "Past")]
    assert keys == [HOTKEYS[label] for label in LABELS]
    assert (found[0]["Button"], found[1]["Button"]) == ("Alert", "Confirm SI passive")


def test_the_flow_says_in_words_what_it_draws(study: Annotations) -> None:
    figure = adjudication_figure(adjudicate(study))
    assert "Alluvial drawing of 4 dialogues" in figure.alt
    assert "1 agree exactly; the vote resolves 1 of the rest; the senior decides 2" in figure.alt
    text = figure.light.decode()
    for step in ("team 1", "exact agreement", "resolved 2:1", "labels agree 3:0", "turn conflict"):
        assert f">{step}<" in text
    assert "labels agree 2:1" not in text
    # One ribbon between neighbouring columns on each dialogue's way: 1 + 2 + 3 + 3.
    assert len(re.findall(r'<path d="M[^"]*C[^"]*C[^"]*z', text)) == 9
    assert figure.dark != figure.light


def test_confusion_says_in_words_what_it_draws(page: Page) -> None:
    one, two, often = page("annotator-confusion")
    # A gave 3 labels: B gave 2 of them too, and nothing for one. C and D: SH for an alert.
    assert "Of 3 labels of A, B gave 2 on the same turn, nothing for 1 and another for 0" in one.alt
    assert "Of 2 labels of C, D gave 0 on the same turn, nothing for 1 and another for 1" in two.alt
    assert len(often.grid.rows) == 1 + 3
