"""A notebook as its author wrote it: cells, code, and the names of its parameters.

Only what decides the result is read: cell types, sources and tags. Outputs, execution
counts and an editor's own metadata never make a page stale.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cradle_lib.errors import BookError

PARAMETERS_TAG: Final = "parameters"
_HEADING: Final = re.compile(r"^# .*$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell: ``code``, ``markdown`` or ``raw``, its text and its tags."""

    kind: str
    source: str
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Notebook:
    """A notebook source: where it lies, and its cells in order."""

    path: Path
    cells: tuple[Cell, ...]

    @classmethod
    def read(cls, path: Path) -> Notebook:
        """Reads a notebook; a file that is none, of format 4, is an error."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            cells = tuple(
                Cell(
                    kind=str(cell["cell_type"]),
                    source="".join(cell["source"]),
                    tags=tuple(cell.get("metadata", {}).get("tags", ())),
                )
                for cell in content["cells"]
            )
        except FileNotFoundError:
            raise BookError("no such notebook", path=path) from None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"not a notebook of format 4 ({type(error).__name__}: {error})"
            raise BookError(problem, path=path) from None
        return cls(path, cells)

    @property
    def canonical(self) -> str:
        """The cells as JSON, the same however the file was saved."""
        rows = [[cell.kind, cell.source, list(cell.tags)] for cell in self.cells]
        return json.dumps(rows, ensure_ascii=False, separators=(",", ":"))

    def parameters(self) -> list[str]:
        """Reads the names that the cells tagged ``parameters`` assign, in order.

        A cell that does not parse is an error.
        """
        source = "\n".join(c.source for c in self.cells if PARAMETERS_TAG in c.tags)
        try:
            statements = ast.parse(source).body
        except SyntaxError as error:
            problem = f"the parameters cell does not parse: {error.msg}, line {error.lineno}"
            raise BookError(problem, path=self.path) from None
        targets = [
            target
            for node in statements
            if isinstance(node, ast.Assign | ast.AnnAssign)
            for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        ]
        return [target.id for target in targets if isinstance(target, ast.Name)]

    def check_parameters(self, values: Iterable[str]) -> None:
        """Refuses values that the notebook does not declare."""
        declared = self.parameters()
        for name in values:
            if name not in declared:
                problem = f"unknown parameter {name!r}; the notebook declares: "
                raise BookError(problem + (", ".join(declared) or "none"), path=self.path)


def find_title(cells: Sequence[Mapping[str, Any]]) -> tuple[int, re.Match[str]] | None:
    """Finds the first heading of the first level: the place of its cell, and where it stands."""
    for place, cell in enumerate(cells):
        heading = _HEADING.search("".join(cell["source"]))
        if heading is not None and cell["cell_type"] == "markdown":
            return place, heading
    return None
