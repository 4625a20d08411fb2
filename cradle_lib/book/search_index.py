"""The search index: the sections of all pages, with their headings, keywords and texts.

The page ``search.html`` loads it, and ``book/_search/search.js`` searches it with MiniSearch.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, TypedDict

from bs4 import BeautifulSoup, Tag

from cradle_lib.files import write_text

#: A script, because a page that is opened from a folder can't load data.
FILE: Final = "search-sections.js"
# Not searched: what a page shows only after a click, such as lines of dialogues, which would be out
# of context in a result; and code, buttons and the rows of results.
_LEFT_OUT: Final = (
    "details, script, style, svg, button, a[download], noscript, .headerlink, .cell_input, "
    ".cell_output :is(thead, tbody), .visually-hidden"
)
_BEFORE_PUNCTUATION: Final = re.compile(r" (?=[.,;:?!)])|(?<=\() ")
# Longer formulas can't be read on one line.
_SYMBOLS: Final = 12


class Section(TypedDict):
    """A section of a page, without its subsections."""

    id: int
    #: Its address, relative to the top of the site.
    address: str
    #: The title of its page.
    page: str
    #: Its own heading; empty for the beginning of a page.
    heading: str
    #: Those of the page, at its beginning.
    keywords: str
    text: str


def write_search_index(out: Path, pages: Iterable[str], keywords: Mapping[str, list[str]]) -> None:
    """Writes the sections of all pages for the search, if a page is newer than those written.

    Args:
        out: the folder of the site.
        pages: the pages' addresses in it, without ``.html``.
        keywords: of each page: synonyms, labels, and the paper's tables and figures.
    """
    files = {page: out / f"{page}.html" for page in sorted(pages)}
    index = out / FILE
    newest = max(file.stat().st_mtime_ns for file in files.values())
    if index.exists() and index.stat().st_mtime_ns > newest:
        return
    found: list[Section] = []
    for page, file in files.items():
        document = BeautifulSoup(file.read_bytes(), "html.parser")
        for number, section in enumerate(_sections(document, page)):
            section["id"] = len(found)
            if number == 0:
                section["keywords"] = " · ".join(keywords.get(page, []))
            found.append(section)
    write_text(index, f"const SECTIONS = {json.dumps(found, ensure_ascii=False)};\n")


def _sections(document: BeautifulSoup, page: str) -> list[Section]:
    """Lists the sections of a page, beginning with the whole page without its subsections."""
    article = document.select_one("article")
    if article is None:
        return []
    for unwanted in article.select(_LEFT_OUT):
        unwanted.decompose()
    for formula in article.select("math"):
        symbols = _text(formula)
        formula.replace_with(symbols if len(symbols) <= _SYMBOLS else "…")
    found = []
    headings = article.select("section[id] > :is(h1, h2, h3, h4)")
    # From the last, so that each section is taken out of the one that contains it.
    for heading in reversed(headings):
        section = heading.parent
        assert section is not None
        text = _text(section.extract())
        name = _text(heading)
        top = heading is headings[0]
        found.append(
            Section(
                id=0,
                address=f"{page}.html" + ("" if top else f"#{section['id']}"),
                page=_text(headings[0]),
                heading="" if top else name,
                keywords="",
                text=text.removeprefix(name).strip(),
            )
        )
    return found[::-1]


def _text(element: Tag) -> str:
    """Returns the visible text of an element on one line."""
    text = " ".join(element.get_text(" ").split())
    # Without the space between a word in bold, say, and the full stop after it.
    return _BEFORE_PUNCTUATION.sub("", text)
