"""Tables of a corpus: every published number stands beside what was counted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.corpus.disclosure import labels_by_scenario
from cradle_lib.corpus.release import build_corpus
from cradle_lib.corpus.statistics import Statistics, corpus_statistics
from cradle_lib.published import published_table
from cradle_lib.reporting.corpus_tables import (
    label_table,
    length_table,
    size_table,
    training_table,
)
from cradle_lib.reporting.disclosure_tables import mapping_table, scenario_table, timing_table
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import MISSING, Table


@pytest.fixture(scope="module")
def statistics(corpus: Corpus) -> Statistics:
    return corpus_statistics(corpus)


def column(table: Table, title: str) -> list[str]:
    place = [c.title for c in table.columns].index(title)
    return [row.cells[place].text for row in table.rows]


def test_every_published_size_stands_beside_the_count(statistics: Statistics) -> None:
    table = size_table(statistics, "c")
    shown = {word for text in column(table, "Published") for word in text.split(" ± ")}
    stated = {v.value for key, v in published_table().items() if key.startswith("corpus.")}
    assert {float(word.replace(",", "")) for word in shown} == stated
    assert (
        dict(zip(column(table, "Quantity"), column(table, "Where"), strict=True))[
            "User turns, on which a model is asked"
        ]
        == "Sec 4.3"
    )


def test_sizes_are_those_of_the_corpus(corpus: Corpus, statistics: Statistics) -> None:
    shown = column(size_table(statistics, "c"), "This corpus")
    # 40 dialogues of nine rows; the ninth continues the eighth, so four user turns each.
    assert shown[:4] == ["40", "360", "160", "9.00"]
    labels = [turn.mask.bit_count() for turn in corpus.turns]
    assert shown[4] == str(sum(labels))
    assert shown[5] == f"{statistics.ongoing_percent:.1f}"


def test_label_counts_stand_beside_those_of_the_real_test_split(statistics: Statistics) -> None:
    table = label_table(statistics, "c")
    stated = column(table, "Real test split, user turns")
    # The column sums to the 711 labels on user turns of RELEASE's independent count.
    assert sum(map(int, stated[:-1])) == int(stated[-1]) == 711
    counted = column(table, "All turns")
    assert sum(map(int, counted[:-1])) == int(counted[-1]) == statistics.labels
    assert sum(map(float, column(table, "Share (%)")[:-1])) == pytest.approx(100, abs=1)


def test_lengths_add_up_to_all_dialogues(statistics: Statistics) -> None:
    table = length_table(statistics, "c")
    assert sum(map(int, column(table, "Dialogues")[:-1])) == 40
    assert column(table, "Published")[-1] == "14.96"


def test_training_splits_stand_beside_their_published_sizes(statistics: Statistics) -> None:
    table = training_table({"train": statistics, "dev": statistics}, "c")
    assert column(table, "Published (train)")[:2] == ["3,058", "48,557"]
    assert column(table, "Published (dev)")[:2] == ["420", "6,679"]
    assert {"1.28–1.31", "26–31", "30", MISSING} <= set(column(table, "Published (dev)"))  # noqa: RUF001


def test_scenarios_have_name_count_and_published_count(statistics: Statistics) -> None:
    table = scenario_table(statistics, "c")
    # Sec 3.1: 96, 97, 91, 67, 56, 97 and 96 dialogues.
    assert column(table, "Published") == ["96", "97", "91", "67", "56", "97", "96"]
    assert sum(map(int, column(table, "Dialogues"))) == 40
    assert column(table, "Dialogues")[3:] == ["0", "0", "0", "0"]


def test_scenarios_of_ones_own_stand_below_those_of_the_paper() -> None:
    rows = [(0, "User: Hm.", "confirm_SH_past")] * 3
    about = {"scenario": ["School", "S2", "School"], "timing": ["first week", "late", "late"]}
    corpus = build_corpus(rows, "c", about=about)
    table = scenario_table(corpus_statistics(corpus), "c")
    assert column(table, "Scenario") == [f"S{n}" for n in range(1, 8)] + ["School"]
    assert column(table, "Dialogues") == ["0", "1", "0", "0", "0", "0", "0", "2"]
    assert column(table, "Published")[-1] == MISSING
    mapping = mapping_table(labels_by_scenario(corpus), "c")
    assert column(mapping, "School").count("2") == column(mapping, "S2").count("1") == 1
    timings = timing_table(corpus_statistics(corpus), "c")
    assert column(timings, "Timing")[-1] == "first week"


def test_what_a_corpus_does_not_know_is_a_dash_and_said(statistics: Statistics) -> None:
    silent = replace(statistics, scenarios=None, timings=None)
    table = scenario_table(silent, "the release")
    assert set(column(table, "Dialogues")) == {MISSING}
    assert any("the release does not say" in note for note in table.notes)
    for notice in (mapping_table(None, "the release"), timing_table(silent, "the release")):
        assert isinstance(notice, Notice)
        assert "the release does not say" in notice.message


def test_the_mapping_shows_ongoing_and_past_confirms_under_headings(corpus: Corpus) -> None:
    found = labels_by_scenario(corpus)
    table = mapping_table(found, "c")
    assert [row.group for row in table.rows] == ["ongoing"] * 7 + ["past"] * 7
    assert found is not None
    shown = {row.cells[0].text: row.cells[1].text for row in table.rows}
    assert shown["SH_past"] == str(found["S1"].get("confirm_SH_past", 0))


def test_timings_run_from_early_to_late(statistics: Statistics) -> None:
    table = timing_table(statistics, "c")
    assert column(table, "Timing") == ["early", "mid", "late"]
    assert sum(map(int, column(table, "Dialogues"))) == 40
