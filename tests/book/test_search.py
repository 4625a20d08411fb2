"""What a search finds beyond the words of a page."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest
from docutils import nodes
from docutils.utils import new_document

from cradle_lib import paths
from cradle_lib.book.site.search import terms_of, words_on_figures
from cradle_lib.errors import BookError
from cradle_lib.labels import LABELS

from .mini_book import build, make_site, notebook, write

INDEX = """
| in the paper | what | page | state |
| --- | --- | --- | --- |
| Table 4 | scores | [Results](sections/results.ipynb) | complete |
| Figures 3 to 5 | prompts | [Made](sections/made.ipynb) | ours |
| Figures 13 and 14 | matrices | [Before](sections/before.ipynb), [All](sections/all.ipynb) | ours |
| Sec 5 | words | [Results](sections/results.ipynb) | ours |
"""


def test_terms_figures_and_labels_lead_to_pages(tmp_path: Path) -> None:
    write(tmp_path / "search.yml", 'labels: each\npages: {help: ["988", line]}\n')
    write(tmp_path / "paper-index.md", INDEX)
    found = list(terms_of(tmp_path))
    first = {term: page for page, term, leads in found if leads}
    assert {page for term, page in first.items() if term in LABELS} == {"each"}
    assert {term: page for term, page in first.items() if term not in LABELS} == {
        "988": "help",
        "line": "help",
        "Table 4": "sections/results",
        "Figure 3": "sections/made",
        "Figure 4": "sections/made",
        "Figure 5": "sections/made",
        "Figure 13": "sections/before",
        "Figure 14": "sections/before",
    }
    others = [(page, term) for page, term, leads in found if not leads]
    assert others == [("sections/all", "Figure 13"), ("sections/all", "Figure 14")]


def test_the_papers_index_has_every_table_and_figure_with_its_state() -> None:
    # The paper has twelve tables and fourteen figures.
    led = {term for _, term, _ in terms_of(paths.BOOK)}
    assert led >= {f"Table {n}" for n in range(1, 13)} | {f"Figure {n}" for n in range(1, 15)}
    text = (paths.BOOK / "paper-index.md").read_text(encoding="utf-8")
    rows = [line.split("|")[1:-1] for line in text.splitlines() if line.startswith("|")][2:]
    assert len(rows) >= 20
    for row in rows:
        assert len(row) == 4, row
        assert all(cell.strip() for cell in row), row


def test_a_book_without_terms_is_searched_by_its_words(tmp_path: Path) -> None:
    assert list(terms_of(tmp_path)) == []


def test_terms_that_are_malformed_stop_the_build(tmp_path: Path) -> None:
    write(tmp_path / "search.yml", "pages: {help: 988}\n")
    with pytest.raises(BookError, match=r"search\.yml"):
        list(terms_of(tmp_path))


def test_words_on_a_figure_are_words_of_its_page() -> None:
    svg = "<svg><text x='1'>share detected</text><path d='M'/><text>0.5 &amp; more</text></svg>"
    held = base64.b64encode(svg.encode()).decode()
    image = (
        '<img class="only-light" alt="Rising steps" width="1" height="1" '
        f'src="data:image/svg+xml;base64,{held}">'
    )
    document = new_document("page")
    document.append(nodes.raw("", image, format="html"))
    assert words_on_figures(document) == {"share", "detected", "more", "Rising", "steps"}


def test_a_page_that_is_not_written_again_keeps_its_terms(tmp_path: Path) -> None:
    book = make_site(tmp_path) / "book"
    write(tmp_path / "models.yml", "always-none: {name: N, group: baseline, engine: always-none}")
    write(tmp_path / "notebooks/pages.yml", "pages: [{page: one, notebook: one.ipynb, title: One}]")
    pages = "chapters: [file: help, glob: sections/*]"
    write(book / "_toc.yml", f"format: jb-book\nroot: intro\n{pages}\n")
    write(book / "help.md", "# Help\n")
    write(book / "search.yml", 'labels: help\npages: {help: ["988"], gone: [nowhere]}\n')
    for word in ("first", "second"):
        code = [f"print('the {word} word')"]
        write(tmp_path / "notebooks/one.ipynb", notebook(code, parameters=False))
        done = build(tmp_path)
        assert done.returncode == 0, done.stderr
        index = (book / "_build/html/searchindex.js").read_text()
        assert '"988":[[' in index.replace(" ", "").partition('"indexentries":{')[2]
