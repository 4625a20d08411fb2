"""Tables, checked with parsers of XML, HTML and CSV."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib import paths
from cradle_lib.display.cells import listed
from cradle_lib.display.choice import Choice
from cradle_lib.display.notice import PAGE, Notice
from cradle_lib.display.table import NO_INTERVAL, RESAMPLED, Table, show
from cradle_lib.display.theme import show_figure
from cradle_lib.errors import BookError

from .markup import Markup

DASH = "\N{EN DASH}"
NAN = math.nan
ALLOWED = {
    *["div", "table", "caption", "span", "thead", "tbody", "tr", "th", "td", "p", "code", "a"]
}
# Text with special characters of HTML, CSV and terminals.
HOSTILE = st.text(
    st.one_of(
        st.sampled_from("<>&\"'`\\{}$%#_^~[*,;\n\r\t\x1b=@|\N{EN DASH}"),
        st.characters(codec="utf-8"),
    ),
    max_size=12,
)
LAYOUT: dict[str, Any] = {"rows": "system", "columns": "score", "best": "system"}


def lines(table: Table | Notice) -> list[list[str]]:
    """Returns the cells of a table's markup by row."""
    root = ElementTree.fromstring(f"<div>{table._repr_html_()}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]


def marked(table: Table | Notice) -> set[str]:
    root = ElementTree.fromstring(f"<div>{table._repr_html_()}</div>")
    cells = (cell for cell in root.iter("td") if "best" in cell.get("class", "").split())
    return {"".join(cell.itertext()) for cell in cells}


@pytest.fixture
def scores() -> pd.DataFrame:
    """Scores of two runs over all dialogues and one over a sample, and one published score."""
    rows = [
        ("600 dialogues", "tfidf", "micro_f1", 0.2504, 0.22, 0.28, None, "a"),
        ("600 dialogues", "tfidf", "macro_f1", 0.1, 0.05, 0.15, None, "a"),
        ("600 dialogues", "keyword", "micro_f1", 0.2104, 0.18, 0.2449, None, "a"),
        ("600 dialogues", "keyword", "macro_f1", 0.3, NAN, NAN, None, "a"),
        ("12 dialogues", "small", "micro_f1", 0.9, 0.5, 1.0, None, "b"),
        ("12 dialogues", "small", "macro_f1", NAN, NAN, NAN, None, "b"),
        ("", "Claude, published", "micro_f1", NAN, NAN, NAN, "47.10", None),
    ]
    names = ["over", "system", "score", "value", "low", "high", "published", "signature"]
    return pd.DataFrame(rows, columns=names)


def test_each_row_of_a_long_frame_becomes_a_cell(scores: pd.DataFrame) -> None:
    shown = show(scores, "Scores.", **LAYOUT, group="over")
    assert lines(shown) == [
        ["System", "Micro F1", "Macro F1"],
        ["600 dialogues"],
        ["tfidf", "25.0 [22.0, 28.0]", "10.0 [5.0, 15.0]"],
        ["keyword", "21.0 [18.0, 24.5]", "30.0"],
        ["12 dialogues"],
        ["small", "90.0 [50.0, 100.0]", DASH],
        ["Claude, published", "47.10", DASH],
    ]
    # The sample is the only one in its group, and published values are not compared.
    assert marked(shown) == {"25.0 [22.0, 28.0]", "30.0"}
    assert shown._repr_html_().count('class="num published"') == 1
    # As text.
    text = repr(shown).splitlines()
    assert text[0] == "Scores."
    assert re.search(r"tfidf +25.0 \[22.0, 28.0\] +10.0 \[5.0, 15.0\]$", text[2])
    assert text[-2:] == ["Signature `a`.", "Signature `b`."]


@pytest.mark.parametrize(
    ("signatures", "best"),
    [
        (None, {"90.0 [50.0, 100.0]", "30.0"}),
        (["a", "a", "b"], {"25.0 [22.0, 28.0]", "30.0"}),
        # Systems with different decoding may be compared.
        (["x|dec:free|n:9", "x|dec:constrained|n:9", "x|n:8"], {"25.0 [22.0, 28.0]", "30.0"}),
    ],
)
def test_only_values_with_the_same_signature_are_compared(
    scores: pd.DataFrame, signatures: list[str] | None, best: set[str]
) -> None:
    systems = ["tfidf", "keyword", "small"]
    named = dict(zip(systems, signatures or [""] * 3, strict=True))
    scores["signature"] = scores["system"].map(named)
    # A column that describes rows is not a condition.
    scores["lost"] = scores["system"].map({"tfidf": 1, "keyword": 2})
    assert marked(show(scores, "c", **LAYOUT | {"rows": ["system", "lost"]})) == best
    transposed = show(scores, "c", rows="score", columns="system", best="system")
    assert marked(transposed) == best
    assert lines(transposed)[0] == ["Score", "tfidf", "keyword", "small", "Claude, published"]


@pytest.mark.parametrize(
    ("values", "best"),
    [
        # 20.04 and 19.96 are both shown as 20.0.
        ([0.2004, 0.1996, NAN, 0.1], {"20.0"}),
        ([0.5, NAN], set()),
        ([0.0, 0.0], set()),
        ([math.inf, 0.1, 0.2], {"20.0"}),
    ],
)
def test_the_best_value_is_marked_if_rounded_values_differ(
    values: list[float], best: set[str]
) -> None:
    frame = pd.DataFrame({"system": range(len(values)), "score": "s", "value": values})
    assert marked(show(frame, "c", **LAYOUT)) == best
    # A system that is excluded from the contest is not marked.
    least = frame.assign(competes=frame["value"] != max(values))
    assert marked(show(least, "c", **LAYOUT)) <= {"10.0", "20.0"}


def test_values_of_score_and_measure_are_words_and_others_stay() -> None:
    names = ["micro_f1", "f1", "exact_match", "micro_f2"]
    frame = pd.DataFrame({"label": "alert_past", "measure": names, "value": 0.5})
    titles = ["Micro F1", "F1", "Exact match", "Micro F2"]
    assert lines(show(frame, "c", rows="label", columns="measure"))[0] == ["Label", *titles]
    scored = show(frame.rename(columns={"measure": "score"}), "c", rows="label", group="score")
    assert [row for row in lines(scored) if len(row) == 1] == [[title] for title in titles]


def test_columns_in_levels_have_two_rows_of_headings(scores: pd.DataFrame) -> None:
    both = pd.concat([scores.iloc[:4].assign(level=level) for level in ("turn", "dialogue")])
    shown = show(both, "c", rows="system", columns=["level", "score"])
    assert lines(shown)[:2] == [
        ["", "turn", "dialogue"],
        ["System", "Micro F1", "Macro F1", "Micro F1", "Macro F1"],
    ]
    over = [kept for kept in Markup(shown._repr_html_()).all("th") if kept["scope"] == "colgroup"]
    assert [kept["colspan"] for kept in over] == ["2", "2"]


def test_rows_may_have_units_and_published_values() -> None:
    frame = pd.DataFrame(
        {
            "quantity": ["Dialogues", "Ongoing (%)", "Jaccard", "Unstated"],
            "value": [600, 0.631, NAN, 3],
            "low": [NAN, NAN, 0.5, NAN],
            "high": [NAN, NAN, 0.75, NAN],
            "published": ["600", "63", "0.53 to 0.70", None],
            "unit": ["count", "share", "number", "count"],
        }
    )
    assert lines(show(frame, "c")) == [
        ["Quantity", "Value", "Published"],
        ["Dialogues", "600", "600"],
        ["Ongoing (%)", "63.1", "63"],
        ["Jaccard", "0.50 to 0.75", "0.53 to 0.70"],
        ["Unstated", "3", DASH],
    ]


def test_columns_of_a_frame_without_estimates_are_formatted() -> None:
    frame = pd.DataFrame(
        {
            "n": [8975, 12],
            "some": [1.0, NAN],
            "p": [0.0004, 0.25],
            "change": [0.0123, -0.00001],
            "hours": [0.012345, 1234.5],
            "ok": [True, False],
            "text": ["a_b", None],
            # numpy's scalars occur in columns of mixed types.
            "mixed": [np.True_, np.int64(1234)],
        },
        index=pd.Index(["first", "second"], name="run"),
    )
    formats = {"change": "points", "hours": "{:.3g}"}
    assert lines(show(frame, "c", formats=formats, titles={"n": "Turns"})) == [
        ["Run", "Turns", "Some", "p", "Change", "Hours", "Ok", "Text", "Mixed"],
        ["first", "8,975", "1", "< 0.001", "+1.2", "0.0123", "yes", "a_b", "yes"],
        ["second", "12", DASH, "0.250", "-0.0", "1.23e+03", "no", DASH, "1,234"],
    ]


def test_rows_have_the_order_of_appearance_or_of_categories() -> None:
    frame = pd.DataFrame(
        {
            "system": ["z", "z", "a", "a"],
            "scope": ["any", "alert"] * 2,
            "score": "s",
            "value": [1, 2, 3, 4],
            "over": ["x", "y", "x", "y"],
        }
    )
    layout: dict[str, Any] = {"rows": ["system", "scope"], "columns": "score"}
    plain = show(frame, "c", **layout)
    assert [line[:2] for line in lines(plain)[1:]] == frame[["system", "scope"]].to_numpy().tolist()
    frame["scope"] = pd.Categorical(frame["scope"], ["alert", "any", "unused"])
    assert lines(show(frame, "c", **layout))[1:] == [
        ["z", "alert", "2"], ["z", "any", "1"], ["a", "alert", "4"], ["a", "any", "3"],
    ]  # fmt: skip
    # All rows of a group are below one heading, independent of their order in the frame.
    grouped = show(frame, "c", **layout, group="over")
    assert [line[0] for line in lines(grouped)[1:]] == ["x", "z", "a", "y", "z", "a"]


def test_infinite_and_missing_bounds_have_no_digits() -> None:
    frame = pd.DataFrame(
        {
            "run": list("abc"),
            "value": [2.0, math.inf, 1.0],
            "low": [1.0, math.inf, NAN],
            "high": [math.inf, math.inf, 2.0],
        }
    )
    assert lines(show(frame, "c", formats="number:0"))[1:] == [
        ["a", "2 [1, \N{INFINITY}]"],
        ["b", "\N{INFINITY}"],
        ["c", "1"],
    ]


def test_downloads_are_named_by_page_and_order(
    scores: pd.DataFrame, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PAGE, "files", 0)
    names = []
    for page in ("", "results"):
        monkeypatch.setenv(paths.PAGE, page)
        chosen = show(scores, "c", **LAYOUT, choose="over", group="over")
        drawing = show_figure(lambda data: data.plot(), scores[["value"]], alt="a", caption="c")
        names += re.findall('download="([^"]+)"', chosen._repr_html_() + drawing._repr_html_())
    tables = [f"table-{n}.csv" for n in range(1, 5)]
    assert names == [*tables, *(f"results-{n}.csv" for n in range(5, 9))]


def test_the_markup_of_a_table_is_accessible(scores: pd.DataFrame) -> None:
    shown = show(scores, "All <scores>.", **LAYOUT, group="over")
    parsed = Markup(shown._repr_html_())
    groups = ["rowgroup", "row", "row", "rowgroup", "row", "row"]
    assert [kept["scope"] for kept in parsed.all("th")] == ["col"] * 3 + groups
    box = parsed.all("div")[0]
    assert (box["class"], box["role"], box["tabindex"]) == ("cradle-scroll", "group", "0")
    assert box["aria-label"] == "All <scores>."
    assert not any("id" in kept for _, kept in parsed.elements)
    [link] = parsed.all("a")
    assert link["download"] == shown.file
    assert link["aria-label"] == "CSV: All <scores>."
    content = base64.b64decode((link["href"] or "").partition(";base64,")[2]).decode()
    assert content == shown.to_csv()


numbers = st.floats(allow_nan=True, allow_infinity=False, width=64)
frames = st.lists(
    st.tuples(HOSTILE, HOSTILE, numbers, numbers, numbers, st.integers(0, 10**9)),
    min_size=1,
    max_size=6,
    unique_by=(lambda row: row[0]),
).map(
    lambda rows: pd.DataFrame(rows, columns=["system", "over", "value", "low", "high", "n"]).astype(
        dict.fromkeys(("value", "low", "high"), float)
    )
)


def test_formulas_in_csv_texts_are_escaped_and_numbers_are_not() -> None:
    commands = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1"]
    texts = [*commands, "-0.5", "+3", "-1e-05", "a=b", "", 'é,"b"\n<c>']
    frame = pd.DataFrame({"=x": texts, "value": [-float(i) for i in range(len(texts))]})
    rows = list(csv.reader(io.StringIO(show(frame, "c").to_csv(), newline="")))
    assert rows[0] == ["'=x", "value"]
    assert [row[0] for row in rows[1:]] == [*(f"'{text}" for text in commands), *texts[6:]]
    assert [float(row[1]) for row in rows[1:]] == [-float(i) for i in range(len(texts))]


@settings(max_examples=10)
@given(frames, HOSTILE, HOSTILE)
def test_no_text_becomes_markup(frame: pd.DataFrame, key: str, note: str) -> None:
    caption, key, note = (f"<script>{text}" for text in (note, key, note))
    frame = frame.assign(system="<i>" + frame["system"], over="<b>" + frame["over"])
    for shown in (
        show(frame.assign(score=key, unit="share"), caption, **LAYOUT, group="over", notes=note),
        show(frame, caption, titles={"n": f"N {key}"}, notes=[note]),
    ):
        parsed = Markup(shown._repr_html_())
        assert parsed.tags <= ALLOWED
        assert all(text.strip() for text in parsed.headings)
        for mark in ("\x1b", "\r", "\x00"):
            assert mark not in repr(shown) + shown._repr_html_()


def test_a_missing_caption_and_duplicate_cells_are_refused(scores: pd.DataFrame) -> None:
    with pytest.raises(BookError, match="needs a caption"):
        show(scores, " ")
    with pytest.raises(BookError, match=r"same cell .score micro_f1, over 600 dialogues.*Add a"):
        show(scores, "c", rows="score", columns="over")


def test_an_empty_frame_becomes_a_notice(scores: pd.DataFrame) -> None:
    for frame in (scores.head(0), pd.DataFrame()):
        shown = show(frame, "c", **LAYOUT, empty="No `run` is here.")
        assert isinstance(shown, Notice)
        assert "No <code>run</code> is here." in shown._repr_html_()
        assert "Nothing to show: Scores." in str(show(frame, "Scores."))


def test_a_column_can_select_one_of_several_tables() -> None:
    frame = pd.DataFrame({"run": ["b", "a", "b"], "n": [1, 2, 3]})
    chosen = show(frame, "turns.", notes={"b": "Second."}, titles={"b": "B"}, choose="run")
    assert isinstance(chosen, Choice)
    assert chosen.label == "Run"
    found = {name: (t.caption, t.titles, t.notes) for name, t in chosen.shown.items()}
    assert found == {"B": ("B: turns.", ["N"], ("Second.",)), "a": ("a: turns.", ["N"], ())}
    assert [len(t.rows) for t in chosen.shown.values()] == [2, 1]


def test_rows_are_listed_in_a_sentence() -> None:
    frame = pd.DataFrame({"value": [0.5, 1]}, index=pd.Index(["{x}", "b"], name="system"))
    assert listed(frame, "{system} {value:.1f}") == "{x} 0.5; b 1.0"
    assert listed(frame.head(0), "{system}") == ""
    # A missing value leaves out its row, if the form names it.
    frame.loc["none"] = NAN
    assert listed(frame, "{system} {value:.1f}") == "{x} 0.5; b 1.0"
    assert listed(frame, "{system}") == "{x}; b; none"


def test_signatures_are_listed_once_and_collapsed_on_a_page() -> None:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs["signature"] = ["one|two", "one|two", "three"]
    shown = show(frame, "c", notes=["First.", "In words: a."])
    words = "The first signature in words: a."
    assert shown.notes == ("First.", words, "Signature `one|two`.", "Signature `three`.")
    page = shown._repr_html_()
    folded = page.partition('<details class="cradle-signature">')[2].partition("</details>")[0]
    assert "one|two" in folded
    assert words in folded
    assert "First." not in folded
    assert page.count("one|two") == page.count("First.") == 1
    assert "<details" not in show(pd.DataFrame({"a": [1]}), "c")._repr_html_()


def test_tables_with_resampled_intervals_note_their_limits() -> None:
    frame = pd.DataFrame({"system": ["a"], "score": ["F1"], "value": [0.5], "low": [0.4]})
    frame["high"] = 0.6
    bare = frame.drop(columns=["low", "high"])
    for data, draws, expected in (
        (frame, "9@0", True),
        (frame, "0@0", False),
        (bare, "9@0", False),
    ):
        data.attrs["signature"] = f"cradle|n:600|boot:{draws}|v0.1.0"
        notes = show(data, "All.", rows="system", columns="score").notes
        assert (RESAMPLED in notes) is expected
        assert NO_INTERVAL not in notes
    one = pd.concat([frame, frame.assign(system="b", low=NAN, high=NAN)])
    one.attrs = {"signature": "cradle|n:600|boot:9@0|v0.1.0"}
    assert NO_INTERVAL in show(one, "All.", rows="system", columns="score").notes
    none = show(one[1:], "All.", rows="system", columns="score").notes
    assert NO_INTERVAL in none
    assert RESAMPLED not in none
    counts = one.assign(unit=["share", "count"])
    assert NO_INTERVAL not in show(counts, "All.", rows="system", columns="score").notes


def test_nonzero_numbers_and_names_have_links() -> None:
    frame = pd.DataFrame({"system": ["a", "b", "c"], "value": [3.0, 0.0, NAN], "link": "x?<&>"})
    frame = frame.assign(lost=[3, 0, 2], lost_link="lost", most=["x (3)", None, "y"])
    for layout in ({"rows": ["system", "lost"], "columns": "system"}, {"rows": "system"}):
        shown = show(frame.assign(most_link="most"), "Counts", **layout)
        links = [kept["href"] for kept in Markup(shown._repr_html_()).all("a")][:-1]
        most = [] if "columns" in layout else ["most", "most"]
        assert sorted(map(str, links)) == ["lost", "lost", *most, "x?<&>"]
        assert "link" not in [*shown.titles, *shown.to_csv().partition("\r\n")[0].split(",")]


def test_a_table_without_order_is_sorted_by_unformatted_numbers() -> None:
    frame = pd.DataFrame({"system": ["a", "b", "c"], "calls": [1200, 9, 30], "p": [0.2, 1e-9, NAN]})
    page = show(frame, "c", rows="system", sort=True)._repr_html_()
    assert page.count("cradle-sortable") == 1
    assert "cradle-bar" not in page
    assert re.findall('data-value="([^"]+)"', page) == ["1200.0", "0.2", "9.0", "1e-09", "30.0"]
    long = frame.melt("system", var_name="score")
    chosen = show(long, "c", rows="system", columns="score", choose="score", sort=True)
    assert chosen._repr_html_().count("cradle-sortable") == 2


def test_only_a_ranking_has_bars_for_shares_and_is_always_sorted() -> None:
    frame = pd.DataFrame({"system": ["a", "b", "c"], "score": "x"})
    frame = frame.assign(value=[1 / 3, -0.5, NAN], low=[0.2, -0.6, NAN], high=[0.4, 0.1, NAN])
    plain, ranking = (show(frame, "c", **LAYOUT | best) for best in ({"best": None}, {}))
    for word in ("data-value", "cradle-bar", "cradle-sortable"):
        assert word not in plain._repr_html_()
    page = ranking._repr_html_()
    # Values are unrounded. Negative values have no bar, undefined ones no number.
    assert re.findall('data-value="([^"]+)"', page) == [str(1 / 3), "-0.5"]
    assert re.findall('style="([^"]+)"', page) == ["--value:33.3%;--low:20.0%;--high:40.0%"]
    assert page.count("cradle-sortable") == 1
