"""Numbers of the built book, followed to the turns behind them."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html.parser import HTMLParser
from typing import Any

import pytest
from playwright.sync_api import Browser, Page

from .site import PHONE, WIDE, Site, set_theme
from .test_pages import CONTENTS, CONTRAST, ROWS, violations

EXPLORER = "sections/explore.html"
INTO = re.compile(r"explore(?:-annotators)?\.html#")
# What a page's structure says does not depend on the theme.
ASKED = {"light": "rules: {}", "dark": CONTRAST}
VIEWS = {
    "list": "#m=keyword,tfidf&f=gold:alert",
    "dialogue": "#d=d0011&t=9&m=smollm2-135m-constrained,smollm2-135m,keyword",
}


@dataclass(frozen=True)
class Link:
    """A link into an explorer: its page, the address in it, what it shows, and in which table."""

    page: str
    hash_: str
    shown: str
    caption: str


class Links(HTMLParser):
    """Collects the links into the explorers."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[Link] = []
        self._open: tuple[str, str] | None = None
        self._text = ""
        self._caption = ""
        self._in_caption = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "caption":
            self._caption, self._in_caption = "", True
        elif tag == "a" and INTO.match(values.get("href", "")):
            self._open, self._text = (values["href"], values.get("title", "")), ""

    def handle_data(self, data: str) -> None:
        self._text += data
        self._caption += data * self._in_caption

    def handle_endtag(self, tag: str) -> None:
        if tag == "caption":
            self._in_caption = False
        elif tag == "table":
            # A figure after it has no such caption.
            self._caption = ""
        elif tag == "a" and self._open is not None:
            page, _, hash_ = self._open[0].partition("#")
            self.found.append(Link(page, f"#{hash_}", self._open[1] or self._text, self._caption))
            self._open = None


def number(shown: str) -> int | None:
    """The count that a link shows: of a cell, after its name or in brackets; None for a share."""
    found = re.fullmatch(r"(?:.*: |.* \()?([\d,]+)\)?", shown.strip())
    return int(found[1].replace(",", "")) if found else None


@pytest.fixture(scope="module")
def counted(site: Site, browser: Browser) -> Callable[[str, list[str]], list[dict[str, Any]]]:
    """Says for addresses in an explorer what is behind them."""
    pages: dict[str, Page] = {}

    def count(name: str, hashes: list[str]) -> list[dict[str, Any]]:
        people = {hash_.startswith("#v=annotators") for hash_ in hashes}
        assert len(people) == 1, "systems and annotators are counted on pages of their own"
        name += "#v=annotators" * people.pop()
        if name not in pages:
            pages[name] = browser.new_page()
            pages[name].goto(site.url(f"sections/{name}"))
            pages[name].locator("#cradle-explorer[data-ready]").wait_for(state="attached")
        asked = "all => all.map(hash => cradleExplorer.count(hash))"
        found: list[dict[str, Any]] = pages[name].evaluate(asked, hashes)
        return found

    return count


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("errors", 450),
        ("training", 100),
        ("agreement", 60),
        ("results", 3),
        ("runs", 1),
    ],
)
def test_every_number_leads_to_exactly_as_many_turns(
    site: Site,
    counted: Callable[[str, list[str]], list[dict[str, Any]]],
    name: str,
    least: int,
) -> None:
    links = Links((site.folder / f"sections/{name}.html").read_text("utf-8")).found
    [page] = {link.page for link in links}
    checked = 0
    for link, behind in zip(links, counted(page, [link.hash_ for link in links]), strict=True):
        assert behind["unknown"] == [], link
        assert behind["turns"] > 0, link
        # Percents of the same cells stand beside those of the paper.
        percents = "in words" in link.caption or "that the paper states" in link.caption
        count = None if percents or "d=" in link.hash_ else number(link.shown)
        if count is not None:
            unit = "dialogues" if "in dialogues" in link.caption else "pairs"
            assert behind[unit] == count, link
            checked += 1
    assert checked >= least


def test_cells_are_one_stop_of_the_tab_key_and_arrows_go_between_them(
    site: Site, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
    page.goto(site.url("sections/errors.html"))
    box = page.locator(".cradle-map").first
    spots = box.locator(".cradle-spot")
    tops = spots.evaluate_all("all => all.map(e => Math.round(e.offsetTop / 5))")
    assert spots.evaluate_all("all => all.filter(e => e.tabIndex === 0).length") == 1

    def at(key: str) -> int:
        page.keyboard.press(key)
        place: int = spots.evaluate_all("all => all.indexOf(document.activeElement)")
        return place

    spots.first.focus()
    every = [*range(1, len(tops)), len(tops) - 1]
    assert [at("ArrowRight") for _ in tops] == every
    above = at("ArrowUp")
    assert tops[above] < tops[-1]
    assert tops[at("ArrowDown")] > tops[above]
    # They stand row by row.
    assert tops == sorted(tops)
    title = page.evaluate("document.activeElement.title")
    page.keyboard.press("Enter")
    page.locator("#cradle-explorer[data-ready]").wait_for(state="attached")
    assert page.locator(".count").inner_text().startswith(f"{number(title):,} pair")
    page.close()


@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["wide", "phone"])
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier_in_any_view(
    site: Site, browser: Browser, theme: str, size: tuple[int, int]
) -> None:
    page = browser.new_page(viewport={"width": size[0], "height": size[1]}, reduced_motion="reduce")
    found = {}
    for name, hash_ in VIEWS.items():
        page.goto("about:blank")
        page.goto(site.url(EXPLORER) + hash_)
        set_theme(page, theme)
        page.locator("#cradle-explorer[data-ready]").wait_for(state="attached")
        found[name] = violations(page, ASKED[theme], [ROWS, CONTENTS])
    page.click(".open-text")
    page.locator(".transcript p").first.wait_for()
    for summary in page.locator(".turn summary").all():
        summary.click()
    found["text"] = violations(page, ASKED[theme], [ROWS, CONTENTS])
    page.keyboard.press("?")
    found["help"] = violations(page, ASKED[theme], [ROWS, CONTENTS])
    assert {name: each for name, each in found.items() if each} == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.close()
