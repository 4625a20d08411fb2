"""Tables, read back by an XML parser, the standard HTML parser and the csv module."""

from __future__ import annotations

import csv
import io
import math
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.reporting.tables import (
    DASH,
    MISSING,
    UNDEFINED,
    Cell,
    Column,
    Row,
    Table,
    count,
    decimal,
    mark_best,
    percent,
    text,
)


class Parsed(HTMLParser):
    """Collects tags with their attributes and the text of each th and td."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[str] = []
        self._open = 0
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("th", "td"):
            self.cells.append("")
            self._open += 1

    def handle_endtag(self, tag: str) -> None:
        self._open -= tag in ("th", "td")

    def handle_data(self, data: str) -> None:
        if self._open:
            self.cells[-1] += data


def scores_table() -> Table:
    rows = [
        Row((text("keyword"), count(600), percent(0.2104, (0.18, 0.2449))), "All"),
        Row((text("tfidf"), count(600), percent(0.2504)), "All"),
        Row((text("small"), count(12), percent(None)), "Sample"),
    ]
    return Table(
        "Scores of three models.",
        (Column("Model", "text"), Column("Dialogues"), Column("F1 (%)")),
        tuple(rows),
        ("A note with `code`.",),
    )


def test_an_xml_parser_reads_the_shown_values_back_from_the_html() -> None:
    root = ElementTree.fromstring(f"<div>{scores_table()._repr_html_()}</div>")
    lines = [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]
    assert lines == [
        ["Model", "Dialogues", "F1 (%)"],
        ["All"],
        ["keyword", "600", f"21.0 18.0{DASH}24.5"],
        ["tfidf", "600", "25.0"],
        ["Sample"],
        ["small", "12", MISSING],
    ]


def test_the_html_has_a_caption_scopes_and_no_empty_header() -> None:
    parsed = Parsed(scores_table()._repr_html_())
    headers = [attributes for tag, attributes in parsed.tags if tag == "th"]
    assert [h["scope"] for h in headers] == ["col"] * 3 + [
        "rowgroup",
        "row",
        "row",
        "rowgroup",
        "row",
    ]
    assert all(cell.strip() for cell in parsed.cells)
    region = next(attributes for tag, attributes in parsed.tags if tag == "div")
    caption = next(attributes for tag, attributes in parsed.tags if tag == "caption")
    assert region["aria-labelledby"] == caption["id"]
    assert region["tabindex"] == "0"
    assert region["class"] == "cradle-scroll"


def test_the_interval_stands_in_small_type_beside_its_score() -> None:
    assert f'21.0 <span class="ci">18.0{DASH}24.5</span>' in scores_table()._repr_html_()


def test_code_in_a_note_is_marked_and_the_rest_is_escaped() -> None:
    table = Table("c", (Column("a"),), (), ("1 < 2 and `a<b`",))
    assert "<p>1 &lt; 2 and <code>a&lt;b</code></p>" in table._repr_html_()


@settings(deadline=None, max_examples=100)
@given(st.lists(st.text(max_size=20), min_size=3, max_size=3))
def test_no_text_can_become_markup(parts: list[str]) -> None:
    caption, title, cell = (f"<script>{part}</script>" for part in parts)
    table = Table(caption, (Column(title),), (Row((text(cell),), group=cell),), (cell,))
    allowed = {"div", "table", "caption", "span", "thead", "tbody", "tr", "th", "td", "p", "code"}
    assert {tag for tag, _ in Parsed(table._repr_html_()).tags} <= allowed


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.text(st.characters(exclude_characters="\x00"), max_size=20), min_size=1, max_size=4)
)
def test_csv_gives_every_text_back(names: list[str]) -> None:
    table = Table(
        "c", (Column("a", "text"), Column("b")), tuple(Row((text(n), count(1))) for n in names)
    )
    lines = list(csv.reader(io.StringIO(table.to_csv(), newline="")))
    assert [line[0] for line in lines[1:]] == names


def test_csv_keeps_unrounded_values_and_bounds() -> None:
    lines = list(csv.reader(io.StringIO(scores_table().to_csv())))
    assert lines[0] == ["group", "Model", "Dialogues", "F1 (%)", "F1 (%) low", "F1 (%) high"]
    assert lines[1][:3] == ["All", "keyword", "600"]
    assert [float(x) for x in lines[1][3:]] == pytest.approx([21.04, 18.0, 24.49])
    assert lines[3][3:] == [MISSING, "", ""]


def test_markdown_has_one_pipe_more_than_columns_in_each_line() -> None:
    table = Table(
        "c|d", (Column("a|b", "text"), Column("n")), (Row((text("x|y"), Cell("1", best=True))),)
    )
    lines = [line for line in table.to_markdown().splitlines() if line.startswith("|")]
    assert [line.replace(r"\|", "").count("|") for line in lines] == [3, 3, 3]
    assert lines[-1] == r"| x\|y | **1** |"


def test_the_best_value_is_marked_as_shown_with_ties_and_without_missing_ones() -> None:
    # 20.04 and 19.96 are both shown as 20.0, so a reader can't tell them apart.
    shares = [0.2004, 0.1996, None, 0.1, math.nan]
    rows = mark_best([Row((text("m"), percent(share))) for share in shares], [1])
    assert [row.cells[1].best for row in rows] == [True, True, False, False, False]


def test_a_column_without_a_contest_has_no_best() -> None:
    rows = mark_best([Row((text("m"), percent(share))) for share in (0.5, None)], [1])
    assert not any(row.cells[1].best for row in rows)
    rows = mark_best([Row((text("m"), percent(0.0))) for _ in range(3)], [1])
    assert not any(row.cells[1].best for row in rows)


@pytest.mark.parametrize(
    ("cell", "shown"),
    [
        (count(8975), "8,975"),
        (percent(0.8447), "84.5"),
        (percent(1.0, (1.0, 1.0)), "100.0"),
        (percent(None), MISSING),
        (percent(math.nan), UNDEFINED),
        (decimal(14.958), "14.96"),
        (decimal(None), MISSING),
        (decimal(math.nan), UNDEFINED),
    ],
)
def test_numbers_are_shown_with_sensible_precision(cell: Cell, shown: str) -> None:
    assert cell.text == shown


def test_a_bound_that_is_not_defined_leaves_the_score_alone() -> None:
    assert percent(0.5, (math.nan, 0.7)).interval_text == ""


@pytest.mark.parametrize(
    ("caption", "titles", "cells"), [("", ["a"], 1), ("c", [" "], 1), ("c", ["a"], 2)]
)
def test_a_table_without_caption_or_title_or_with_ragged_rows_is_refused(
    caption: str, titles: list[str], cells: int
) -> None:
    with pytest.raises(ValueError, match=r"needs a caption|cells for"):
        Table(caption, tuple(map(Column, titles)), (Row((text("x"),) * cells),))
