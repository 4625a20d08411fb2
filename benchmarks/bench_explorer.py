"""Speed of the explorer in a real browser: data size, first paint, filters, and scrolling.

Run with ``python -m benchmarks.bench_explorer``; it needs Chromium. The dialogues are the
surrogate's; twenty random systems have true and false positives. The page is opened from disk,
without the book around it. Times end with the next frame, so that they include drawing. Each is the
minimum of several tries, so that other processes disturb it little.
"""

from __future__ import annotations

import gzip
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from playwright.sync_api import Browser, Page

from benchmarks.size import SMALL, sized
from cradle_lib.corpus import Corpus
from cradle_lib.corpus.load import load_corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.explorer.explorer import explore
from cradle_lib.labels import BITS, format_mask
from cradle_lib.record import Record
from cradle_lib.scoring.analyses.explorer_data import explorer_data
from tests.book.explorer_site import write_site
from tests.book.site import browser

SYSTEMS, DIALOGUES = sized((20, 600), (2, 12))
VISITS, TRIES = sized((5, 3), (1, 1))
STEPS = sized(100, 5)
#: JavaScript: milliseconds from the change of a filter to the frame that shows it.
CHANGE = """([name, value]) => new Promise(done => {
  const control = document.querySelector(`.filters [name="${name}"]`);
  const start = performance.now();
  control.value = value;
  control.dispatchEvent(new Event("change", { bubbles: true }));
  requestAnimationFrame(() => setTimeout(() => done(performance.now() - start)));
})"""
#: JavaScript: scrolls from top to bottom in steps; milliseconds to draw each.
SCROLL = """async steps => {
  const box = document.querySelector(".rows");
  const times = [];
  for (let step = 1; step <= steps; step++) {
    const start = performance.now();
    box.scrollTop = box.scrollHeight * step / steps;
    await new Promise(done => requestAnimationFrame(() => setTimeout(done)));
    times.push(performance.now() - start);
  }
  return times;
}"""
PAINT = "performance.getEntriesByName('first-contentful-paint')[0].startTime"


@dataclass(frozen=True)
class Line:
    """One line of the table: a measured value and its limit."""

    what: str
    measured: float
    limit: float
    unit: str


def system(corpus: Corpus, number: int) -> Predictions:
    """Makes a system that finds a share of the labels and adds a random one to every 12th turn."""
    chance = np.random.default_rng(number)
    gold, turns = corpus.gold, len(corpus.gold)
    found = np.where(chance.random(turns) < (number + 1) / (SYSTEMS + 1), gold, 0)
    bits = np.array([*BITS.values()], dtype=np.uint16)
    masks = found | np.where(chance.random(turns) < 1 / 12, chance.choice(bits, turns), 0)
    outcomes = (chance.random(turns) < 0.02).astype(np.uint8)
    masks = np.where(outcomes == 0, masks, 0).astype(np.uint16)
    record = Record.create(
        model=f"system-{number}",
        name=f"System {number}",
        group="made up",
        engine="function",
        prompt="turn",
        prompt_hash="0" * 16,
        decoding={},
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )
    answers = tuple(map(format_mask, masks.tolist()))
    return Predictions(record, corpus, masks, outcomes, answers, turns)


def opened(opener: Browser, address: str) -> Page:
    """Opens the explorer in a new page and waits until it is ready."""
    page = opener.new_page(viewport={"width": 1280, "height": 900})
    page.goto(address)
    page.locator("#cradle-explorer[data-ready]").wait_for(state="attached")
    return page


def filters(page: Page) -> list[float]:
    """Measures each value of each filter, starting from the unfiltered list, in milliseconds."""
    times = []

    def cleared() -> None:
        page.locator(".clear").evaluate("button => button.click()")

    # The filter `who` reloads the page.
    controls = page.locator(".filters select:not([name=who])")
    for name in controls.evaluate_all("all => all.map(select => select.name)"):
        options = page.locator(f".filters [name={name}] option")
        for value in options.evaluate_all("all => all.map(option => option.value)"):
            tries = []
            for _ in range(TRIES):
                cleared()
                tries.append(page.evaluate(CHANGE, [name, value]))
            times.append(min(tries))
        cleared()
    return times


def main() -> bool:
    """Measures and prints one table.

    Returns:
        Whether all values are within their limits.
    """
    with tempfile.TemporaryDirectory() as folder, browser() as opener:
        corpus = load_corpus("surrogate").subset(range(DIALOGUES), "surrogate-test")
        runs = [system(corpus, number) for number in range(SYSTEMS)]
        explorer = explore(explorer_data(corpus, runs))
        size = sum(len(gzip.compress(content.encode())) for content in explorer.files.values())
        address = write_site(Path(folder), explorer)
        paints = []
        for _ in range(VISITS):
            page = opened(opener, address)
            paints.append(page.evaluate(PAINT))
            page.close()
        page = opened(opener, address)
        scrolled = [page.evaluate(SCROLL, STEPS) for _ in range(TRIES)]
        scrolls = list(map(min, zip(*scrolled, strict=True)))
        slowest = max(filters(page))
        page.close()
    lines = [
        Line(f"{DIALOGUES} dialogues, {SYSTEMS} systems: data, compressed", size / 1e6, 1, "MB"),
        Line(f"first paint, fastest of {VISITS} visits", min(paints), 300, "ms"),
        Line("slowest of all filters", slowest, 100, "ms"),
        Line(f"slowest of {STEPS} jumps", max(scrolls), 100, "ms"),
    ]
    for line in lines:
        verdict = "yes" if line.measured <= line.limit else "NO"
        print(
            f"{line.what:<52} {line.measured:8.2f} {line.unit}   "
            f"at most {line.limit:g} {line.unit}: {verdict}"
        )
    return SMALL or all(line.measured <= line.limit for line in lines)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
