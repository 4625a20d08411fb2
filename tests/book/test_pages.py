"""Checks of every page in a real browser: errors, accessibility, layout, help and search."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
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

from .layout import LAYOUT
from .site import PHONE, WIDE, Site, set_theme

# Elements beyond the right edge that are not in a scrolling or clipping box.
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
  open: document.querySelectorAll('article details[open]:not(.narrow, .cradle-help)').length,
  noAlt: [...document.images].filter(i => !i.alt.trim()).map(i => i.outerHTML.slice(0, 80)),
  notebook: !!document.querySelector('a[href*="_sources/"][href$=".ipynb"]'),
  title: document.title,
  lang: document.documentElement.lang,
})"""


@dataclass
class Visit:
    """Observations of one page in one view."""

    page: str
    view: str
    errors: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)
    barriers: list[str] = field(default_factory=list)
    sticking_out: list[str] = field(default_factory=list)
    facts: dict[str, Any] = field(default_factory=dict)
    layout: dict[str, Any] = field(default_factory=dict)


# The parts of the book whose pages open with a result.
PARTS = {"Task and corpus", "Annotation", "Results", "Dialogue by dialogue"}
CONTRAST = "runOnly: ['color-contrast']"
# Removes elements before axe runs, which saves three quarters of its time: closed details, which
# it skips, later rows and members, which are similar, and the list of pages, which is everywhere.
SHORTEN = """contents => document.querySelectorAll(
  'tbody tr:nth-child(n+5), dl.py:nth-of-type(n+5), .cradle-spot:nth-of-type(n+9), ' +
  'article details:not([open]) > :not(summary)' + (contents ? '' : ', .bd-sidebar-primary')
).forEach(e => e.remove())"""


def violations(page: Page, question: str) -> list[str]:
    """Returns the violations that axe finds on a page."""
    page.evaluate(AXE_SCRIPT)
    asked = f"axe.run({{{question}, resultTypes: ['violations']}}).then(found => found.violations)"
    return [
        f"{found['id']}: {node['target']} {node['html'][:120]}"
        for found in page.evaluate(asked)
        for node in found["nodes"]
    ]


def weight(site: Site, visit: Visit) -> int:
    """Sums the bytes of the files of a page, without those of the theme, which are cached."""
    addresses = {urlsplit(url.removeprefix(site.address)).path for url in visit.requests}
    files = {site.folder / unquote(path).lstrip("/") for path in addresses}
    own = (path for path in files if site.folder / "_static" not in path.parents)
    return sum(path.stat().st_size for path in own if path.is_file())


@pytest.fixture(scope="module")
def visits(site: Site, browser: Browser) -> list[Visit]:
    """All pages, visited wide from a server, with axe in both themes, and narrow from disk."""
    found: list[Visit] = []
    for view, (width, height) in {"wide": WIDE, "phone": PHONE}.items():
        # One tab for all pages, because each tab is a new process.
        size = {"width": width, "height": height}
        page = browser.new_page(reduced_motion="reduce", viewport=size)
        page.on("pageerror", lambda error: found[-1].errors.append(str(error)))
        page.on("request", lambda request: found[-1].requests.append(request.url))
        page.on("console", lambda message: found[-1].errors.append(message.text))
        for name in site.pages:
            visit = Visit(name, view)
            found.append(visit)
            file = site.folder / name
            page.goto(site.url(name) if view == "wide" else file.as_uri(), wait_until="load")
            visit.layout = page.evaluate(LAYOUT)
            visit.facts = page.evaluate(FACTS)
            visit.sticking_out = page.evaluate(STICKING_OUT)
            if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
                visit.sticking_out.append("the page")
            if view == "wide":
                page.evaluate(SHORTEN, len(found) == 1)
                for theme, question in (("dark", CONTRAST), ("light", "rules: {}")):
                    set_theme(page, theme)
                    visit.barriers += violations(page, question)
        page.close()
    return found


def sections(visits: list[Visit]) -> list[Visit]:
    found = [visit for visit in visits if visit.page.startswith("sections/")]
    assert len(found) >= 40
    return found


def test_pages_have_no_errors_violations_or_external_requests(
    visits: list[Visit], site: Site
) -> None:
    ours = ("data:", site.address, site.folder.as_uri())
    for visit in visits:
        # The theme logs its scrolling.
        assert [text for text in visit.errors if not text.startswith("[PST]")] == [], visit.page
        assert [url for url in visit.requests if not url.startswith(ours)] == [], visit.page
    assert {v.page: v.barriers for v in visits if v.barriers} == {}


def test_nothing_overflows_the_window_or_is_cut(visits: list[Visit]) -> None:
    assert {(v.page, v.view): v.sticking_out for v in visits if v.sticking_out} == {}
    for fault in ("unmarked", "loose", "signs", "captions", "cut", "tall", "above", "uneven"):
        assert {(v.page, v.view): v.layout[fault] for v in visits if v.layout[fault]} == {}, fault


def test_a_section_starts_with_its_finding_and_links_its_notebook(visits: list[Visit]) -> None:
    for visit in sections(visits):
        finding = str(visit.layout["finding"]).strip()
        assert visit.layout["opens"], visit.page
        assert finding.endswith("."), visit.page
        assert not re.search(r"\bnan\b|None", finding), finding
        assert visit.facts["notebook"], visit.page


def test_the_first_result_is_on_the_first_screen(visits: list[Visit]) -> None:
    parts = read_yaml(paths.BOOK / "_toc.yml", RootModel[Any]).root["parts"]
    chapters = [
        chapter for part in parts if part["caption"] in PARTS for chapter in part["chapters"]
    ]
    files = [chapter["file"] for chapter in chapters if "file" in chapter]
    results = {f"{name}.html" for name in files if name.startswith("sections/")}
    assert len(results) >= 10
    shown = [v for v in visits if v.page in results]
    assert len(shown) == 2 * len(results)
    limits = {"wide": 600, "phone": 900}
    assert {v.page: v.layout["top"] for v in shown if v.layout["top"] > limits[v.view]} == {}


def test_half_of_the_pages_are_smaller_than_300_kilobytes(visits: list[Visit], site: Site) -> None:
    weights = {v.page: weight(site, v) for v in visits if v.view == "wide"}
    assert min(weights.values()) > 10_000
    assert median(weights.values()) < 300_000
    assert {page: size for page, size in weights.items() if size > 1_300_000} == {}


def test_every_page_has_help_lines_its_purpose_and_its_corpus(visits: list[Visit]) -> None:
    for visit in visits:
        facts = visit.facts
        assert facts["help"], visit.page
        assert facts["header"], visit.page
        assert all(facts["ways"]), visit.page
        assert not facts["unnamed"], visit.page
        assert "checked on" in facts["checked"], visit.page
        assert "Not triage" in facts["purpose"], visit.page
        assert facts["lang"] == "en", visit.page
        assert facts["noAlt"] == [], visit.page
        assert not facts["open"], visit.page
        assert not facts["visibleTurns"], visit.page
        assert facts["warned"], visit.page
    assert any(visit.facts["examples"] for visit in visits)
    titles = [visit.facts["title"] for visit in visits if visit.view == "wide"]
    assert len({*titles}) == len(titles)
    for visit in sections(visits):
        assert visit.facts["corpus"], visit.page
        surrogate = str(visit.facts["corpus"]).startswith("surrogate")
        assert surrogate == ("says nothing" in visit.facts["notice"]), visit.page
        assert surrogate == ("Surrogate corpus" in visit.facts["line"]), visit.page


def test_questions_find_the_right_page(site: Site, tab: Page) -> None:
    right = {
        "passive active confusion": "sections/errors",
        "how many false alarms per day": "sections/alarm-burden",
        "a missed crisis": "sections/errors",
        "how is alpha computed": "sections/agreement",
        "how do I add my model": "sections/add-a-model",
        "where is Table 5": "sections/results",
        "exact prompt of the leader": "protocol",
        "is the difference between two systems significant": "sections/who-is-better",
        "what is simulated": "data-statement",
        "how was the corpus made": "sections/construction",
        "how late does a system raise an alert": "sections/timing",
        "run on a cluster with several GPUs": "sections/run-a-model",
        "use my own dialogues without labels": "own-dialogues",
        "downlaod the real data": "real-data",
        "suicide hotline number": "help",
        "what does a run cost with GPT": "sections/run-a-model",
        "LoRA fine-tuning recipe": "sections/training",
        "confirm_SI_passive_ongoing": "sections/per-label",
        "which model is best": "sections/results",
        "Figure 13": "sections/training",
    }
    found = {}
    for words in right:
        # From a folder, without a server.
        tab.goto((site.folder / "search.html").as_uri() + f"?q={quote(words)}")
        tab.locator("#search-results mark").first.wait_for()
        links = tab.locator("#search-results a").evaluate_all("all => all.map(a => a.pathname)")
        found[words] = [
            Path(link).relative_to(site.folder).with_suffix("").as_posix() for link in links
        ]
    first = [words for words, page in right.items() if found[words][0] == page]
    assert len(first) >= 18, {words: found[words][0] for words in right if words not in first}
    assert [words for words, page in right.items() if page not in found[words]] == []


#: What a reader wants to know: the links and folded parts on the way from the first page, and words
#: that are then visible.
TASKS = {
    "which label is confused with which": (["Errors"], "confirm_SI_active_ongoing as"),
    "the F1 of Claude for each label": (["By label"], "none of Claude"),
    "a missed crisis, read": (["Errors", "Missed confirm"], "Listener"),
    "how alpha is computed": (["Annotators and agreement"], "compares the whole label sets"),
    "add my model": (["Add a model"], "cradle fork"),
    "where Table 5 is": (["What is reproduced", "Leaderboard"], "Confirms"),
    "the prompt of the best system": (["Task and prompt", "The prompt brief"], "Label the last"),
    "is a difference significant": (["Are the differences real?"], "significantly better"),
    "what is simulated": (["Data statement"], "until the release is fetched"),
    "how the corpus was made": (["Generation and validation"], "dialogue by dialogue, from plans"),
}


@pytest.mark.parametrize("task", TASKS)
def test_a_reader_finds_an_answer_within_two_clicks(site: Site, tab: Page, task: str) -> None:
    clicks, answer = TASKS[task]
    tab.goto(site.url("sections/home.html"))
    for name in clicks:
        link = tab.get_by_role("link", name=name, exact=True)
        folded = tab.locator("article summary", has_text=name)
        (link if link.count() else folded).first.click()
    tab.wait_for_load_state()
    assert answer in tab.locator("article").inner_text()


def test_the_search_follows_what_is_typed_and_shows_nothing_collapsed(
    site: Site, tab: Page
) -> None:
    tab.goto(site.url("search.html"))
    results = tab.locator("#search-results li")
    assert results.count() == 0
    tab.keyboard.type("cohens kapa")
    results.filter(has_text="kappa").first.wait_for()
    tab.keyboard.type(" qqq")
    assert results.count() > 0
    tab.locator("#search-page-input").fill("qqqqq")
    tab.locator("#search-count", has_text="Nothing was found").wait_for()
    tab.goto(site.url("sections/errors.html"))
    said = tab.locator(".cradle-example .cradle-turns p").all_text_contents()
    sections = (site.folder / "search-sections.js").read_text("utf-8")
    long = [line for line in said if len(line) > 60]
    assert long
    assert not [line for line in long if line[:50] in sections]


def test_figures_are_inverted_in_the_dark_theme_only(site: Site, tab: Page) -> None:
    tab.goto(site.url("sections/statistics.html"))
    figures = tab.locator("figure.cradle-figure")
    assert figures.count() > 0
    assert figures.locator("figcaption:visible").count() == figures.count()
    for theme, inverted in (("light", False), ("dark", True)):
        set_theme(tab, theme)
        style = "all => all.map(e => getComputedStyle(e).filter.includes('invert(1)'))"
        assert figures.locator("img").evaluate_all(style) == [inverted] * figures.count()
