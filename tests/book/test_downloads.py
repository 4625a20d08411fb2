"""The files that the built pages hold."""

from __future__ import annotations

import base64
import csv
import html
import io
import re
from collections.abc import Iterator
from pathlib import Path

from .site import Site

FILE = re.compile(r'download="([^"]+\.csv)"[^>]*href="([^"]+)"')
HELD = "data:text/csv;base64,"
NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d*)?(?:[eE][+-]?\d+)?|inf)")
WORDLESS = re.compile(r"[\W_]*")


def files(page: Path) -> Iterator[tuple[str, list[dict[str, str]]]]:
    for name, address in FILE.findall(page.read_text("utf-8")):
        there = html.unescape(address)
        held = address.startswith(HELD)
        data = (
            base64.b64decode(address[len(HELD) :]) if held else (page.parent / there).read_bytes()
        )
        content = data.decode("utf-8")
        yield name, list(csv.DictReader(io.StringIO(content, newline="")))


def test_what_is_missing_in_a_file_is_empty(site: Site) -> None:
    wrong, columns = [], 0
    for page in site.pages:
        for name, rows in files(site.folder / page):
            for column in rows[0] if rows else ():
                known = [row[column] for row in rows if row[column]]
                columns += any(map(NUMBER.fullmatch, known))
                # A dash, or whatever else says nothing, where a number or a word belongs.
                wrong += [(page, name, column, x) for x in known if WORDLESS.fullmatch(x)]
    assert columns > 100
    assert wrong == []


def test_every_table_and_heat_map_comes_with_its_numbers(site: Site) -> None:
    seen = 0
    for page in site.pages:
        text = (site.folder / page).read_text("utf-8")
        shown = text.count('<table class="cradle-table">')
        shown += text.count('<img alt="Heat map')
        seen += shown
        assert len(FILE.findall(text)) >= shown, page
    assert seen > 50
