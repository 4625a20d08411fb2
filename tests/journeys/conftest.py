"""The clone of all journeys, built once as a newcomer builds it."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from .checkout import Checkout

_HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.journeys)


@pytest.fixture(scope="session")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A fresh clone in which the first two builds of the book were interrupted.

    The first is interrupted from the keyboard, the second is killed.
    """
    clone = Checkout.clone(tmp_path_factory.mktemp("newcomer") / "cradle")
    code, printed = clone.interrupt("make book", until_executing, signal.SIGINT)
    assert code != 0, printed
    assert "Traceback" not in printed, printed
    clone.interrupt("make book", until_executing, signal.SIGKILL)
    return clone


def until_executing(build: subprocess.Popen[str]) -> None:
    """Reads what a build prints until it executes a page."""
    assert build.stdout is not None
    printed = []
    for line in build.stdout:
        printed.append(line)
        if "executing" in line:
            return
    raise AssertionError("".join(printed))


@pytest.fixture(scope="session")
def built(interrupted: Checkout) -> Checkout:
    """The clone with its book. Tests that change it use a copy."""
    interrupted.run("make book")
    return interrupted


@pytest.fixture
def copied(built: Checkout, tmp_path: Path) -> Checkout:
    """A copy of the clone with its book."""
    return built.copy(tmp_path / "cradle")
