"""The API pages list every public name with the right directive."""

from __future__ import annotations

import ast
import importlib
import inspect
import json
import re
from typing import Any

import cradle_lib
from cradle_lib import paths

LINE = re.compile(
    r"^\.\. auto(function|class|data):: (cradle_(?:lib|extras)\.[\w.]+)$", re.MULTILINE
)


def public() -> dict[str, Any]:
    """Returns the names that the library exports or that notebooks import from its packages."""
    found = {name: getattr(cradle_lib, name) for name in cradle_lib.__all__}
    for path in paths.NOTEBOOKS.glob("*.ipynb"):
        for cell in json.loads(path.read_text(encoding="utf-8"))["cells"]:
            if cell["cell_type"] == "code":
                for node in ast.walk(ast.parse("".join(cell["source"]))):
                    if isinstance(node, ast.ImportFrom) and str(node.module).startswith("cradle"):
                        package = importlib.import_module(str(node.module))
                        found |= {each.name: getattr(package, each.name) for each in node.names}
    return found


def test_every_public_name_is_on_one_api_page() -> None:
    pages = [path.read_text(encoding="utf-8") for path in sorted(paths.BOOK.glob("api*.md"))]
    found = LINE.findall("\n".join(pages))
    assert sorted(name.rpartition(".")[2] for _, name in found) == sorted(public())
    for kind, path in found:
        name = path.rpartition(".")[2]
        assert (kind == "class") == inspect.isclass(public()[name]), name
        # Sphinx finds the docstring of a constant only in its own module.
        assert (kind == "data") == (path.count(".") > 2 or name.isupper()), name
