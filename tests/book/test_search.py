"""Keywords by which the search finds pages."""

from __future__ import annotations

import json
from pathlib import Path

from cradle_lib import paths, strict_yaml

from .mini_book import build, make_site, write


def test_the_papers_index_has_every_table_and_figure_with_its_state() -> None:
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


def site_with(root: Path, keywords: str) -> Path:
    book = make_site(root) / "book"
    write(root / "models.yml", "always-none: {name: None, group: baseline, engine: always-none}")
    write(root / "notebooks/pages.yml", "pages: []")
    write(book / "_toc.yml", "format: jb-book\nroot: intro\nchapters: [file: more]\n")
    write(book / "more.md", "# More\n")
    write(book / "search.yml", keywords)
    return book


def test_keywords_of_every_page_are_in_the_search_index(tmp_path: Path) -> None:
    book = site_with(tmp_path, 'more: ["988", help line]\n')
    for text in ("first", "second"):
        # Only one page changes, and the keywords of the other one stay.
        write(book / "intro.md", f"# Title\n\nThe {text} text.\n")
        done = build(tmp_path)
        assert done.returncode == 0, done.stderr
        index = (book / "_build/html/searchindex.js").read_text(encoding="utf-8")
        found = json.loads(index.removeprefix("Search.setIndex(").removesuffix(")"))
        more = found["docnames"].index("more")
        assert {word: place[0][0] for word, place in found["indexentries"].items()} == {
            "988": more,
            "help line": more,
        }
        page = (book / "_build/html/more.html").read_text(encoding="utf-8")
        assert '<meta content="988, help line" name="keywords"' in page
