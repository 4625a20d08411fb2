"""A notebook as its author wrote it: cells, code, and parameters with their types.

Only what decides the result is read: cell types, sources and tags. Outputs, execution
counts and an editor's own metadata never make a page stale.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, Union

from pydantic import TypeAdapter, ValidationError

from cradle_lib.errors import BookError

PARAMETERS_TAG: Final = "parameters"
_HEADING: Final = re.compile(r"^# .*$", re.MULTILINE)
_SIMPLE: Final[Mapping[str, Any]] = {"str": str, "int": int, "float": float, "bool": bool}


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

    def parameter_types(self) -> dict[str, Any]:
        """Reads the names and types that the cells tagged ``parameters`` declare, in order.

        A cell that does not parse is an error, as is a type that a plan can't fill.
        """
        types: dict[str, Any] = {}
        for cell in self.cells:
            if cell.kind != "code" or PARAMETERS_TAG not in cell.tags:
                continue
            try:
                statements = ast.parse(cell.source).body
            except SyntaxError as error:
                problem = f"the parameters cell does not parse: {error.msg}, line {error.lineno}"
                raise BookError(problem, path=self.path) from None
            for statement in statements:
                if isinstance(statement, ast.Assign):
                    names = ", ".join(ast.unparse(target) for target in statement.targets)
                    raise BookError(
                        f"parameter {names} has no type",
                        path=self.path,
                        hint=f"Write for instance `{names}: str = ...`.",
                    )
                if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
                    types[statement.target.id] = self._type(statement.annotation)
        return types

    def _type(self, node: ast.expr) -> Any:
        match node:
            case ast.Name(id=name) if name in _SIMPLE:
                return _SIMPLE[name]
            case ast.Constant(value=None):
                return None
            case ast.BinOp(left=left, op=ast.BitOr(), right=right):
                return Union[self._type(left), self._type(right)]  # noqa: UP007 - built at run time
            case ast.Subscript(value=ast.Name(id="list"), slice=item):
                return list[self._type(item)]  # type: ignore[misc]
            case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
                items = choices.elts if isinstance(choices, ast.Tuple) else [choices]
                return Literal[tuple(ast.literal_eval(item) for item in items)]
        raise BookError(
            f"a parameter has type {ast.unparse(node)}",
            path=self.path,
            hint="Use str, int, float, bool, None, list[...], Literal[...] or their unions.",
        )

    def check_parameters(self, values: Mapping[str, Any]) -> None:
        """Refuses values that the notebook does not declare, or whose type is wrong."""
        types = self.parameter_types()
        for name, value in values.items():
            if name not in types:
                declared = ", ".join(types) or "none"
                problem = f"unknown parameter {name!r}; the notebook declares: {declared}"
                raise BookError(problem, path=self.path)
            try:
                TypeAdapter(types[name]).validate_python(value, strict=True)
            except ValidationError as error:
                reason = error.errors()[0]["msg"]
                problem = f"parameter {name!r} is {value!r}: {reason}"
                raise BookError(problem, path=self.path) from None


def find_title(cells: Sequence[Mapping[str, Any]]) -> tuple[int, re.Match[str]] | None:
    """Finds the first heading of the first level: the place of its cell, and where it stands."""
    for place, cell in enumerate(cells):
        heading = _HEADING.search("".join(cell["source"]))
        if heading is not None and cell["cell_type"] == "markdown":
            return place, heading
    return None
