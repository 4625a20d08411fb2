"""The notebooks are short and without outputs, and contain no published number."""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Iterable, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import IPython.display
import nbformat
import pytest

import cradle_lib
from cradle_lib import paths
from cradle_lib.book.notebooks.notebook import Notebook
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Predictions
from cradle_lib.display.choice import Choice
from cradle_lib.published import published_label_counts as label_counts
from cradle_lib.published import published_table

SOURCES = sorted(paths.NOTEBOOKS.glob("*.ipynb"))
MODELS = ["always-none", "keyword"]
# Libraries that readers of notebooks are expected to know.
LIBRARIES = {"pandas", "numpy", "matplotlib.pyplot", "seaborn", "scipy.stats"}
stem = attrgetter("stem")
each_notebook = pytest.mark.parametrize("path", SOURCES, ids=stem)


def content(path: Path) -> Any:
    return nbformat.read(path, as_version=nbformat.NO_CONVERT)


def code_cells(path: Path) -> list[Any]:
    return [cell for cell in content(path).cells if cell.cell_type == "code"]


def is_parameters(cell: Any) -> bool:
    return "parameters" in cell.metadata.get("tags", ())


def show(
    name: str,
    values: dict[str, Any],
    corpus: Corpus | None = None,
    runs: Sequence[Predictions] | None = None,
) -> list[Any]:
    """Runs the cells of a notebook and returns the results that they show.

    All results of a choice are returned.

    Args:
        name: The notebook.
        values: Values of its parameters; others keep their defaults.
        corpus: Replaces the corpus that the notebook would load.
        runs: Replace the runs that the notebook would find.
    """
    path = paths.NOTEBOOKS / f"{name}.ipynb"
    shown: list[Any] = []
    names: dict[str, Any] = {}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(IPython.display, "display", lambda *objects: shown.extend(objects))
        if corpus is not None:
            patch.setattr(cradle_lib, "load_corpus", lambda *_: corpus, raising=False)
        if runs is not None:
            patch.setattr(cradle_lib, "stored_runs", lambda *_: list(runs), raising=False)
        for cell in code_cells(path):
            tree = ast.parse(cell.source)
            last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
            exec(compile(tree, path.name, "exec"), names)
            if is_parameters(cell):
                names.update({key: value for key, value in values.items() if key in names})
            if isinstance(last, ast.Expr):
                shown.append(eval(compile(ast.Expression(last.value), path.name, "eval"), names))
    return [
        result
        for item in shown
        if item is not None
        for result in (item.shown.values() if isinstance(item, Choice) else [item])
    ]


@each_notebook
def test_a_notebook_is_valid_and_without_outputs(path: Path) -> None:
    notebook = content(path)
    nbformat.validate(notebook)
    assert (notebook.nbformat, notebook.nbformat_minor) == (4, 5)
    ids = [cell.id for cell in notebook.cells]
    assert len(set(ids)) == len(ids)
    for cell in code_cells(path):
        assert cell.outputs == []
        assert cell.execution_count is None
    title = notebook.cells[0]
    assert title.cell_type == "markdown"
    assert title.source.startswith("# ")


@each_notebook
def test_every_parameter_has_a_type_a_value_and_a_comment(path: Path) -> None:
    [cell] = [cell for cell in code_cells(path) if is_parameters(cell)]
    statements = ast.parse(cell.source).body
    assert statements
    for statement in statements:
        assert isinstance(statement, ast.AnnAssign)
        assert statement.value is not None
    tokens = tokenize.generate_tokens(io.StringIO(cell.source).readline)
    commented = {token.start[0] for token in tokens if token.type == tokenize.COMMENT}
    assert commented >= {statement.lineno for statement in statements}
    names = [ast.unparse(each.target) for each in statements if isinstance(each, ast.AnnAssign)]
    Notebook.read(path).check_parameters(names)


def published_numbers() -> set[float]:
    """Returns the published numbers, as printed and as shares, without small counts."""
    counts = {e.value for k, e in published_table().items() if k.startswith("corpus.")}
    shares = {e.value for e in published_table().values() if e.value != int(e.value)}
    large = {n for n in (*counts, *label_counts().values()) if n > 99}
    return large | {abs(n) for n in shares} | {abs(n) / 100 for n in shares}


@each_notebook
def test_a_notebook_contains_no_published_number(path: Path) -> None:
    published = published_numbers()
    for cell in code_cells(path):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Constant) and type(node.value) in (int, float):
                assert abs(node.value) not in published, (node.value, cell.source)
    for cell in content(path).cells:
        if cell.cell_type == "markdown":
            for number in re.findall(r"(?<![\w.])\d[\d,]*(?:\.\d+)?", cell.source):
                assert float(number.replace(",", "")) not in published, (number, cell.source)


@each_notebook
def test_a_cell_is_short_and_narrow(path: Path) -> None:
    for cell in code_cells(path):
        assert all(len(line) <= 76 for line in cell.source.splitlines()), cell.source
        if "hide-input" not in cell.metadata.get("tags", ()):
            assert len(cell.source.splitlines()) <= 15, cell.source


@each_notebook
def test_a_notebook_imports_only_public_names_and_common_libraries(path: Path) -> None:
    for cell in code_cells(path):
        for node in ast.walk(ast.parse(cell.source)):
            if isinstance(node, ast.Import):
                assert {alias.name for alias in node.names} <= {"cradle_lib", *LIBRARIES}
            if isinstance(node, ast.Attribute) and ast.unparse(node.value) == "cradle":
                assert node.attr in cradle_lib.__all__
            if isinstance(node, ast.ImportFrom):
                ours = re.fullmatch(r"cradle_(lib|extras)\.[a-z_]+", str(node.module))
                known = {"IPython.display", *LIBRARIES}
                # The page for a user's own model may import scikit-learn.
                learner = path.stem == "add-a-model" and str(node.module).startswith("sklearn.")
                assert node.module in known or learner or ours
                if ours:
                    module = importlib.import_module(str(node.module))
                    assert {alias.name for alias in node.names} <= set(module.__all__)


# Functions that show a result; everything in their calls is presentation.
VERBS = {
    *("banner", "choose", "explore", "finding", "Notice"),
    *("show", "show_examples", "show_figure"),
}


def lines_of(node: Any) -> set[int]:
    return {*range(node.lineno, node.end_lineno + 1)}


def presentation_lines(node: ast.AST) -> set[int]:
    """Returns the lines of calls that show a result, and of sentences outside other calls."""
    parts: Iterable[ast.AST] = ast.iter_child_nodes(node)
    is_text = isinstance(node, ast.Constant | ast.JoinedStr)
    is_presentation = is_text and re.search(r"\w \w", ast.unparse(node))
    if isinstance(node, ast.Call):
        is_presentation = ast.unparse(node.func).removeprefix("cradle.") in VERBS
        # Text arguments of pandas and matplotlib are part of a computation or a drawing.
        parts = [part.value if isinstance(part, ast.keyword) else part for part in parts]
        parts = [part for part in parts if not isinstance(part, ast.Constant | ast.JoinedStr)]
    if is_presentation:
        return lines_of(node)
    return set().union(*map(presentation_lines, parts))


@each_notebook
def test_at_least_half_of_the_lines_of_a_notebook_compute_or_draw(path: Path) -> None:
    """Without imports, parameters, comments, and lines that only close brackets."""
    computing, lines = 0, 0
    for cell in code_cells(path):
        tree = ast.parse(cell.source)
        tree.body = [n for n in tree.body if not isinstance(n, ast.Import | ast.ImportFrom)]
        if tree.body and not is_parameters(cell):
            numbered = enumerate(cell.source.splitlines(), 1)
            own = {n for n, line in numbered if line.strip("()[]{}, ") and line.strip()[0] != "#"}
            own &= {n for each in tree.body for n in lines_of(each)}
            lines += len(own)
            computing += len(own - presentation_lines(tree))
    assert computing >= lines / 2, f"{computing} of {lines} lines"
