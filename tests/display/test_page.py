"""Choices and rankings in a real browser, with the book's styles and script."""

from __future__ import annotations

import math
from collections.abc import Iterator

import pandas as pd
import pytest
from playwright.sync_api import Page

from cradle_lib import paths
from cradle_lib.display.choice import choose
from cradle_lib.display.table import Table, show

from ..book import site as book

pytestmark = pytest.mark.skipif(
    not (book.chromium() or book.in_ci()), reason="no chromium on this machine"
)
# CSS variables that the book's theme sets on each page.
THEME = """
html[data-theme="light"] { --pst-color-background: #fff; --pst-color-text-base: #222832; }
html[data-theme="dark"] { --pst-color-background: #14181e; --pst-color-text-base: #ced6dd; }
body { margin: 1rem; background: var(--pst-color-background); color: var(--pst-color-text-base); }
a { color: var(--pst-color-link); }
"""


def ranking() -> Table:
    """Makes a ranking with two groups and an undefined value."""
    values = {"b": 0.25, "a10": 0.5, "a9": math.nan, "c": 0.125}
    rows = [
        (over, system, score, shift + value / 2, value / 4, shift + value)
        for over, shift in (("All", 0.0), ("Some", 0.25))
        for score in ("recall", "precision")
        for system, value in values.items()
    ]
    frame = pd.DataFrame(rows, columns=["over", "system", "score", "value", "low", "high"])
    layout = {"rows": "system", "columns": "score", "group": "over"}
    return show(frame, "A ranking.", **layout, best="system")


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("page")
    steps = pd.DataFrame(
        [("a", "x", 5), ("a", "y", 2), ("b", "y", 3)], columns=["first", "second", "value"]
    )
    shown = [
        choose(
            "System",
            {
                name: show(steps[steps["first"] == name], f"Chosen: <{name}>.")
                for name in ("a", "b")
            },
        ),
        ranking(),
    ]
    static = paths.ROOT / "book/_static"
    styles, script = (
        (static / name).read_text(encoding="utf-8") for name in ("book.css", "book.js")
    )
    body = "".join(thing._repr_html_() for thing in shown)
    (folder / "page.html").write_text(
        '<!doctype html><html lang="en" data-theme="light"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width"><title>Page</title>'
        f"<style>{THEME}{styles}</style><script>{script}</script></head><body>"
        "<main class='bd-content'><article class='bd-article'><h1>Page</h1>"
        f"{body}</article></main></body></html>",
        encoding="utf-8",
    )
    with book.serve(folder) as site, book.browser() as browser:
        opened = browser.new_page(reduced_motion="reduce")
        opened.goto(site.url("page.html"))
        yield opened


def test_a_choice_shows_one_of_several_results(page: Page) -> None:
    one, other = (page.get_by_role("table", name=f"Chosen: <{name}>.") for name in ("a", "b"))
    assert (one.count(), other.count()) == (1, 0)
    chosen = page.get_by_label("System")
    chosen.focus()
    page.keyboard.press("ArrowDown")
    assert (one.count(), other.count()) == (0, 1)
    chosen.select_option("a")
    assert (one.count(), other.count()) == (1, 0)


def test_without_scripts_all_results_are_on_the_page(page: Page) -> None:
    address = page.url
    browser = page.context.browser
    assert browser is not None
    plain = browser.new_page(java_script_enabled=False)
    plain.goto(address)
    for name in ("a", "b"):
        assert plain.get_by_role("table", name=f"Chosen: <{name}>.").is_visible()
    assert not plain.get_by_label("System").is_visible()
    plain.close()


def order(page: Page) -> list[str]:
    table = page.get_by_role("table", name="A ranking.")
    return [cell.inner_text() for cell in table.get_by_role("rowheader").all()]


def test_headings_sort_the_rows_of_each_group(page: Page) -> None:
    table = page.get_by_role("table", name="A ranking.")
    systems, recall, precision = table.get_by_role("columnheader").all()
    assert order(page) == ["All", "b", "a10", "a9", "c", "Some", "b", "a10", "a9", "c"]
    # The button is accessible by keyboard, and the sorting for screen readers.
    recall.get_by_role("button", name="Recall").focus()
    page.keyboard.press("Enter")
    assert order(page) == ["All", "a10", "b", "c", "a9", "Some", "a10", "b", "c", "a9"]
    assert recall.get_attribute("aria-sort") == "descending"
    page.keyboard.press("Enter")
    assert order(page)[:5] == ["All", "c", "b", "a10", "a9"]
    assert recall.get_attribute("aria-sort") == "ascending"
    # Natural order of names: 9 before 10.
    systems.get_by_role("button").click()
    assert order(page)[:5] == ["All", "a9", "a10", "b", "c"]
    sorted_by = [each.get_attribute("aria-sort") for each in (systems, recall, precision)]
    assert sorted_by == ["ascending", None, None]


def test_a_bar_has_its_interval_and_mark_at_the_right_positions(page: Page) -> None:
    [bar] = [
        row.locator(".cradle-bar").first
        for row in page.get_by_role("table", name="A ranking.")
        .locator("tbody")
        .nth(0)
        .get_by_role("row")
        .all()
        if row.inner_text().startswith("a10")
    ]
    # The interval is 0.125 to 0.5, the mark 0.25.
    place = bar.evaluate(
        """bar => {
          const width = bar.clientWidth;
          const part = name => getComputedStyle(bar, name);
          const [interval, dot] = [part("::before"), part("::after")];
          const pixels = [interval.left, interval.width, dot.left].map(parseFloat);
          return [pixels[0], pixels[1], pixels[2] + parseFloat(dot.width) / 2].map(x => x / width);
        }"""
    )
    assert place == pytest.approx([0.125, 0.375, 0.25], abs=0.01)
    assert bar.get_attribute("aria-hidden") == "true"
