"""What a search finds beyond the words of a page: terms with a page of their own, and figures.

Terms stand in ``book/search.yml``; tables and figures of the paper are those of the table in
``book/paper-index.md``; each label leads to the page about single labels. They become entries of
Sphinx's index, which its search ranks before titles and words. Words on a figure become keywords
of its page.
"""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from docutils import nodes  # type: ignore[import-untyped, unused-ignore]
from pydantic import BaseModel, ConfigDict
from sphinx import addnodes
from sphinx.application import Sphinx

from cradle_lib.book.yaml_file import read_yaml
from cradle_lib.labels import LABELS

_ROW: Final = re.compile(r"^\| ((?:Table|Figure|Figures) [^|]*?) \|.*$", re.MULTILINE)
_LINK: Final = re.compile(r"\]\(([\w/.-]+)\.(?:ipynb|md)\)")
_RANGE: Final = re.compile(r"(\d+)(?: (?:to|and) (\d+))?")
_SVG: Final = re.compile(
    r'class="only-light" alt="([^"]*)"[^>]* src="data:image/svg\+xml;base64,([^"]+)"'
)
_TEXT: Final = re.compile(r"<text[^>]*>([^<]*)</text>")
_WORD: Final = re.compile(r"[^\W\d_][\w-]{2,}")


class Terms(BaseModel):
    """``book/search.yml``: the page to which labels lead, and terms that lead to other pages."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    labels: str
    pages: dict[str, tuple[str, ...]]


def terms_of(book: Path) -> Iterator[tuple[str, str, bool]]:
    """Yields a page, a term that leads to it, and whether the page comes first.

    Of several pages that show a table of the paper, that is the first one named.
    """
    if not (book / "search.yml").is_file():
        return
    known = read_yaml(book / "search.yml", Terms, "no terms for the search")
    for page, terms in known.pages.items():
        yield from ((page, term, True) for term in terms)
    yield from ((known.labels, label, True) for label in LABELS)
    index = book / "paper-index.md"
    for row in _ROW.finditer(index.read_text(encoding="utf-8") if index.is_file() else ""):
        kind = row[1].split()[0].removesuffix("s")
        first, last = (int(end) for end in _RANGE.search(row[1]).groups("0"))  # type: ignore[union-attr]
        for number in range(first, max(first, last) + 1):
            for place, page in enumerate(_LINK.findall(row[0])):
                yield page, f"{kind} {number}", place == 0


def add_terms(app: Sphinx, document: nodes.document) -> None:
    """Adds to a page what a search shall find it by."""
    book, page = Path(app.srcdir), app.env.docname
    for file in (book / "search.yml", book / "paper-index.md"):
        # A file that is not there would count as changed at every build.
        if file.is_file():
            app.env.note_dependency(str(file))
    entries = [
        ("single", term, "", "main" if first else "", None)
        for there, term, first in terms_of(book)
        if there == page
    ]
    # A word that is also a function's name leads to the page about the thing: names of functions
    # are found as words of their page, and are no entries of the index.
    for entry in list(document.findall(addnodes.index)):
        entry.parent.remove(entry)
    objects = app.env.domaindata["py"]["objects"]
    for name, found in objects.items():
        if found.docname == page:
            objects[name] = found._replace(aliased=True)
    if entries:
        document.append(addnodes.index(entries=entries, inline=False))
    if words := sorted(words_on_figures(document)):
        document.append(nodes.meta(name="keywords", content=", ".join(words)))


def keep_terms(app: Sphinx) -> list[tuple[str, dict[str, object], str]]:
    """Puts the terms of pages that are not written again back into the index.

    Sphinx reads titles and words of such pages from the index that it made before, but no entries.

    It makes no page itself, which is what Sphinx asks for.
    """
    known: dict[str, list[tuple[str, str, str]]] = {}
    for page, term, first in terms_of(Path(app.srcdir)):
        known.setdefault(page, []).append((term, "", "main" if first else ""))
    entries = app.env._search_index_index_entries
    for page in (known.keys() & app.env.all_docs.keys()) - entries.keys():
        entries[page] = known[page]
    return []


def words_on_figures(document: nodes.document) -> set[str]:
    """Collects the words of a page's figures, drawn or said for those who can't see them."""
    found: set[str] = set()
    for node in document.findall(nodes.raw):
        for alt, svg in _SVG.findall(node.astext()):
            drawn = _TEXT.findall(base64.b64decode(svg).decode("utf-8"))
            found.update(_WORD.findall(html.unescape(" ".join([alt, *drawn]))))
    return found
