"""Holds the book's table of contents and the plan of its pages together."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import PurePosixPath
from typing import Any

from cradle_lib import bounded_yaml
from cradle_lib.book.plan import Page, Project
from cradle_lib.errors import BookError, compose


def check_toc(project: Project, pages: Sequence[Page]) -> None:
    """Holds the table of contents and the plan together.

    Raises:
        BookError: If a page is planned and not listed, or listed under ``sections/`` and not
            planned. A ``glob:`` entry lists every page that it matches.
    """
    try:
        content = bounded_yaml.read(project.toc)
    except FileNotFoundError:
        raise BookError(compose("no table of contents", path=project.toc)) from None
    except OSError as error:
        raise BookError(compose(f"can't be read ({error.strerror})", path=project.toc)) from None
    except ValueError as error:
        raise BookError(compose(f"not YAML: {error}", path=project.toc)) from None
    planned = {f"sections/{page.name}" for page in pages}
    files, globs = _listed(content)
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


def _listed(node: Any) -> tuple[set[str], set[str]]:
    files: set[str] = set()
    globs: set[str] = set()
    if isinstance(node, dict):
        files |= {str(value) for key, value in node.items() if key in ("file", "root")}
        globs |= {str(value) for key, value in node.items() if key == "glob"}
        children: Sequence[Any] = list(node.values())
    else:
        children = node if isinstance(node, list) else []
    for child in children:
        more_files, more_globs = _listed(child)
        files |= more_files
        globs |= more_globs
    return files, globs
