"""Decides whether a page is up to date, from digests of everything that its result depends on.

A page's ingredients are the cells of its notebook, its parameters, and, if it uses them, the
book's corpus and its runs. All pages share the library, the modules beside the notebooks, the
shipped data, and the versions of Python and of the numerical packages. The digests are stored in
the executed notebook, with one of its own content, so that a page that was edited is executed
again. Dates are not compared, so a fresh clone, a touched file or a reverted edit executes nothing.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.book.plan import Page, Project
from cradle_lib.files import visible_files
from cradle_lib.record import installed

METADATA: Final = "cradle"
_DIGITS: Final = 16
# Shipped data outside the library. The release is an ingredient of the pages about it.
_DATA: Final = ("data", "benchmarks/results", "models.yml")
_RELEASE: Final = "release"
# Not shown on any page but its own.
_TEMPLATE_RUN: Final = f"{paths.TEMPLATE_RUN}.jsonl"
_PACKAGES: Final = ("numpy", "pandas", "scipy", "scikit-learn", "matplotlib", "seaborn")


def digest(content: bytes) -> str:
    """Gives the first sixteen hexadecimal digits of the SHA-256."""
    return hashlib.sha256(content).hexdigest()[:_DIGITS]


class Ingredients:
    """Computes the ingredients of pages.

    Everything except runs is read by the constructor, so that an edit during a long build makes
    the next build execute the page again.
    """

    def __init__(self, project: Project, pages: Iterable[Page]) -> None:
        self.project = project
        self.pages = {page.name: page for page in pages}
        # Pages don't use the command line.
        library = digest_of(project, project.packages, excluded={"__pycache__", "cli"})
        release = _combined(digest_of(project, [f"data/{_RELEASE}"]))
        common = {
            "python": ".".join(map(str, sys.version_info[:2])),
            "packages": json.dumps(installed(_PACKAGES)),
            "library": _combined(library),
            "modules": _combined(digest_of(project, ["notebooks/**/*.py"])),
            "data": _combined(digest_of(project, _DATA, excluded={_RELEASE})),
        }
        self._fixed = {}
        for name, page in self.pages.items():
            found = common | {"notebook": digest(page.notebook.canonical.encode())}
            found["parameters"] = json.dumps(page.parameters, sort_keys=True)
            if page.corpus is not None:
                found["corpus"] = page.corpus.identity(project.root)
                # The identity covers only the test split.
                found |= {_RELEASE: release} if page.corpus.choice == "hub" else {}
            self._fixed[name] = found

    def of(self, page: Page) -> dict[str, str]:
        """Maps the ingredients of a page, such as ``data``, to their digests.

        The pages in its ``after`` must be up to date. The page's own artefacts are no ingredients.
        """
        before = [pattern for name in page.after for pattern in self.pages[name].provides]
        runs = digest_of(self.project, page.runs, excluded={_TEMPLATE_RUN})
        runs |= digest_of(self.project, before)
        own = digest_of(self.project, page.provides)
        found = {f"run {path}": value for path, value in runs.items() if path not in own}
        return self._fixed[page.name] | found

    def stale(self, page: Page, ingredients: dict[str, str]) -> str | None:
        """Says why a page must be executed, or ``None`` if it is up to date."""
        file = self.project.sections / f"{page.name}.ipynb"
        stored = stored_state(file)
        if stored is None:
            return "not executed yet"
        if stored.get("page") != page_digest(json.loads(file.read_text(encoding="utf-8"))):
            return "changed: the executed page"
        if stored.get("artefacts") != digest_of(self.project, page.provides):
            return "changed: its artefacts"
        before = stored.get("ingredients", {})
        names = sorted({*ingredients, *before})
        changed = [name for name in names if ingredients.get(name) != before.get(name)]
        return f"changed: {', '.join(changed[:3])}" if changed else None


def page_digest(content: dict[str, Any]) -> str:
    """Gives the digest of an executed notebook without the digest that it stores."""
    state = {k: v for k, v in content["metadata"][METADATA].items() if k != "page"}
    metadata = content["metadata"] | {METADATA: state}
    return _combined(content | {"metadata": metadata})


def _combined(content: dict[str, Any]) -> str:
    return digest(json.dumps(content, sort_keys=True).encode())


def digest_of(
    project: Project, patterns: Iterable[str], excluded: Iterable[str] = ()
) -> dict[str, str]:
    """Maps files that match a pattern, or are in a folder that does, to their digests.

    Files in folders with an ``excluded`` name are skipped. A file that can't be read has no
    digest, but an empty text: the pages say why.
    """
    matched = [path for pattern in patterns for path in visible_files(project.root, pattern)]
    # Nothing is below a matched file: it counts itself.
    files = {file for path in matched for file in (visible_files(path, "**/*") or [path])}
    return {
        project.shown(file): _digest_of_file(file)
        for file in sorted(files)
        if file.is_file() and not {*excluded} & {*file.relative_to(project.root).parts}
    }


def _digest_of_file(file: Path) -> str:
    try:
        return digest(file.read_bytes())
    except PermissionError:
        return ""


def stored_state(output: Path) -> dict[str, Any] | None:
    """Reads the ingredients and artefacts that the pipeline stored in an executed notebook.

    ``None`` if the file is missing, incomplete, or not made by the pipeline.
    """
    try:
        stored = json.loads(output.read_text(encoding="utf-8"))["metadata"][METADATA]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return stored if isinstance(stored, dict) else None
