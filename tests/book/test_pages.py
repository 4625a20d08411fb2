"""What a reader of any page can rely on, checked in a real browser on every page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import pytest
from axe_core_python.base import AXE_SCRIPT
from playwright.sync_api import Browser, Page
from pydantic import RootModel

from cradle_lib import paths
from cradle_lib.book.yaml_file import read_yaml

from .looks import FAINT, LOOKS, least_text
from .site import PHONE, WIDE, Site, set_theme

# Elements that stick out to the right, unless a box around them scrolls or cuts them.
STICKING_OUT = """() => {
  const inBox = e => {
    for (let p = e.parentElement; p && p !== document.body; p = p.parentElement)
      if (getComputedStyle(p).overflowX !== 'visible' || getComputedStyle(p).position === 'fixed')
        return true;
    return false;
  };
  return [...document.querySelectorAll('body *')]
    .filter(e => e.checkVisibility() && getComputedStyle(e).position !== 'fixed')
    .filter(e => e.getBoundingClientRect().right > window.innerWidth + 1 && !inBox(e))
    .map(e => e.tagName + '.' + e.className);
}"""
FACTS = """() => ({
  help: !!document.querySelector('footer .cradle-help')?.checkVisibility(),
  header: document.querySelector('header .cradle-help-link, .bd-header-article .cradle-help-link')
    ?.pathname.endsWith('/help.html') ?? false,
  ways: ['tel:', 'sms:'].map(way =>
    document.querySelectorAll(`footer .cradle-help a[href^="${way}"]`).length),
  unnamed: [...document.querySelectorAll('.cradle-warning')].filter(w =>
    !w.querySelector('a[href*="help.html"]')).length,
  checked: document.querySelector('footer .cradle-help .checked')?.innerText ?? '',
  purpose: document.querySelector('.cradle-purpose')?.innerText ?? '',
  corpus: document.querySelector('.cradle-banner dd')?.textContent ?? '',
  line: document.querySelector('.cradle-banner summary')?.innerText ?? '',
  notice: document.querySelector('.cradle-banner details')?.textContent ?? '',
  examples: document.querySelectorAll('.cradle-example').length,
  warned: [...document.querySelectorAll('.cradle-example')].every(e =>
    [...document.querySelectorAll('.cradle-warning')].some(w =>
      w.compareDocumentPosition(e) & Node.DOCUMENT_POSITION_FOLLOWING)),
  visibleTurns: [...document.querySelectorAll('.cradle-turns')].filter(e =>
    e.checkVisibility({contentVisibilityAuto: true})).length,
  open: document.querySelectorAll('article details[open]:not(.narrow)').length,
  noAlt: [...document.images].filter(i => !i.alt.trim()).map(i => i.outerHTML.slice(0, 80)),
  notebook: !!document.querySelector('a[href*="_sources/"][href$=".ipynb"]'),
  title: document.title,
  lang: document.documentElement.lang,
})"""


@dataclass(frozen=True)
class Visit:
    """One page as it was met: what went wrong, and what was on it."""

    page: str
    errors: list[str]
    elsewhere: list[str]
    violations: dict[str, list[str]]
    sticking_out: list[str]
    scrolls: bool
    facts: dict[str, object]
    looks: dict[str, object]
    faint: dict[str, list[str]]
    weight: int
    width: int


# The parts of the book whose pages open with a result.
PARTS = {"Benchmark", "Annotation", "Results", "Training"}
# The rows of a table are made alike from the fifth one on, and of hundreds each takes its time.
ROWS = "tbody tr:nth-child(n+5)"
# The list of pages is the same everywhere: axe reads it on the pages below.
CONTENTS = ".bd-sidebar-primary"
STRUCTURE = "rules: {'color-contrast': {enabled: false}}"
CONTRAST = "runOnly: ['color-contrast']"
# What a page's structure says does not depend on the width; where its parts lie does.
PLACES = "runOnly: ['scrollable-region-focusable', 'aria-hidden-focus', 'region']"
# Contrast is the slow check, which every page has from FAINT: on these axe is asked too.
ASKED_WHOLE = {"sections/home.html", "sections/errors.html", "sections/explore.html", "search.html"}


def violations(page: Page, question: str, without: list[str]) -> list[str]:
    """What axe has against a page, but for the elements that these selectors name."""
    page.evaluate(AXE_SCRIPT)
    asked = (
        f"{{exclude: {[[each] for each in without]}}}, {{{question}, resultTypes: ['violations']}}"
    )
    return [
        f"{found['id']}: {node['target']} {node['html'][:120]}"
        for found in page.evaluate(f"axe.run({asked}).then(found => found.violations)")
        for node in found["nodes"]
    ]


def files_of(site: Site, requests: list[str]) -> set[Path]:
    """The files that a page was made of, opened from its folder or from a server."""
    addresses = (urlsplit(url.removeprefix(site.address)) for url in requests)
    paths = (unquote(parts.path) for parts in addresses if parts.scheme in ("", "file"))
    return {site.folder / path.removeprefix(f"{site.folder}/").lstrip("/") for path in paths}


def visited(page: Page, site: Site, name: str, view: str) -> Visit:
    """What a reader of one page meets: from a server when it is wide, on a phone from its file."""
    errors: list[str] = []
    requests: list[str] = []
    hear = {
        "console": lambda message: (
            # The theme tells its developers how it scrolled.
            None
            if message.text.startswith("[PST]")
            else errors.append(f"{message.type}: {message.text}")
        ),
        "pageerror": lambda error: errors.append(str(error)),
        "request": lambda request: requests.append(request.url),
    }
    for event, listener in hear.items():
        page.on(event, listener)  # type: ignore[call-overload]
    file = site.folder / name
    page.goto(site.url(name) if view == "wide" else file.as_uri(), wait_until="load")
    looks = page.evaluate(LOOKS)
    looks["least"] = least_text(file, looks["figures"])
    whole = name in ASKED_WHOLE
    without = [ROWS] if whole else [ROWS, CONTENTS]
    seen, faint = {}, {}
    for theme in ("dark", "light"):
        set_theme(page, theme)
        faint[theme] = page.evaluate(FAINT)
        asked = [CONTRAST] if whole else []
        if theme == "light":
            asked += [STRUCTURE if view == "wide" or whole else PLACES]
        seen[theme] = [v for each in asked for v in violations(page, each, without)]
    visit = Visit(
        page=name,
        errors=errors,
        elsewhere=[
            url
            for url in requests
            if not url.startswith(("data:", site.address, site.folder.as_uri()))
        ],
        violations=seen,
        sticking_out=page.evaluate(STICKING_OUT),
        scrolls=page.evaluate("document.documentElement.scrollWidth > innerWidth"),
        facts=page.evaluate(FACTS),
        looks=looks,
        faint=faint,
        weight=sum(
            file.stat().st_size
            for file in files_of(site, requests)
            # The theme's styles and scripts are loaded once for all pages.
            if site.folder / "_static" not in file.parents
        ),
        width=page.evaluate("innerWidth"),
    )
    for event, listener in hear.items():
        page.remove_listener(event, listener)
    return visit


@pytest.fixture(scope="module", params=["wide", "phone"])
def visits(request: pytest.FixtureRequest, site: Site, browser: Browser) -> list[Visit]:
    """Every page: wide from a server, on a phone from its file."""
    width, height = {"wide": WIDE, "phone": PHONE}[request.param]
    # One tab for all: each new one costs a process of the browser, as does each change of origin.
    page = browser.new_page(reduced_motion="reduce", viewport={"width": width, "height": height})
    found = [visited(page, site, name, request.param) for name in site.pages]
    page.close()
    return found


def sections(visits: list[Visit]) -> list[Visit]:
    found = [visit for visit in visits if visit.page.startswith("sections/")]
    assert len(found) >= 7
    return found


def test_no_page_says_anything_on_the_console(visits: list[Visit]) -> None:
    assert {visit.page: visit.errors for visit in visits if visit.errors} == {}


def test_no_page_asks_another_server_for_anything(visits: list[Visit]) -> None:
    assert {visit.page: visit.elsewhere for visit in visits if visit.elsewhere} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_no_barrier_on_any_page(visits: list[Visit], theme: str) -> None:
    assert {v.page: v.violations[theme] for v in visits if v.violations[theme]} == {}


def test_nothing_is_wider_than_the_window(visits: list[Visit]) -> None:
    sticking = {v.page: v.sticking_out for v in visits if v.sticking_out or v.scrolls}
    assert sticking == {}


def test_what_scrolls_says_so_and_keeps_its_first_column(visits: list[Visit]) -> None:
    assert any(v.looks["finding"] for v in visits)
    for fault in ("unmarked", "loose"):
        assert {v.page: v.looks[fault] for v in visits if v.looks[fault]} == {}


def test_every_text_can_be_read(visits: list[Visit]) -> None:
    for fault in ("signs", "small", "captions"):
        assert {v.page: v.looks[fault] for v in visits if v.looks[fault]} == {}
    # Half a pixel less is what rounding an image's width to whole ones may take.
    least = {v.page: v.looks["least"] for v in visits}
    assert {page: size for page, size in least.items() if float(str(size)) < 8.9} == {}


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_stands_out_from_its_ground(visits: list[Visit], theme: str) -> None:
    assert {v.page: v.faint[theme] for v in visits if v.faint[theme]} == {}


def test_a_section_opens_with_its_finding(visits: list[Visit]) -> None:
    for visit in sections(visits):
        finding = str(visit.looks["finding"]).strip()
        assert visit.looks["opens"], visit.page
        assert finding.endswith("."), visit.page
        assert not re.search(r"\bnan\b|None", finding), finding


def test_the_first_result_is_on_the_first_screen(visits: list[Visit]) -> None:
    parts = read_yaml(paths.BOOK / "_toc.yml", RootModel[Any], "no contents").root["parts"]
    chapters = [
        chapter for part in parts if part["caption"] in PARTS for chapter in part["chapters"]
    ]
    files = [chapter["file"] for chapter in chapters if "file" in chapter]
    results = {f"{name}.html" for name in files if name.startswith("sections/")}
    assert len(results) >= 10
    tops = {v.page: int(str(v.looks["top"])) for v in visits if v.page in results}
    assert set(tops) == results
    phone = visits[0].width < WIDE[0]
    assert {page: top for page, top in tops.items() if top > (900 if phone else 600)} == {}


def test_code_is_one_line_below_its_result_and_complete_when_it_is_opened(
    visits: list[Visit],
) -> None:
    for fault in ("cut", "tall", "above"):
        assert {v.page: v.looks[fault] for v in visits if v.looks[fault]} == {}
    assert [v.page for v in sections(visits) if not v.facts["notebook"]] == []


def test_half_of_the_pages_weigh_less_than_300_kilobytes(visits: list[Visit]) -> None:
    weights = {visit.page: visit.weight for visit in visits}
    assert min(weights.values()) > 10_000
    assert median(weights.values()) < 300_000
    assert {page: weight for page, weight in weights.items() if weight > 1_000_000} == {}


def test_every_page_names_help_and_its_purpose(visits: list[Visit]) -> None:
    assert [v.page for v in visits if not v.facts["help"] or not v.facts["header"]] == []
    assert [v.page for v in visits if not all(v.facts["ways"])] == []  # type: ignore[call-overload]
    assert [v.page for v in visits if v.facts["unnamed"]] == []
    assert [v.page for v in visits if "checked on" not in str(v.facts["checked"])] == []
    assert [v.page for v in visits if "Not triage" not in str(v.facts["purpose"])] == []


def test_every_page_with_results_says_what_they_rest_on(visits: list[Visit]) -> None:
    assert [v.page for v in sections(visits) if not v.facts["corpus"]] == []


def test_a_surrogate_page_says_that_its_scores_say_nothing(visits: list[Visit]) -> None:
    for visit in sections(visits):
        surrogate = str(visit.facts["corpus"]).startswith("surrogate")
        assert surrogate == ("says nothing" in str(visit.facts["notice"])), visit.page
        assert surrogate == ("Surrogate corpus" in str(visit.facts["line"])), visit.page


def test_examples_are_folded_and_come_after_a_warning(visits: list[Visit]) -> None:
    assert any(visit.facts["examples"] for visit in visits)
    assert [v.page for v in visits if v.facts["open"] or v.facts["visibleTurns"]] == []
    assert [v.page for v in visits if not v.facts["warned"]] == []


def test_every_picture_has_a_text_for_those_who_cannot_see_it(visits: list[Visit]) -> None:
    assert {v.page: v.facts["noAlt"] for v in visits if v.facts["noAlt"]} == {}


def test_every_page_has_a_title_of_its_own_and_a_language(visits: list[Visit]) -> None:
    titles = [visit.facts["title"] for visit in visits]
    assert len(set(titles)) == len(titles)
    assert {visit.facts["lang"] for visit in visits} == {"en"}


def test_the_search_finds_a_page_and_shows_no_line_of_it(site: Site, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(site.url("search.html?q=protocol"))
    page.locator("#search-results li a", has_text="Task and prompt").wait_for()
    assert page.locator("#search-results .context").count() == 0
    page.goto(site.url("search.html?q=leaderboard"))
    page.locator("#search-results li p", has_text="On the surrogate corpus,").first.wait_for()
    page.close()


def test_a_search_leads_to_the_right_page_first(site: Site, browser: Browser) -> None:
    right = {
        "confusion matrix": "sections/errors",
        "temporal confusion": "sections/errors",
        "kappa": "sections/agreement",
        "Figure 13": "sections/training",
        "Table 11": "sections/per-label",
        "988": "help",
        "threshold": "sections/alarm-burden",
        "fine-tuning": "sections/training",
        "confirm_SI_passive_ongoing": "sections/per-label",
        "alluvial": "sections/adjudication",
        "how do I add my model": "sections/add-a-model",
        "license": "data-statement",
        "confidence interval": "sections/who-is-better",
        "leaderboard": "sections/results",
    }
    page, found = browser.new_page(), {}
    for words in right:
        page.goto((site.folder / "search.html").as_uri() + f"?q={quote(words)}")
        first = page.locator("#search-results li a").first
        found[words] = str(first.get_attribute("href")).partition(".html")[0]
    assert found == right
    page.close()


def test_the_search_stays_in_view(site: Site, browser: Browser) -> None:
    page = browser.new_page(viewport={"width": WIDE[0], "height": WIDE[1]})
    page.goto(site.url("data-statement.html"))
    bar = page.locator(".bd-sidebar-primary")
    bar.evaluate("bar => bar.scrollTo(0, bar.scrollHeight)")
    assert bar.evaluate("bar => bar.scrollTop") > 100
    box = page.locator(".bd-sidebar-primary .search-button-field").bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 60
    page.close()


def test_the_search_dialog_opens_from_the_keyboard(site: Site, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(site.url("sections/home.html"))
    page.keyboard.press("Control+k")
    field = page.locator(".search-button__search-container input")
    field.wait_for(state="visible")
    field.fill("results")
    field.press("Enter")
    page.locator("#search-results li a").first.wait_for()
    page.close()


def test_an_example_opens_when_a_reader_asks_for_it(site: Site, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(site.url("sections/errors.html"))
    example = page.locator("details.cradle-example").first
    example.locator("summary").focus()
    page.keyboard.press("Enter")
    example.locator(".cradle-turns").wait_for(state="visible")
    page.close()


def test_a_figure_is_inverted_in_the_dark_alone(site: Site, browser: Browser) -> None:
    page = browser.new_page()
    page.goto(site.url("sections/statistics.html"))
    figures = page.locator("figure.cradle-figure")
    assert figures.count() > 0
    assert figures.locator("figcaption:visible").count() == figures.count()
    for theme, inverted in (("light", False), ("dark", True)):
        set_theme(page, theme)
        style = "all => all.map(e => getComputedStyle(e).filter.includes('invert(1)'))"
        assert figures.locator("img").evaluate_all(style) == [inverted] * figures.count()
    page.close()


def test_heat_maps_and_the_alluvial_diagram_fit_a_phone_that_is_turned(
    site: Site, browser: Browser
) -> None:
    page = browser.new_page(viewport={"width": PHONE[1], "height": PHONE[0]})
    for name in ("errors", "adjudication"):
        page.goto(site.url(f"sections/{name}.html"))
        boxes = page.locator(".cradle-wide > .cradle-scroll")
        assert boxes.count() > 0
        beyond = "boxes => boxes.map(box => box.scrollWidth - box.clientWidth)"
        assert max(boxes.evaluate_all(beyond)) <= 0
    page.close()
