"""Builds the book, serves it on loopback, and opens it in a real browser."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property, partial
from http.server import SimpleHTTPRequestHandler
from pathlib import Path

from filelock import FileLock
from playwright.sync_api import Browser, Page, sync_playwright

from ..loopback import Handler, Loopback

ROOT = Path(__file__).resolve().parents[2]
COMMAND = ("jupyter-book", "build", "--warningiserror", "--keep-going", "book/")
WIDE, PHONE = (1280, 900), (390, 844)
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
)


class _Files(SimpleHTTPRequestHandler):
    log_message = Handler.log_message


@dataclass(frozen=True)
class Site:
    """A folder of pages and the address at which it is served."""

    folder: Path
    address: str

    @property
    def pages(self) -> list[str]:
        """All pages, including the search page, without redirects."""
        return [page for page in self._found if page not in self.redirects]

    @property
    def redirects(self) -> list[str]:
        """Redirects from old addresses and from the root."""
        heads = {page: (self.folder / page).read_text("utf-8")[:500] for page in self._found}
        return [page for page, head in heads.items() if 'http-equiv="refresh"' in head.lower()]

    @cached_property
    def _found(self) -> list[str]:
        found = sorted(str(path.relative_to(self.folder)) for path in self.folder.rglob("*.html"))
        return [page for page in found if not page.startswith("_")]

    def url(self, page: str) -> str:
        return f"{self.address}/{page}"


def build() -> Path:
    """Builds the book with the command of the README, once per test run."""
    command = [str(Path(sys.executable).with_name(COMMAND[0])), *COMMAND[1:]]
    run, built_for = os.environ.get("PYTEST_XDIST_TESTRUNUID"), ROOT / "book/_build/test-run"
    # A second build would remove files that another worker's browser uses.
    with FileLock(ROOT / "book/_build.lock"):
        if run is None or not built_for.exists() or built_for.read_text() != run:
            done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
            if done.returncode:
                output = f"{done.stdout[-3000:]}\n{done.stderr}"
                raise RuntimeError(f"{' '.join(COMMAND)} failed:\n{output}")
            built_for.write_text(run or "")
    return ROOT / "book/_build/html"


@contextmanager
def serve(folder: Path) -> Iterator[Site]:
    with Loopback(partial(_Files, directory=str(folder))) as server:
        yield Site(folder, server.url)


def chromium() -> str | None:
    """Returns the path of the browser, if one is installed."""
    names = ("chromium", "chromium-browser", "google-chrome")
    return next((path for name in names if (path := shutil.which(name))), None)


def in_ci() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


@contextmanager
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=chromium(), args=list(FLAGS))
        try:
            yield opened
        finally:
            opened.close()


def set_theme(page: Page, theme: str) -> None:
    """Sets the light or dark theme like the theme's button."""
    page.evaluate(
        "theme => { document.documentElement.dataset.mode = theme;"
        " document.documentElement.dataset.theme = theme; }",
        theme,
    )
