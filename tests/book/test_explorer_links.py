"""Links from numbers of the built book to the turns in the explorer."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Browser, Page

from .site import PHONE, WIDE, Site, set_theme
from .test_pages import CONTRAST, violations

EXPLORER = "sections/explore.html"
# JavaScript: hash, text and table caption of each link to the explorer.
LINKS = """() => [...document.querySelectorAll('article a[href*="explore.html#"]')].map(a =>
  [a.hash, a.title || a.textContent, a.closest('table')?.caption?.textContent ?? ''])"""
# axe options by theme. Only contrast depends on the theme.
ASKED = {"light": "rules: {}", "dark": CONTRAST}
VIEWS = {
    "list": "#m=keyword,tfidf&f=gold:alert",
    "dialogue": "#d=d0011&t=9&m=smollm2-135m-constrained,smollm2-135m,keyword",
}


@pytest.fixture(scope="module")
def explorer(browser: Browser) -> Page:
    return browser.new_page()


def number(shown: str) -> int | None:
    """Parses the count in the text of a link; None for a share."""
    found = re.fullmatch(r"(?:.*: |.* \()?([\d,]+)\)?", shown.strip())
    return int(found[1].replace(",", "")) if found else None


@pytest.mark.parametrize(
    ("name", "least"),
    [
        ("errors", 450),
        ("training", 100),
        ("agreement", 50),
    ],
)
def test_every_linked_number_equals_the_count_in_the_explorer(
    site: Site, explorer: Page, name: str, least: int
) -> None:
    explorer.goto(site.url(f"sections/{name}.html"))
    links = explorer.evaluate(LINKS)
    people = {hash_.startswith("#v=annotators") for hash_, *_ in links}
    assert len(people) == 1, "systems and annotators are counted on pages of their own"
    explorer.goto(site.url(EXPLORER) + "#v=annotators" * people.pop())
    explorer.locator("#cradle-explorer[data-ready]").wait_for(state="attached")
    asked = "all => all.map(([hash]) => cradleExplorer.count(hash))"
    checked = 0
    for link, behind in zip(links, explorer.evaluate(asked, links), strict=True):
        hash_, shown, caption = link
        assert behind["unknown"] == [], link
        assert behind["turns"] > 0, link
        # These tables show percentages, for comparison with the paper.
        percents = "in words" in caption or "that the paper states" in caption
        count = None if percents or "d=" in hash_ else number(shown)
        if count is not None:
            unit = "dialogues" if "in dialogues" in caption else "pairs"
            assert behind[unit] == count, link
            checked += 1
    assert checked >= least


def test_cells_of_a_heat_map_are_one_tab_stop_with_arrow_keys(site: Site, tab: Page) -> None:
    tab.goto(site.url("sections/errors.html"))
    box = tab.locator(".cradle-map").first
    spots = box.locator(".cradle-spot")
    tops = spots.evaluate_all("all => all.map(e => Math.round(e.offsetTop / 5))")
    assert spots.evaluate_all("all => all.filter(e => e.tabIndex === 0).length") == 1

    def at(key: str) -> int:
        tab.keyboard.press(key)
        place: int = spots.evaluate_all("all => all.indexOf(document.activeElement)")
        return place

    spots.first.focus()
    assert [at("ArrowRight") for _ in range(5)] == [1, 2, 3, 4, 5]
    spots.last.focus()
    assert at("ArrowRight") == len(tops) - 1
    above = at("ArrowUp")
    assert tops[above] < tops[-1]
    assert tops[at("ArrowDown")] > tops[above]
    # Tab order is row by row.
    assert tops == sorted(tops)
    title = tab.evaluate("document.activeElement.title")
    tab.keyboard.press("Enter")
    tab.locator("#cradle-explorer[data-ready]").wait_for(state="attached")
    assert tab.locator(".count").inner_text().startswith(f"{number(title):,} pair")


@pytest.mark.parametrize("name", ["errors", "conventions"])
def test_a_list_of_the_largest_numbers_replaces_a_heat_map_on_a_phone(
    site: Site, tab: Page, name: str
) -> None:
    tab.set_viewport_size({"width": PHONE[0], "height": PHONE[1]})
    tab.goto(site.url(f"sections/{name}.html"))
    drawings = tab.locator(".cradle-has-list img:visible")
    lists = tab.locator(".cradle-has-list .cradle-ranked:visible")
    assert lists.count() > 0
    assert drawings.count() == 0
    lines = lists.first.locator("li").all_inner_texts()
    found = [re.search(r"[\d.]+(?= points)|[\d,]+$", line.strip()) for line in lines]
    numbers = [float(each[0].replace(",", "")) for each in found if each]
    assert len(numbers) == len(lines)
    assert len(numbers) > 1
    assert numbers == sorted(numbers, reverse=True)
    # No other figure scrolls sideways because it shows a matrix.
    assert tab.locator(".cradle-wide:not(.cradle-has-list) .cradle-map:visible").count() == 0
    tab.set_viewport_size({"width": WIDE[0], "height": WIDE[1]})
    assert lists.count() == 0
    assert drawings.count() > 0


@pytest.mark.parametrize(("size", "theme"), [(WIDE, "light"), (PHONE, "dark")])
def test_axe_finds_no_violation_in_any_view(
    site: Site, tab: Page, theme: str, size: tuple[int, int]
) -> None:
    tab.set_viewport_size({"width": size[0], "height": size[1]})
    found = {}

    def ask(name: str) -> None:
        # Skips the list of pages, which every page has, and rows that resemble the first four.
        tab.evaluate(
            "document.querySelectorAll('.bd-sidebar-primary, tbody tr:nth-child(n+5)')"
            ".forEach(e => e.remove())"
        )
        if faults := violations(tab, ASKED[theme]):
            found[name] = faults

    for name, hash_ in VIEWS.items():
        tab.goto("about:blank")
        tab.goto(site.url(EXPLORER) + hash_)
        set_theme(tab, theme)
        tab.locator("#cradle-explorer[data-ready]").wait_for(state="attached")
        ask(name)
    tab.click(".open-text")
    tab.locator(".transcript p").first.wait_for()
    for summary in tab.locator(".turn summary").all():
        summary.click()
    ask("text")
    tab.keyboard.press("?")
    ask("help")
    assert found == {}
    assert tab.evaluate("document.documentElement.scrollWidth") <= size[0]
