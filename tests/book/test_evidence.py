"""Numbers of the built book, followed to the turns behind them."""

from __future__ import annotations

import re
from html.parser import HTMLParser

import pytest
from playwright.sync_api import Browser, Page

from .site import PHONE, WIDE, Site, set_theme
from .test_pages import violations

pytestmark = pytest.mark.xdist_group("book")

EXPLORER = "sections/explore.html"
EVERYTHING = "document, {%s}"
VIEWS = {
    "list": "#m=keyword,tfidf&f=gold:alert",
    "dialogue": "#d=d0011&t=9&m=smollm2-135m-constrained,smollm2-135m,keyword",
}


class Links(HTMLParser):
    """Collects the links into the explorer, with what they show."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.found: list[tuple[str, str, str]] = []
        self._open: tuple[str, str] | None = None
        self._text = ""
        self._caption = ""
        self._in_caption = False
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attributes}
        if tag == "caption":
            self._caption, self._in_caption = "", True
        elif tag == "a" and "explore.html#" in values.get("href", ""):
            self._open, self._text = (values["href"], values.get("title", "")), ""

    def handle_data(self, data: str) -> None:
        self._text += data
        self._caption += data * self._in_caption

    def handle_endtag(self, tag: str) -> None:
        if tag == "caption":
            self._in_caption = False
        elif tag == "a" and self._open is not None:
            link, title = self._open
            self.found.append((link.partition("#")[2], title or self._text, self._caption))
            self._open = None


def number(shown: str) -> int | None:
    """The count that a link shows: of a cell, after its name or in brackets; None for a share."""
    found = re.fullmatch(r"(?:.*: |.* \()?([\d,]+)\)?", shown.strip())
    return int(found[1].replace(",", "")) if found else None


@pytest.fixture(scope="module")
def explorer(site: Site, browser: Browser) -> Page:
    page = browser.new_page()
    page.goto(site.url(EXPLORER))
    page.locator("#cradle-explorer[data-ready]").wait_for(state="attached")
    return page


@pytest.mark.parametrize(
    ("name", "least"),
    [("confusion", 500), ("before-after", 100), ("error-analysis", 200), ("error-cases", 40)],
)
def test_every_number_leads_to_exactly_as_many_turns(
    site: Site, explorer: Page, name: str, least: int
) -> None:
    links = Links((site.folder / f"sections/{name}.html").read_text("utf-8")).found
    hashes = [f"#{hash_}" for hash_, _, _ in links]
    asked = explorer.evaluate("all => all.map(hash => cradleExplorer.count(hash))", hashes)
    checked = 0
    for (hash_, shown, caption), behind in zip(links, asked, strict=True):
        assert behind["unknown"] == [], hash_
        assert behind["turns"] > 0, hash_
        # Percents of the same cells stand beside those of the paper.
        percents = "in words" in caption or "that the paper states" in caption
        count = None if percents or "d=" in hash_ else number(shown)
        if count is not None:
            assert behind["pairs"] == count, (hash_, shown)
            checked += 1
    assert checked >= least


def test_a_cell_of_a_heat_map_can_be_clicked(site: Site, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
    page.goto(site.url("sections/confusion.html"))
    spot = page.locator("a.cradle-spot[title^='gold alert_ongoing, tagged none']").nth(1)
    count = number(spot.get_attribute("title") or "")
    spot.click()
    page.locator("#cradle-explorer[data-ready]").wait_for(state="attached")
    assert page.locator(".count").inner_text().startswith(f"{count} pairs ")
    assert 0 <= page.locator("#cradle-explorer").evaluate("e => e.getBoundingClientRect().top") < 99
    page.close()


def test_a_case_opens_at_its_turn(site: Site, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(site.url("sections/error-cases.html"))
    case = page.locator(".cradle-case a").first
    dialogue, turn = re.findall(r"Dialogue (\S+), turn (\d+)", case.inner_text())[0]
    case.click()
    page.locator(".lanes th.chosen", has_text=turn).wait_for()
    assert page.locator("section.dialogue h2").inner_text() == dialogue
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
        found[name] = violations(page, EVERYTHING)
    page.click(".open-text")
    page.locator(".transcript p").first.wait_for()
    for summary in page.locator(".turn summary").all():
        summary.click()
    found["text"] = violations(page, EVERYTHING)
    page.keyboard.press("?")
    found["help"] = violations(page, EVERYTHING)
    assert {name: each for name, each in found.items() if each} == {}
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    page.close()
