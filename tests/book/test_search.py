"""The search index and its keywords, and the index of the paper's tables and figures."""

from __future__ import annotations

import json
from pathlib import Path

from cradle_lib import paths, strict_yaml
from cradle_lib.book.search_index import write_search_index


def test_the_papers_index_has_every_table_and_figure() -> None:
    # The paper has twelve tables and fourteen figures.
    keywords = strict_yaml.read(paths.BOOK / "search.yml")
    found = {word for words in keywords.values() for word in words}
    assert found >= {f"Table {n}" for n in range(1, 13)} | {f"Figure {n}" for n in range(1, 15)}
    text = (paths.BOOK / "paper-index.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 20
    for row in rows:
        assert len(row) == 4, row
        assert all(cell.strip() for cell in row), row


def test_sections_are_indexed_without_what_a_page_shows_after_a_click(tmp_path: Path) -> None:
    page = tmp_path / "one.html"
    page.write_text(
        "<article><section id='top'><h1>One<a class='headerlink'>#</a></h1>"
        "<p>First <b>text</b>.</p>"
        "<details><summary>More</summary>Collapsed</details>"
        "<section id='part'><h2>Part</h2><p>With <math><mi>κ</mi></math>.</p>"
        "<section id='below'><h3>Below</h3><p>Last.</p></section></section></section></article>",
        encoding="utf-8",
    )
    write_search_index(tmp_path, {"one"}, {"one": ["word", "Table 1"]})
    text = (tmp_path / "search-sections.js").read_text(encoding="utf-8")
    assert json.loads(text.removeprefix("const SECTIONS = ").removesuffix(";\n")) == [
        {"id": 0, "address": "one.html", "page": "One", "heading": "", "text": "First text."}
        | {"keywords": "word · Table 1"},
        {"id": 1, "address": "one.html#part", "page": "One", "heading": "Part"}
        | {"keywords": "", "text": "With κ."},
        {"id": 2, "address": "one.html#below", "page": "One", "heading": "Below"}
        | {"keywords": "", "text": "Last."},
    ]
