"""The house keeps its floors: a room imports only from lower ones, and files stay readable."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest

from cradle_lib import paths

FLOORS = {
    "errors": 0,
    "labels": 1,
    "paths": 0,
    "files": 1,
    "strict_json": 1,
    "bounded_yaml": 2,
    "published": 1,
    "record": 2,
    "version": 1,
    "formatting": 0,
    "corpus": 2,
    "prompts": 2,
    "statistics": 2,
    "cluster": 2,
    "annotation": 3,
    "detection": 3,
    "construction": 4,
    "training": 5,
    "scoring": 4,
    "display": 5,
    "exchange": 5,
    "book": 6,
    "cli": 7,
}
LIBRARY = paths.ROOT / "cradle_lib"
# Runs a notebook, then lists the library's modules that were loaded.
RUN_NOTEBOOK = """
import json, sys
cells = json.load(open(sys.argv[1], encoding="utf-8"))["cells"]
source = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
exec(compile("\\n".join("".join(lines) for lines in source), sys.argv[1], "exec"), {})
print("\\n".join(m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "cradle_lib"))
"""
MODULES = sorted(LIBRARY.rglob("*.py"))


def imported(path: Path) -> Iterator[str]:
    """Yields the rooms of this library that a module imports, wherever the import stands."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            if node.module == "cradle_lib":
                yield from (alias.name for alias in node.names)
            elif node.module.startswith("cradle_lib."):
                yield node.module.split(".")[1]
        elif isinstance(node, ast.Import):
            for alias in node.names:
                if alias.name.startswith("cradle_lib."):
                    yield alias.name.split(".")[1]
        elif isinstance(node, ast.ImportFrom) and node.level:
            pytest.fail(f"{path}: relative import; write it out, so that floors can be seen")


def name(path: Path) -> str:
    return str(path.relative_to(LIBRARY))


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_room_imports_only_from_lower_floors(path: Path) -> None:
    room = path.relative_to(LIBRARY).parts[0].removesuffix(".py")
    if room == "__init__":
        return
    for other in imported(path):
        assert other == room or FLOORS[other] < FLOORS[room], f"{room} imports {other}"


def code_lines(path: Path) -> int:
    """Counts the lines with code: no blank lines, comments and docstrings."""
    text = path.read_text(encoding="utf-8")
    texts: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(
            node
        ):
            first = node.body[0]
            texts.update(range(first.lineno, (first.end_lineno or first.lineno) + 1))
    found: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type in (tokenize.NAME, tokenize.NUMBER, tokenize.STRING, tokenize.OP):
            found.update(range(token.start[0], token.end[0] + 1))
    return len(found - texts)


def test_the_page_that_counts_rows_loads_what_counts_rows() -> None:
    notebook = paths.NOTEBOOKS / "statistics.ipynb"
    environment = os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(paths.ROOT)}
    done = subprocess.run(
        (sys.executable, "-c", RUN_NOTEBOOK, str(notebook)),
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    sizes = {path: code_lines(Path(path)) for path in done.stdout.splitlines()}
    assert str(LIBRARY / "display/table.py") in sizes
    assert sum(sizes.values()) < 1800, sizes


@pytest.mark.parametrize("path", sorted(LIBRARY.glob("display/**/*.py")), ids=name)
def test_the_display_knows_frames_and_no_models(path: Path) -> None:
    assert not {"detection", "scoring"} & {*imported(path)}


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_module_is_named_for_one_idea(path: Path) -> None:
    assert path.stem not in {"utils", "util", "helpers", "misc", "common"}


def test_every_room_is_on_a_floor() -> None:
    rooms = {p.relative_to(LIBRARY).parts[0].removesuffix(".py") for p in MODULES} - {"__init__"}
    assert rooms <= set(FLOORS)
