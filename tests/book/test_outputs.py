"""Files that executed notebooks contain, in the site."""

from __future__ import annotations

import json
from pathlib import Path

from cradle_lib.book.notebooks.outputs import place_files
from cradle_lib.book.plan import Project

from .mini_book import write


def test_files_of_a_notebook_are_placed_and_older_ones_removed(tmp_path: Path) -> None:
    project, out = Project(tmp_path), tmp_path / "book/_build/html"
    copy = out / "_sources/sections/explore.ipynb"
    page = project.sections / "explore.ipynb"
    write(project.sections / "other.ipynb", json.dumps({"cells": []}))
    write(project.notebooks / "mine.ipynb", "as it was written")

    def carry(folder: str) -> None:
        files = {f"_explorer/{folder}/core.js": folder}
        cells = [{"outputs": [{"data": {}, "metadata": {"cradle_files": files}}]}]
        state = {"cradle": {"source": "notebooks/mine.ipynb"}}
        for path in (page, copy):
            write(path, json.dumps({"cells": cells, "metadata": state}))

    def placed() -> dict[str, str]:
        files = (path for path in (out / "_explorer").rglob("*") if path.is_file())
        return {str(path.relative_to(out)): path.read_text("utf-8") for path in files}

    carry("one")
    place_files(project, out)
    assert placed() == {"_explorer/one/core.js": "one"}
    assert copy.read_text("utf-8") == "as it was written"
    assert "cradle_files" in page.read_text("utf-8")
    carry("two")
    place_files(project, out)
    assert placed() == {"_explorer/two/core.js": "two"}
    page.unlink()
    place_files(project, out)
    assert placed() == {}
