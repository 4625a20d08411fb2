"""Tables, read back by an XML parser, an HTML parser and pandas' own reader of CSV."""

from __future__ import annotations

import base64
import csv
import io
import math
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.display.notice import Notice
from cradle_lib.display.table import Table, show
from cradle_lib.errors import BookError
from cradle_lib.scoring.signature import Signature

DASH = "\N{EN DASH}"
NAN = math.nan
ALLOWED = {
    *("div", "table", "caption", "span", "thead", "tbody", "tr", "th", "td", "p", "code", "a"),
}
# Text that means something to HTML, LaTeX, CSV or a terminal.
HOSTILE = st.text(
    st.one_of(
        st.sampled_from("<>&\"'`\\{}$%#_^~[*,;\n\r\t\x1b=@|\N{EN DASH}"),
        st.characters(codec="utf-8"),
    ),
    max_size=12,
)


class Parsed(HTMLParser):
    """Collects tags with their attributes, and the text of each th and td."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.cells: list[tuple[str, str]] = []
        self._open = False
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag in ("th", "td"):
            self.cells.append((tag, ""))
            self._open = True

    def handle_endtag(self, tag: str) -> None:
        self._open = self._open and tag not in ("th", "td")

    def handle_data(self, data: str) -> None:
        if self._open:
            tag, text = self.cells[-1]
            self.cells[-1] = (tag, text + data)


def lines(table: Table) -> list[list[str]]:
    """The rows of the table as an XML parser reads them."""
    root = ElementTree.fromstring(f"<div>{table._repr_html_()}</div>")
    return [["".join(cell.itertext()) for cell in row] for row in root.iter("tr")]


def marked(table: Table) -> set[str]:
    root = ElementTree.fromstring(f"<div>{table._repr_html_()}</div>")
    cells = (cell for cell in root.iter("td") if "best" in cell.get("class", "").split())
    return {"".join(cell.itertext()) for cell in cells}


@pytest.fixture
def scores() -> pd.DataFrame:
    """Two runs over all dialogues and one over a sample; the paper states one score of another."""
    rows = [
        ("600 dialogues", "tfidf", "micro_f1", 0.2504, 0.22, 0.28, NAN, "a"),
        ("600 dialogues", "tfidf", "macro_f1", 0.1, 0.05, 0.15, NAN, "a"),
        ("600 dialogues", "keyword", "micro_f1", 0.2104, 0.18, 0.2449, NAN, "a"),
        ("600 dialogues", "keyword", "macro_f1", 0.3, NAN, NAN, NAN, "a"),
        ("12 dialogues", "small", "micro_f1", 0.9, 0.5, 1.0, NAN, "b"),
        ("12 dialogues", "small", "macro_f1", NAN, NAN, NAN, NAN, "b"),
        ("Published", "Claude", "micro_f1", NAN, NAN, NAN, 0.4711, None),
    ]
    names = ["over", "system", "score", "value", "low", "high", "published", "signature"]
    return pd.DataFrame(rows, columns=names)


def test_a_long_frame_becomes_a_cell_for_each_row(scores: pd.DataFrame) -> None:
    shown = show(scores, "Scores.", rows="system", columns="score", group="over", best="system")
    assert lines(shown) == [
        ["System", "Micro F1", "Macro F1"],
        ["600 dialogues"],
        ["tfidf", "25.0 [22.0, 28.0]", "10.0 [5.0, 15.0]"],
        ["keyword", "21.0 [18.0, 24.5]", "30.0"],
        ["12 dialogues"],
        ["small", "90.0 [50.0, 100.0]", DASH],
        ["Published values (\N{DOUBLE DAGGER})"],
        ["Claude \N{DOUBLE DAGGER}", "47.11", DASH],
    ]
    # The sample's 90 has no rival: it stands under another heading, and has another signature.
    assert marked(shown) == {"25.0 [22.0, 28.0]", "30.0"}


def test_only_what_shares_a_signature_is_compared(scores: pd.DataFrame) -> None:
    rivals = show(
        scores.drop(columns="signature"), "c", rows="system", columns="score", best="system"
    )
    assert marked(rivals) == {"90.0 [50.0, 100.0]", "30.0"}
    told = show(scores, "c", rows="system", columns="score", best="system")
    assert marked(told) == {"25.0 [22.0, 28.0]", "30.0"}
    assert told.notes == ("\N{DOUBLE DAGGER}: published.", "Signature `a`.", "Signature `b`.")


def test_how_answers_were_decoded_keeps_no_system_out_of_the_contest(scores: pd.DataFrame) -> None:
    lines = ["cradle|dec:free|n:9", "cradle|dec:constrained|n:9", "cradle|dec:free|n:8"]
    scores["signature"] = scores["system"].map(
        dict(zip(["tfidf", "keyword", "small"], lines, strict=True))
    )
    told = show(scores, "c", rows="system", columns="score", best="system")
    assert marked(told) == {"25.0 [22.0, 28.0]", "30.0"}


def test_what_a_row_says_besides_its_name_is_no_condition(scores: pd.DataFrame) -> None:
    scores["lost"] = scores["system"].map({"tfidf": 1, "keyword": 2, "small": 3})
    keys = {"rows": ["system", "lost"], "columns": "score", "group": "over", "best": "system"}
    assert marked(show(scores, "c", **keys)) == {"25.0 [22.0, 28.0]", "30.0"}


def test_systems_may_be_columns_and_compete_all_the_same(scores: pd.DataFrame) -> None:
    shown = show(scores, "c", rows="score", columns="system", best="system", published="columns")
    assert lines(shown) == [
        ["Score", "tfidf", "keyword", "small", "Claude: published"],
        ["Micro F1", "25.0 [22.0, 28.0]", "21.0 [18.0, 24.5]", "90.0 [50.0, 100.0]", "47.11"],
        ["Macro F1", "10.0 [5.0, 15.0]", "30.0", DASH, DASH],
    ]
    assert marked(shown) == {"25.0 [22.0, 28.0]", "30.0"}


@pytest.mark.parametrize(
    ("values", "best"),
    [
        # 20.04 and 19.96 are both shown as 20.0, so a reader can't tell them apart.
        ([0.2004, 0.1996, NAN, 0.1], {"20.0"}),
        ([0.5, NAN], set()),
        ([0.0, 0.0], set()),
        ([math.inf, 0.1, 0.2], {"20.0"}),
    ],
)
def test_the_best_is_marked_as_shown_and_only_where_there_is_a_contest(
    values: list[float], best: set[str]
) -> None:
    frame = pd.DataFrame({"run": range(len(values)), "score": "s", "value": values})
    assert marked(show(frame, "c", rows="run", columns="score", best="run")) == best
    assert marked(show(frame, "c", rows="run", best="run")) == best


def test_what_is_stated_is_called_what_it_is(scores: pd.DataFrame) -> None:
    titles = {"published": "measured by others"}
    shown = show(scores, "c", rows="system", columns="score", titles=titles)
    assert lines(shown)[-1][0] == "Claude \N{DOUBLE DAGGER}"
    assert shown.notes[0] == "\N{DOUBLE DAGGER}: measured by others."


def test_columns_in_levels_have_headings_over_headings(scores: pd.DataFrame) -> None:
    both = pd.concat([scores.iloc[:4].assign(level=level) for level in ("turn", "dialogue")])
    shown = show(both, "c", rows="system", columns=["level", "score"])
    assert lines(shown)[:2] == [
        ["", "turn", "dialogue"],
        ["System", "Micro F1", "Macro F1", "Micro F1", "Macro F1"],
    ]
    tags = Parsed(shown._repr_html_()).tags
    over = [kept for tag, kept in tags if tag == "th" and kept.get("scope") == "colgroup"]
    assert [kept["colspan"] for kept in over] == ["2", "2"]


def test_what_is_published_stands_beside_a_single_column_of_values() -> None:
    frame = pd.DataFrame(
        {
            "quantity": ["Dialogues", "Ongoing (%)", "Jaccard", "Mean turns", "Unstated"],
            "corpus": "here",
            "value": [600, 0.631, NAN, 14.958, 3],
            "low": [NAN, NAN, 0.5, NAN, NAN],
            "high": [NAN, NAN, 0.75, NAN, NAN],
            "published": [600, 0.63, NAN, 14.96, NAN],
            "published_low": [NAN, NAN, 0.53, NAN, NAN],
            "published_high": [NAN, NAN, 0.7, NAN, NAN],
            "unit": ["count", "share", "number", "number", "count"],
        }
    )
    expected = [
        ["Dialogues", "600", "600"],
        ["Ongoing (%)", "63.1", "63"],
        ["Jaccard", "0.50 to 0.75", "0.53 to 0.7"],
        ["Mean turns", "14.96", "14.96"],
        ["Unstated", "3", DASH],
    ]
    pivoted = show(frame, "c", rows="quantity", columns="corpus")
    assert lines(pivoted) == [["Quantity", "here", "here: published"], *expected]
    listed = show(frame.drop(columns="corpus"), "c")
    assert lines(listed) == [["Quantity", "Value", "Published"], *expected]


def test_a_frame_without_estimates_is_shown_column_by_column() -> None:
    frame = pd.DataFrame(
        {
            "n": [8975, 12],
            "some": [1.0, NAN],
            "p": [0.0004, 0.25],
            "change": [0.0123, -0.00001],
            "hours": [0.012345, 1234.5],
            "ok": [True, False],
            "text": ["a_b", None],
            "when": pd.to_datetime(["2026-01-02", None]),
        },
        index=pd.Index(["first", "second"], name="run"),
    )
    formats = {"p": "p", "change": "points", "hours": "{:.3g}"}
    shown = show(frame, "c", formats=formats, titles={"n": "Turns"})
    assert lines(shown) == [
        ["Run", "Turns", "Some", "P", "Change", "Hours", "Ok", "Text", "When"],
        *(
            [
                "first",
                "8,975",
                "1",
                "< 0.001",
                "+1.2",
                "0.0123",
                "yes",
                "a_b",
                "2026-01-02 00:00:00",
            ],
            ["second", "12", DASH, "0.250", "+0.0", "1.23e+03", "no", DASH, DASH],
        ),
    ]


def test_order_is_that_of_appearance_or_of_the_categories() -> None:
    frame = pd.DataFrame(
        {
            "system": ["z", "z", "a", "a"],
            "scope": ["any", "alert"] * 2,
            "score": "s",
            "value": [1.0, 2, 3, 4],
            "over": ["x", "y", "x", "y"],
        }
    )
    keys = ["system", "scope"]
    plain = show(frame, "c", rows=keys, columns="score", unit="count")
    assert [line[:2] for line in lines(plain)[1:]] == [
        *map(list, zip("zzaa", frame["scope"], strict=True))
    ]
    frame["scope"] = pd.Categorical(frame["scope"], ["alert", "any", "unused"])
    sorted_ = show(frame, "c", rows=keys, columns="score", unit="count")
    assert lines(sorted_)[1:] == [
        ["z", "alert", "2"], ["z", "any", "1"], ["a", "alert", "4"], ["a", "any", "3"],
    ]  # fmt: skip
    # Under one heading stands all that belongs there, wherever the frame had it.
    grouped = show(frame, "c", rows=keys, columns="score", unit="count", group="over")
    assert [line[0] for line in lines(grouped)[1:]] == ["x", "z", "a", "y", "z", "a"]


def test_an_infinite_bound_and_a_missing_one_are_not_numbers() -> None:
    frame = pd.DataFrame(
        {
            "run": list("abc"),
            "value": [2.0, math.inf, 1.0],
            "low": [1.0, math.inf, NAN],
            "high": [math.inf, math.inf, 2.0],
        }
    )
    assert lines(show(frame, "c", unit="number:0"))[1:] == [
        ["a", "2 [1, \N{INFINITY}]"],
        ["b", "\N{INFINITY}"],
        ["c", "1"],
    ]


def test_the_markup_serves_those_who_do_not_see_it(scores: pd.DataFrame) -> None:
    shown = show(scores, "All <scores>.", rows="system", columns="score", group="over")
    parsed = Parsed(shown._repr_html_())
    scopes = [kept["scope"] for tag, kept in parsed.tags if tag == "th"]
    groups = ["rowgroup", "row", "row", "rowgroup", "row", "rowgroup", "row"]
    assert scopes == ["col"] * 3 + groups
    assert all(text.strip() for tag, text in parsed.cells if tag == "th")
    box = next(kept for tag, kept in parsed.tags if tag == "div")
    assert (box["class"], box["role"], box["tabindex"]) == ("cradle-scroll", "group", "0")
    assert box["aria-label"] == "All <scores>."
    assert not any("id" in kept for _, kept in parsed.tags)
    assert (
        shown._repr_html_()
        == show(scores, "All <scores>.", rows="system", columns="score", group="over")._repr_html_()
    )


def test_the_files_are_links_that_say_what_they_are(scores: pd.DataFrame) -> None:
    shown = show(scores, "F1 & more!")
    found = [kept for tag, kept in Parsed(shown._repr_html_()).tags if tag == "a"]
    assert [kept["download"] for kept in found] == ["f1-more.csv", "f1-more.tex"]
    assert [kept["aria-label"] for kept in found] == ["CSV: F1 & more!", "LaTeX: F1 & more!"]
    contents = [
        base64.b64decode((kept["href"] or "").partition(";base64,")[2]).decode() for kept in found
    ]
    assert contents == [shown.to_csv(), shown.to_latex()]


def test_the_csv_is_the_frame_and_not_what_is_shown(scores: pd.DataFrame) -> None:
    text = show(scores, "c", rows="system", columns="score", group="over").to_csv()
    pd.testing.assert_frame_equal(pd.read_csv(io.StringIO(text)), scores, check_dtype=False)
    assert text.splitlines()[-1] == "Published,Claude,micro_f1,,,,0.4711,"


numbers = st.floats(allow_nan=True, allow_infinity=False, width=64)
frames = st.lists(
    st.tuples(HOSTILE, HOSTILE, numbers, numbers, numbers, numbers, st.integers(0, 10**9)),
    min_size=1,
    max_size=6,
    unique_by=(lambda row: row[0]),
).map(
    lambda rows: pd.DataFrame(
        rows, columns=["system", "over", "value", "low", "high", "published", "n"]
    ).astype(dict.fromkeys(("value", "low", "high", "published"), float))
)


@settings(max_examples=100)
@given(frames)
def test_any_frame_comes_back_from_its_csv(frame: pd.DataFrame) -> None:
    numeric = [*frame.columns[2:6]]
    text = show(frame, "c").to_csv()
    back = pd.read_csv(
        io.BytesIO(text.encode()),
        keep_default_na=False,
        na_values={name: [""] for name in numeric},
        dtype={"system": str, "over": str, "n": int, **dict.fromkeys(numeric, float)},
        encoding="utf-8",
    )
    for name in ("system", "over"):
        # A quote stands before what a spreadsheet would compute.
        computed = frame[name].map(lambda text: text[:1] in ("=", "+", "-", "@", "\t", "\r"))
        number = frame[name].str.fullmatch(r"(?i)[+-]?[0-9]+\.?[0-9]*(e[+-]?[0-9]+)?")
        frame = frame.assign(**{name: frame[name].where(~computed | number, "'" + frame[name])})
    pd.testing.assert_frame_equal(back, frame, check_dtype=False, check_exact=True)


def test_a_spreadsheet_computes_no_text_of_a_csv_and_numbers_stay_numbers() -> None:
    texts = ["=1+1", "+A1", "-A1", "@SUM(A1)", "\t=1", "\r=1", "-0.5", "+3", "-1e-05", "a=b", ""]
    frame = pd.DataFrame({"=x": texts, "value": [-float(i) for i in range(len(texts))]})
    rows = list(csv.reader(io.StringIO(show(frame, "c").to_csv(), newline="")))
    assert rows[0] == ["'=x", "value"]
    assert [row[0] for row in rows[1:]] == [*(f"'{text}" for text in texts[:6]), *texts[6:]]
    assert [float(row[1]) for row in rows[1:]] == [-float(i) for i in range(len(texts))]


# What stands for a character that LaTeX would take for a command.
ESCAPED = re.compile(
    r"\\[&%$#_{}]|\\textbackslash\{\}|\\textasciitilde\{\}|\\textasciicircum\{\}|\$\\infty\$"
    r"|\\(textbf|textit|emph|footnotesize|caption|multicolumn|begin|end|par|centering"
    r"|toprule|midrule|bottomrule)(?![a-zA-Z])"
)


@settings(max_examples=40)
@given(frames, HOSTILE, HOSTILE)
def test_no_text_becomes_markup_or_a_command(frame: pd.DataFrame, key: str, note: str) -> None:
    caption, key, note = (f"<script>{text}" for text in (note, key, note))
    frame = frame.assign(system="<i>" + frame["system"], over="<b>" + frame["over"])
    wide = frame.assign(score=key, unit="share")
    for shown in (
        show(
            wide, caption, rows="system", columns="score", group="over", best="system", notes=note
        ),
        show(frame, caption, titles={"n": f"N {key}"}, notes=[note]),
    ):
        markup, latex = shown._repr_html_(), shown.to_latex()
        parsed = Parsed(markup)
        assert {tag for tag, _ in parsed.tags} <= ALLOWED
        assert all(text.strip() for tag, text in parsed.cells if tag == "th")
        for mark in ("\x1b", "\r", "\x00"):
            assert mark not in repr(shown) + markup + latex
        # A row of the table is a line: as many live ampersands as there are gaps between cells.
        body = latex.split(r"\midrule")[1].split(r"\bottomrule")[0].strip().splitlines()
        for line in body:
            assert line.endswith(r" \\")
            live = ESCAPED.sub("", line.removesuffix(r"\\"))
            grouped = line.startswith(r"\multicolumn")
            assert live.count("&") == (0 if grouped else len(shown.grid.heads) - 1)
            assert not set(live) & set("\\$%#^_~")
            assert live.count("{") == live.count("}")
            assert not line.startswith(("[", "*"))


@settings(max_examples=40)
@given(frames.filter(len))
def test_every_number_is_on_the_page_as_it_would_be_rounded_by_hand(frame: pd.DataFrame) -> None:
    shown = show(frame.assign(system=range(len(frame))), "c", rows="system", unit="number")
    found = [line[2] for line in lines(shown)[1:]]
    for text, value, low, high in zip(
        found, frame["value"], frame["low"], frame["high"], strict=True
    ):
        spoken = [f"{x:z,.2f}" for x in (value, low, high)]
        if np.isnan(low) or np.isnan(high):
            assert text == (DASH if np.isnan(value) else spoken[0])
        elif np.isnan(value):
            assert text == f"{spoken[1]} to {spoken[2]}"
        else:
            assert text == f"{spoken[0]} [{spoken[1]}, {spoken[2]}]"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"caption": " "}, "needs a caption"),
        ({"rows": "model"}, "has no column 'model'. It has: over, system"),
        ({"columns": "score"}, "`columns` needs `rows`"),
        (
            {"rows": "score", "columns": "over"},
            "same cell .score micro_f1, over 600 dialogues.*Add 'system'",
        ),
        ({"rows": "system", "columns": "score", "best": "over"}, "none of `rows` and `columns`"),
        ({"rows": "system", "unit": "percent"}, "no unit is called 'percent'"),
        ({"rows": "system", "unit": "share:x"}, "no unit is called 'share'"),
        ({"titles": {"over": "System"}}, "two columns are called 'System'"),
    ],
)
def test_what_can_not_be_shown_is_refused(
    scores: pd.DataFrame, arguments: dict[str, object], message: str
) -> None:
    with pytest.raises(BookError, match=message):
        show(scores, **{"caption": "c", **arguments})  # type: ignore[arg-type]


def test_text_among_numbers_is_refused(scores: pd.DataFrame) -> None:
    with pytest.raises(BookError, match="column 'low' holds object, where numbers belong"):
        show(scores.assign(low=pd.Series(["n/a", 0.1] * 4, dtype=object)[:7]), "c")
    with pytest.raises(BookError, match="the frame has no columns with cells"):
        show(scores[["over"]], "c", group="over")


def test_an_empty_frame_becomes_a_sentence(scores: pd.DataFrame) -> None:
    for frame in (scores.head(0), pd.DataFrame()):
        shown = show(frame, "c", rows="system", columns="score", empty="No `run` is here.")
        assert isinstance(shown, Notice)
        assert "No <code>run</code> is here." in shown._repr_html_()
        assert "Nothing to show: Scores." in str(show(frame, "Scores."))


def test_signatures_in_the_attributes_are_told() -> None:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs["signature"] = ["one|two", "one|two", "three"]
    assert show(frame, "c", notes="First.").notes == (
        "First.",
        "Signature `one|two`.",
        "Signature `three`.",
    )
    frame.attrs["signature"] = "one"
    assert "<code>one</code>" in show(frame, "c")._repr_html_()
    own = Signature.parse(
        "cradle|lvl:turn|labels:16|hist:self|dec:free|empty:1|zd:0|orphans:ignore|unparsed:miss|"
        "macro:mean|corpus:ab12cd34ef56|n:600|boot:0@0|v0.1.0"
    )
    for held in (own, [own, own], (own,)):
        frame.attrs["signature"] = held
        assert show(frame, "c").notes == (f"Signature `{own}`.",)


def test_a_terminal_shows_caption_cells_and_notes(scores: pd.DataFrame) -> None:
    text = repr(show(scores, "Scores.", rows="system", columns="score", notes="A note."))
    assert text.splitlines()[0] == "Scores."
    assert re.search(r"^ *tfidf +25.0 \[22.0, 28.0\] +10.0 \[5.0, 15.0\]$", text, re.MULTILINE)
    assert text.splitlines()[-3:] == ["A note.", "Signature `a`.", "Signature `b`."]


def test_resampled_intervals_say_what_they_leave_out() -> None:
    frame = pd.DataFrame({"system": ["a"], "score": ["F1"], "value": [0.5], "low": [0.4]})
    frame["high"] = 0.6
    for draws, said in (("10000@0", True), ("0@0", False)):
        frame.attrs["signature"] = f"cradle|n:600|boot:{draws}|v0.1.0"
        table = show(frame, "All.", rows="system", columns="score")
        assert any("not run-to-run variation" in note for note in table.notes) is said
    frame.attrs["signature"] = "cradle|n:600|boot:10000@0|v0.1.0"
    bare = show(frame.drop(columns=["low", "high"]), "All.", rows="system", columns="score")
    assert not any("not run-to-run variation" in note for note in bare.notes)


def test_how_it_was_scored_is_folded_on_a_page_and_told_in_a_terminal() -> None:
    frame = pd.DataFrame({"a": [1]})
    frame.attrs["signature"] = "lvl:turn|n:9"
    shown = show(frame, "c", notes="A note.")
    page = shown._repr_html_()
    folded = page.partition('<details class="cradle-signature">')[2].partition("</details>")[0]
    assert "lvl:turn|n:9" in folded
    assert "A note." not in folded
    assert page.count("lvl:turn") == page.count("A note.") == 1
    assert "<details" not in show(pd.DataFrame({"a": [1]}), "c")._repr_html_()
    assert "Signature `lvl:turn|n:9`." in repr(shown)


def test_a_label_in_a_heading_may_break_where_its_name_has_parts() -> None:
    frame = pd.DataFrame([["x", "confirm_SH_past", 1.0]], columns=["a", "label", "value"])
    frame = pd.concat([frame, frame.assign(label="other_<b>")])
    layout = {"rows": "a", "columns": "label"}
    page = show(frame, "c", **layout)._repr_html_()
    assert ">confirm_<wbr>SH_<wbr>past</th>" in page
    assert ">other_&lt;b&gt;</th>" in page
    # In a file it is whole.
    assert "wbr" not in show(frame, "c", **layout).to_latex()


def test_a_number_leads_to_what_it_counts_unless_it_is_0() -> None:
    frame = pd.DataFrame({"system": ["a", "b", "c"], "value": [3.0, 0.0, NAN], "link": "x?<&>"})
    shown = show(frame, "Counts", rows="system", columns="system", unit="count")
    page = Parsed(shown._repr_html_())
    links = [values["href"] for tag, values in page.tags if tag == "a" and "download" not in values]
    assert links == ["x?<&>"]
    assert "link" not in shown.to_csv()
    listed = show(frame, "Counts", rows="system", unit="count")
    assert "link" not in listed.grid.titles


def test_a_column_that_is_shown_as_it_is_has_the_links_of_another_one() -> None:
    frame = pd.DataFrame({"system": ["a", "b", "c"], "most": ["x (3)", None, "y"]})
    shown = show(frame.assign(most_link="there"), "Most", rows="system")
    assert [[cell.link for cell in row] for row in shown.grid.rows] == [
        ["", "there"],
        ["", ""],
        ["", "there"],
    ]
    assert "there" not in shown.to_csv()


def test_a_name_of_a_row_leads_to_what_it_counts() -> None:
    frame = pd.DataFrame(
        {
            "system": ["a", "a", "b", "b"],
            "lost": [3, 3, 0, 0],
            "lost_link": ["there.html#a", "there.html#a", "there.html#b", "there.html#b"],
            "score": ["x", "y", "x", "y"],
            "value": [0.1, 0.2, 0.3, 0.4],
        }
    )
    page = show(frame, "c", rows=["system", "lost"], columns="score")._repr_html_()
    assert page.count("there.html") == 1
    assert '<a href="there.html#a">3</a>' in page


def test_only_a_sortable_table_has_numbers_to_sort_by_and_bars_are_drawn_for_shares() -> None:
    frame = pd.DataFrame({"system": ["a", "b", "c"], "score": "x"})
    frame = frame.assign(value=[1 / 3, -0.5, NAN], low=[0.2, -0.6, NAN], high=[0.4, 0.1, NAN])
    plain, both = (
        show(frame, "c", rows="system", columns="score", sortable=told, bars=told)._repr_html_()
        for told in (False, True)
    )
    assert "data-value" not in plain
    assert "cradle-bar" not in plain
    assert "cradle-sortable" not in plain
    # Unrounded; a difference has no place between 0 and 1, and what is undefined has no number.
    assert re.findall('data-value="([^"]+)"', both) == [str(1 / 3), "-0.5"]
    assert re.findall('style="([^"]+)"', both) == ["--value:33.3%;--low:20.0%;--high:40.0%"]
    assert both.count("cradle-sortable") == 1
