"""Import order of the packages, light imports, and the size of each folder beside its budget."""

from __future__ import annotations

import ast
import io
import os
import subprocess
import sys
import tokenize
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from cradle_lib import paths

# A folder imports only from folders of a lower level.
LEVELS = {
    "errors": 0,
    "paths": 0,
    "labels": 1,
    "files": 1,
    "strict_json": 1,
    "published": 1,
    "validation": 1,
    "arguments": 1,
    "version": 1,
    "record": 2,
    "formatting": 0,
    "strict_yaml": 2,
    "corpus": 2,
    "prompts": 2,
    "statistics": 2,
    "annotation": 3,
    "detection": 3,
    "scoring": 4,
    "display": 5,
    "book": 6,
    "cli": 7,
}
# The packages, and the packages of this project from which each imports.
PACKAGES = {
    "cradle_lib": {"cradle_lib"},
    "cradle_engines": {"cradle_lib", "cradle_engines"},
    "cradle_extras": {"cradle_lib", "cradle_engines", "cradle_extras"},
}
# What each package is to shrink to, in lines of code without blank lines, comments and docstrings.
WANTED = {"cradle_lib": 9_000, "cradle_engines": 2_700, "cradle_extras": 3_200}
# Budgets in such lines: the present sizes, so that no folder grows on the way there.
BUDGETS = {
    "cradle_lib": {
        "(top)": 725,
        "annotation": 575,
        "book": 1_060,
        "cli": 1_000,
        "corpus": 2_150,
        "detection": 2_950,
        "display": 1_225,
        "prompts": 100,
        "scoring": 2_225,
        "statistics": 225,
    },
    "cradle_engines": {
        "(top)": 50,
        "api": 1_075,
        "local": 1_800,
    },
    "cradle_extras": {
        "(top)": 75,
        "bundle": 400,
        "cluster": 300,
        "construction": 1_225,
        "inspect": 250,
        "label_studio": 650,
        "training": 850,
    },
}
LIBRARY = paths.ROOT / "cradle_lib"
MODULES = sorted(path for package in PACKAGES for path in (paths.ROOT / package).rglob("*.py"))

# Runs a notebook, then prints the files of the library's modules that were loaded.
RUN_NOTEBOOK = """
import json, sys
cells = json.load(open(sys.argv[1], encoding="utf-8"))["cells"]
source = [cell["source"] for cell in cells if cell["cell_type"] == "code"]
exec(compile("\\n".join("".join(lines) for lines in source), sys.argv[1], "exec"), {})
print("\\n".join(m.__file__ for n, m in sys.modules.items() if n.split(".")[0] == "cradle_lib"))
"""


def imports(path: Path, *, always: bool = False) -> Iterator[str]:
    """Yields the modules of this project that a module imports, with dots.

    ``always`` leaves out imports within functions and for type checkers.
    """
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if always else ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative import; write it out"
            if str(node.module).split(".")[0] in PACKAGES:
                yield from (f"{node.module}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from (
                a.name for a in node.names if a.name.startswith("cradle_") and "." in a.name
            )


def name(path: Path) -> str:
    return str(path.relative_to(paths.ROOT))


def folder(path: Path) -> str:
    parts = path.relative_to(paths.ROOT).parts
    return parts[1].removesuffix(".py")


def code_lines(path: Path) -> int:
    """Counts lines of code: no blank lines, comments or docstrings."""
    text = path.read_text(encoding="utf-8")
    lines: set[int] = set()
    skipped = {
        tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
        tokenize.ENDMARKER,
    }  # fmt: skip
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in skipped:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(text)):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr):
            value = body[0].value
            if isinstance(value, ast.Constant) and isinstance(value.value, str):
                lines.difference_update(range(value.lineno, int(value.end_lineno or 0) + 1))
    return len(lines)


@pytest.mark.parametrize("path", sorted(LIBRARY.rglob("*.py")), ids=name)
def test_a_folder_imports_only_from_lower_levels(path: Path) -> None:
    own = folder(path)
    if own == "__init__":
        return
    for module in imports(path):
        _, other, *_ = module.split(".")
        assert other == own or LEVELS[other] < LEVELS[own], f"{own} imports {module}"


@pytest.mark.parametrize("path", MODULES, ids=name)
def test_a_package_imports_only_from_those_that_it_may_know(path: Path) -> None:
    own = path.relative_to(paths.ROOT).parts[0]
    assert {module.partition(".")[0] for module in imports(path)} <= PACKAGES[own]


def test_the_statistics_page_loads_few_modules() -> None:
    notebook = paths.NOTEBOOKS / "statistics.ipynb"
    done = subprocess.run(
        (sys.executable, "-c", RUN_NOTEBOOK, str(notebook)),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(paths.ROOT)},
    )
    assert done.returncode == 0, done.stderr
    sizes = {path: code_lines(Path(path)) for path in done.stdout.splitlines()}
    assert str(LIBRARY / "display/table.py") in sizes
    assert sum(sizes.values()) < 2_100, sizes


def test_scoring_a_run_does_not_import_pandas() -> None:
    journal = paths.SHIPPED_RUNS / "surrogate-test" / "smollm2-135m-tuned-constrained.jsonl"
    program = (
        "import sys; from cradle_lib.cli.main import app; "
        f"app(['score', {str(journal)!r}], standalone_mode=False); "
        "assert not {'pandas', 'scipy', 'matplotlib'} & {*sys.modules}"
    )
    done = subprocess.run(
        (sys.executable, "-c", program), capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "micro f1" in done.stdout


@pytest.mark.parametrize("path", sorted(LIBRARY.glob("display/**/*.py")), ids=name)
def test_the_display_imports_neither_detection_nor_scoring(path: Path) -> None:
    assert not {"detection", "scoring"} & {module.split(".")[1] for module in imports(path)}


def test_modules_have_no_circular_imports() -> None:
    modules = {name(path).removesuffix(".py").replace("/", "."): path for path in MODULES}
    graph: dict[str, set[str]] = {}
    for module, path in modules.items():
        found = set()
        for imported in imports(path, always=True):
            parent = imported.rpartition(".")[0]
            found |= {imported, parent} & modules.keys()
        graph[module] = found - {module}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        pytest.fail(" -> ".join(error.args[1]))


def test_no_folder_is_more_than_a_tenth_above_its_budget(
    capsys: pytest.CaptureFixture[str],
) -> None:
    sizes = {package: Counter[str]() for package in PACKAGES}
    for path in MODULES:
        package, *inside = path.relative_to(paths.ROOT).parts
        sizes[package][folder(path) if len(inside) > 1 else "(top)"] += code_lines(path)
    with capsys.disabled():
        for package, found in sizes.items():
            budgets = BUDGETS[package]
            wanted = f"{sum(budgets.values()):,} lines of code ({WANTED[package]:,} wanted)"
            print(f"\n{package}: {found.total():,} of {wanted}")
            for part, budget in budgets.items():
                print(f"  {part:<14}{found[part]:>7,} of {budget:>6,}")
    for package, found in sizes.items():
        assert found.keys() == BUDGETS[package].keys()
        for part, budget in BUDGETS[package].items():
            assert found[part] <= 1.1 * budget, f"{package}/{part}: delete something"
