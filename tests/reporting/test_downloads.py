from __future__ import annotations

import base64
import csv
import io
import json
import re
from html.parser import HTMLParser

import pytest

from cradle_lib.reporting.downloads import Downloads, downloads, to_latex
from cradle_lib.reporting.tables import Cell, Column, Row, Table, percent, text


class Links(HTMLParser):
    """Collects links as a browser would see them: file name, type, content, spoken name."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "a":
            values = dict(attrs)
            head, _, data = (values["href"] or "").partition(";base64,")
            content = base64.b64decode(data, validate=True).decode()
            spoken = values["aria-label"] or ""
            self.found.append(
                (values["download"] or "", head.removeprefix("data:"), content, spoken)
            )


def links(shown: Downloads) -> list[tuple[str, str, str, str]]:
    parser = Links()
    parser.feed(shown._repr_html_())
    return parser.found


@pytest.fixture
def table() -> Table:
    rows = (
        Row((text("A & B_1 {100 %}"), percent(0.5, (0.25, 0.75))), group="First \\ group"),
        Row((text("<i>C</i>"), Cell("9.0", 9.0, best=True)), group="First \\ group"),
        Row((text("D"), Cell("\N{EN DASH}")), group="Second"),
    )
    return Table(
        "What $x$ ~ y^2 shows", (Column("Run", "text"), Column("F1 (%)")), rows, ("50 %.",)
    )


def test_latex_has_the_rows_and_no_live_character(table: Table) -> None:
    written = to_latex(table)
    body = written.split(r"\toprule")[1].split(r"\bottomrule")[0]
    lines = [line for line in body.splitlines() if line.endswith(r"\\")]
    # A heading, two group titles and three rows, each with one ampersand that is alive.
    assert len(lines) == 6
    assert [len(re.findall(r"(?<!\\)&", line)) for line in lines] == [1, 0, 1, 1, 0, 1]
    assert written.count(r"\midrule") == 2
    assert r"A \& B\_1 \{100 \%\} & 50.0 {\footnotesize 25.0--75.0} \\" in lines
    assert r"\textless{}i\textgreater{}C\textless{}/i\textgreater{} & \textbf{9.0} \\" in lines
    assert r"D & -- \\" in lines
    assert r"What \$x\$ \textasciitilde{} y\textasciicircum{}2 shows" in written
    # Without escaped ones and columns, nothing is left that TeX would act on.
    rest = re.sub(r"\\[\\&%$#_{}]", "", written)
    assert not set("%$#_^~") & set(rest)
    assert rest.count("{") == rest.count("}")


def test_every_form_of_a_table_can_be_downloaded(table: Table) -> None:
    found = links(downloads([table]))
    assert [(name.rpartition(".")[2], kind) for name, kind, _, _ in found] == [
        ("csv", "text/csv"),
        ("tex", "application/x-tex"),
        ("md", "text/markdown"),
    ]
    assert found[0][2] == table.to_csv()
    assert found[1][2] == to_latex(table)
    assert found[2][2] == table.to_markdown()
    rows = list(csv.reader(io.StringIO(found[0][2])))
    assert rows[1][2:] == ["50.0", "25.0", "75.0"]
    # Links with the same words are told apart by what is read out.
    spoken = [entry[3] for entry in found]
    assert len(set(spoken)) == 3
    assert all(table.caption in words for words in spoken)


def test_a_hostile_caption_stays_text() -> None:
    table = Table('<script>alert("x")</script>', (Column("a", "text"),), (Row((text("b"),)),))
    page = downloads([table])._repr_html_()
    assert "<script" not in page
    assert links(downloads([table]))[0][0] == "script-alert-x-script.csv"


def test_reports_come_with_their_schema() -> None:
    assert links(downloads()) == []
    assert json.loads(json.dumps(repr(downloads()))) == ""
