"""The clone of all journeys, built once as a newcomer builds it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cradle_lib import paths

from ..book.site import in_ci
from .checkout import Checkout

_HERE = Path(__file__).parent
#: Everything that `make book` makes.
BUILT = ["book/_build", "book/sections", "runs"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.is_relative_to(_HERE):
            item.add_marker(pytest.mark.journeys)


@pytest.fixture(scope="session")
def built(tmp_path_factory: pytest.TempPathFactory) -> Checkout:
    """A fresh clone with its book. Tests that change it use a copy.

    `.ci/run` starts with `make book` in a fresh clone, so there the clone has that book from the
    start, and its own build finds every page up to date.
    """
    clone = Checkout.clone(tmp_path_factory.mktemp("newcomer") / "cradle")
    for name in BUILT:
        if in_ci() and (paths.ROOT / name).is_dir():
            shutil.copytree(paths.ROOT / name, clone.folder / name, dirs_exist_ok=True)
    clone.run("make book")
    return clone


@pytest.fixture
def copied(built: Checkout, tmp_path: Path) -> Checkout:
    """A copy of the clone with its book."""
    return built.copy(tmp_path / "cradle")
