"""Holds the book's table of contents and the plan of its pages together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath
from typing import Any

from pydantic import RootModel

from cradle_lib.book.plan import Page, Project
from cradle_lib.book.yaml_file import read_yaml
from cradle_lib.errors import BookError, compose


def check_toc(project: Project, pages: Sequence[Page]) -> None:
    """Holds the table of contents and the plan together.

    Raises:
        BookError: If a page is planned and not listed, or listed under ``sections/`` and not
            planned. A ``glob:`` entry lists every page that it matches.
    """
    items = [*_items(read_yaml(project.toc, RootModel[Any], "no table of contents").root)]
    planned = {f"sections/{page.name}" for page in pages}
    files = {str(value) for key, value in items if key in ("file", "root")}
    globs = {str(value) for key, value in items if key == "glob"}
    listed = {name.removesuffix(".ipynb") for name in files if name.startswith("sections/")}
    covered = {name for name in planned for glob in globs if PurePosixPath(name).match(glob)}
    missing, extra = sorted(planned - listed - covered), sorted(listed - planned)
    if missing:
        lines = ", ".join(f"`- file: {name}`" for name in missing)
        raise BookError(
            compose("a planned page is not listed", path=project.toc, hint=f"Add {lines}.")
        )
    if extra:
        where = project.shown(project.plan)
        raise BookError(
            compose(f"{', '.join(extra)}: no entry of {where} makes this page", path=project.toc)
        )


def _items(node: Any) -> Iterator[tuple[Any, Any]]:
    """Every key with its value, however deep it lies."""
    if isinstance(node, dict):
        yield from node.items()
        node = list(node.values())
    if isinstance(node, list):
        for child in node:
            yield from _items(child)
