"""Reads notebook sources: cells, title, and the names of parameters.

Only cell types, sources, tags and attached images are read, which determine the result. Outputs,
execution counts and an editor's metadata never make a page stale.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cradle_lib.errors import BookError

PARAMETERS_TAG: Final = "parameters"
_ASSIGNED: Final = re.compile(r"^(\w+) *(?::[^=\n]*)?=", re.MULTILINE)
_KINDS: Final = {kind: kind for kind in ("code", "markdown", "raw")}
_HEADING: Final = re.compile(r"^# .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook source: its path, and its cells in order, as notebooks of format 4 have them."""

    path: Path
    cells: tuple[dict[str, Any], ...]

    @classmethod
    def read(cls, path: Path) -> Notebook:
        """Reads a notebook.

        Raises:
            BookError: If the file is missing, can't be read, or is not a notebook of format 4.
        """
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            cells = tuple(_read_cell(*numbered) for numbered in enumerate(content["cells"]))
        except FileNotFoundError:
            hint = "Restore it, or remove its entry from notebooks/pages.yml."
            raise BookError("there is no such notebook", path=path, hint=hint) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            problem = f"not a notebook of format 4 ({type(error).__name__}: {error})"
            raise BookError(problem, path=path) from None
        return cls(path, cells)

    @property
    def canonical(self) -> str:
        """The cells as JSON, independent of how the file was formatted."""
        return json.dumps(self.cells)

    def to_node(self) -> Any:
        """Gives the cells as a notebook of nbformat, without outputs."""
        import nbformat

        content = {"cells": [*self.cells], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
        return nbformat.from_dict(content)  # type: ignore[no-untyped-call]

    def check_parameters(self, values: Iterable[str]) -> None:
        """Refuses values that no cell with the tag ``parameters`` assigns."""
        tagged = (cell for cell in self.cells if PARAMETERS_TAG in cell["metadata"]["tags"])
        declared = _ASSIGNED.findall("\n".join(cell["source"] for cell in tagged))
        for name in values:
            if name not in declared:
                problem = f"unknown parameter {name!r}; the notebook declares: "
                raise BookError(problem + (", ".join(declared) or "none"), path=self.path)


def _read_cell(number: int, cell: Mapping[str, Any]) -> dict[str, Any]:
    """Reads the parts of a cell that determine the result."""
    # Some programs write null for an empty list.
    tags = (cell.get("metadata") or {}).get("tags") or ()
    found: dict[str, Any] = {
        "cell_type": _KINDS[cell["cell_type"]],
        "id": f"cell-{number}",
        "metadata": {"tags": list(dict.fromkeys(tags))},
        "source": "".join(cell["source"]),
    }
    if images := cell.get("attachments"):
        found["attachments"] = images
    if found["cell_type"] == "code":
        found |= {"execution_count": None, "outputs": []}
    return found


def find_title(cells: Sequence[Mapping[str, Any]]) -> tuple[int, re.Match[str]] | None:
    """Finds the first heading of level 1: the index of its cell, and its match in the text."""
    for place, cell in enumerate(cells):
        heading = _HEADING.search("".join(cell["source"]))
        if heading is not None and cell["cell_type"] == "markdown":
            return place, heading
    return None
