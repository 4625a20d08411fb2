"""Names are text everywhere: in Markdown and in LaTeX."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from markdown_it import MarkdownIt

import cradle_lib
from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.escaping import markdown
from cradle_lib.display.theme import Picture
from cradle_lib.reporting.downloads import to_latex
from cradle_lib.reporting.tables import Column, Row, Table, text

from .test_notebooks import show

NAME = r"<img src=x onerror=alert(1)> $x_1$ [/x] {{evil}} `*_|\#\`"
# The second one is no mathematics, and the third one would be missing from a legend.
NAMES = (NAME, r"costs $5 and $\nothing$", "_hidden")


class Page(HTMLParser):
    """The tags and the text of a piece of HTML."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: object) -> None:
        self.tags.append(tag)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.fixture(scope="module")
def named(corpus: Corpus, make_run: Callable[..., Predictions]) -> list[Predictions]:
    chance = np.random.default_rng(4)
    found = []
    for share, name in zip((0.2, 0.5, 0.8), NAMES, strict=True):
        masks = np.where(chance.random(len(corpus.gold)) < share, corpus.gold, 0)
        run = make_run("keyword", masks.astype(np.uint16))
        found.append(replace(run, record=run.record.model_copy(update={"name": name})))
    return found


@pytest.mark.parametrize("page", ["who-is-better", "conventions", "error-analysis"])
def test_a_notebook_writes_every_name_as_it_is(
    page: str, named: list[Predictions], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path)
    monkeypatch.setattr(cradle_lib, "load_corpus", lambda *_: named[0].corpus, raising=False)
    monkeypatch.setattr(cradle_lib, "stored_runs", lambda *_: named, raising=False)
    few = {"draws": 5, "permutations": 5, "histories_of": []}
    shown = show(paths.NOTEBOOKS / f"{page}.ipynb", few, monkeypatch)
    [figure] = [item for item in shown if isinstance(item, Picture)]
    written = "".join(ElementTree.fromstring(figure.light).itertext())
    # The baseline is named in the caption only.
    for name in NAMES[page == "who-is-better" :]:
        assert "".join(name.split()) in "".join(written.split())
    for item in shown:
        if item is not None:
            assert not {"script", "x"} & {*Page(item._repr_html_()).tags}
            assert "onerror" not in "".join(Page(item._repr_html_()).tags)
    tables = "".join(Page(item._repr_html_()).text for item in shown if item is not None)
    for name in NAMES:
        assert name in tables


def test_a_name_in_a_table_is_text_in_all_its_forms(named: list[Predictions]) -> None:
    rows = tuple(Row((text(run.record.name),)) for run in named)
    table = Table("c", (Column("Model", "text"),), rows)
    assert NAME in Page(table._repr_html_()).text
    page = Page(MarkdownIt("gfm-like", {"linkify": False}).render(table.to_markdown()))
    assert NAME in page.text
    assert set(page.tags) <= {"p", "strong", "table", "thead", "tbody", "tr", "th", "td"}
    assert page.tags.count("td") == page.tags.count("th") * len(named)


@pytest.mark.parametrize("name", NAMES)
def test_commonmark_reads_an_escaped_name_as_that_name(name: str) -> None:
    page = Page(MarkdownIt().render(f"# {markdown(name)}"))
    assert page.tags == ["h1"]
    assert page.text.strip() == name


def test_the_marks_at_the_ends_of_a_heading_stay() -> None:
    assert Page(MarkdownIt().render(f"# {markdown('# C #')}")).text.strip() == "# C #"
    assert markdown("one\n\ntwo") == "one two"


def test_a_note_keeps_its_code_and_no_other_markup() -> None:
    table = Table("c", (Column("a"),), (), ("Signature `x|y_z` of <b>$x_1$</b> [a](b).",))
    page = Page(MarkdownIt().render(table.to_markdown().split("\n\n")[-1]))
    assert page.tags == ["p", "code"]
    assert page.text.strip() == "Signature x|y_z of <b>$x_1$</b> [a](b)."


def test_a_row_that_begins_with_a_bracket_gives_latex_no_argument() -> None:
    table = Table("c", (Column("a", "text"),), (Row((text("*"),)), Row((text("[/x]"),))))
    lines = to_latex(table).splitlines()
    after = [line for line, before in zip(lines[1:], lines, strict=False) if before.endswith("\\")]
    assert after
    assert not any(line.startswith(("[", "*")) for line in after)
