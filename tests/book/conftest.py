from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from . import site as book


@pytest.fixture(scope="session")
def site() -> Iterator[book.Site]:
    with book.serve(book.build()) as served:
        yield served


# Module scope, because other tests can't run an event loop while Playwright's is running.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if book.chromium() is None:
        reason = "no chromium on this machine: apt-get install chromium"
        pytest.fail(reason) if book.in_ci() else pytest.skip(reason)
    with book.browser() as opened:
        yield opened


@pytest.fixture
def tab(browser: Browser) -> Iterator[Page]:
    """A tab of the width of a desktop."""
    opened = browser.new_page(
        viewport={"width": book.WIDE[0], "height": book.WIDE[1]}, reduced_motion="reduce"
    )
    yield opened
    opened.close()
