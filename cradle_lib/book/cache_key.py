"""What a page's result depends on, as content, never as dates.

A page's ingredients are the cells of its notebook, its parameters, the bytes of its inputs and of
the runs that it reads, the whole content of the library, and the versions of Python and of the
packages that the book needs. An optional package may come and go without making a page stale: what
it did to a run is in the run's record. Their digest is the page's key. It is stored in the executed
notebook, so a fresh clone, a touched file or an edit that was taken back executes nothing.
"""

from __future__ import annotations

import hashlib
import json
import re
import sys
from collections.abc import Iterable, Mapping
from contextlib import suppress
from importlib import metadata
from pathlib import Path
from typing import Any, Final

from cradle_lib.book.plan import Page, Project
from cradle_lib.errors import BookError
from cradle_lib.files import visible_files

METADATA: Final = "cradle"
_DIGITS: Final = 16


def digest(content: bytes) -> str:
    """Gives the first sixteen hexadecimal digits of the SHA-256."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


def key_of(ingredients: Mapping[str, str]) -> str:
    """Gives the key: the SHA-256 of the ingredients, in hexadecimal."""
    canonical = json.dumps(dict(ingredients), sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(canonical.encode()).hexdigest()


class Ingredients:
    """Finds what pages rest on, and reads every input only once.

    Everything but runs and artefacts is read when it is made, so that an edit during a long
    build makes the next build execute the page again.
    """

    def __init__(self, project: Project, pages: Iterable[Page]) -> None:
        """Finds what does not come from other pages; an input that is missing is an error."""
        self.project = project
        self.pages = {page.name: page for page in pages}
        self._digests: dict[Path, str] = {}
        self._common = {
            "python": ".".join(map(str, sys.version_info[:2])),
            "packages": digest("\n".join(_packages()).encode()),
            "library": self._library(),
        }
        self._fixed = {name: self._find(page) for name, page in self.pages.items()}

    def of(self, page: Page) -> dict[str, str]:
        """Maps the ingredients of a page, such as ``input data/published.csv``, to their digests.

        The pages before it must be up to date.
        """
        found = dict(self._fixed[page.name])
        before = [pattern for name in page.after for pattern in self.pages[name].provides]
        for kind, patterns in (("artefact", before), ("run", page.runs)):
            for path, value in artefacts(self.project, patterns).items():
                found[f"{kind} {path}"] = value
        return found

    def stale(self, page: Page, ingredients: Mapping[str, str]) -> str | None:
        """Says why a page must be executed, or ``None`` if it is up to date."""
        stored = stored_state(self.project.sections / f"{page.name}.ipynb")
        if stored is None:
            return "not executed yet"
        if stored.get("key") != key_of(ingredients):
            before = stored.get("ingredients")
            before = before if isinstance(before, dict) else {}
            names = sorted({*ingredients, *before})
            changed = [name for name in names if ingredients.get(name) != before.get(name)]
            more = f" and {len(changed) - 1} more" if len(changed) > 1 else ""
            return f"changed: {changed[0]}{more}" if changed else "changed"
        if stored.get("artefacts") != artefacts(self.project, page.provides):
            return "changed: what it provides"
        return None

    def _find(self, page: Page) -> dict[str, str]:
        shown = self.project.shown
        found = {"notebook": digest(page.notebook.canonical.encode()), **self._common}
        for name, value in page.parameters.items():
            found[f"parameter {name}"] = json.dumps(value, sort_keys=True)
        for pattern in page.inputs:
            matched = _match(self.project.root, pattern)
            if not matched:
                problem = f"page {page.name!r} reads {pattern!r}, which matches no file"
                raise BookError(problem, path=self.project.plan)
            found |= {f"input {shown(file)}": self._digest(file) for file in matched}
        return found

    def _library(self) -> str:
        """Digests the library, files with their places, but the commands: no page can use them."""
        root = self.project.root
        lines = [
            f"{file.relative_to(root)} {self._digest(file)}"
            for package in self.project.packages
            for file in visible_files(root / package, "**/*")
            if file.is_file() and not {"__pycache__", "cli"} & {*file.relative_to(root).parts}
        ]
        return digest("\n".join(lines).encode())

    def _digest(self, file: Path) -> str:
        if file not in self._digests:
            self._digests[file] = digest(file.read_bytes())
        return self._digests[file]


def artefacts(project: Project, patterns: Iterable[str]) -> dict[str, str]:
    """Maps the files that exist now, relative to the repository, to their digests."""
    files = {file for pattern in patterns for file in _match(project.root, pattern)}
    return {project.shown(file): digest(file.read_bytes()) for file in sorted(files)}


def stored_state(output: Path) -> dict[str, Any] | None:
    """Reads the key, ingredients and artefacts that the pipeline stored in an executed notebook.

    ``None`` if the file is missing, torn, or not made by the pipeline.
    """
    try:
        stored = json.loads(output.read_text(encoding="utf-8"))["metadata"][METADATA]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stored if isinstance(stored, dict) else None


def _match(root: Path, pattern: str) -> list[Path]:
    found = [Path(pattern)] if Path(pattern).is_absolute() else visible_files(root, pattern)
    return [file for file in found if file.is_file()]


def _packages() -> list[str]:
    """Lists the packages without which there is no book, with their versions."""
    try:
        wanted = metadata.requires("cradle-lib") or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for line in wanted:
        name = re.match(r"[A-Za-z0-9._-]+", line)
        if name and ("extra" not in line or re.search(r"extra == .book.", line)):
            with suppress(metadata.PackageNotFoundError):
                found.append(f"{name[0]} {metadata.version(name[0])}")
    return sorted(found)
