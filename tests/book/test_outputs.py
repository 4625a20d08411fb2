"""Outputs of builds: removal after a change of corpus, and files of notebooks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.outputs import place_files, remove_other_corpus
from cradle_lib.book.plan import Project

from .mini_book import write


def executed(project: Project, name: str, **ingredients: str) -> Path:
    path = project.sections / f"{name}.ipynb"
    write(path, json.dumps({"metadata": {"cradle": {"ingredients": ingredients}}}))
    return path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write(tmp_path / "mine.csv", "one")
    return Project(tmp_path)


def test_executed_notebooks_of_another_corpus_are_removed(project: Project) -> None:
    mine = BookCorpus(str(project.root / "mine.csv"))
    kept = [executed(project, "any"), executed(project, "same", corpus=mine.identity(project.root))]
    gone = executed(project, "other", corpus="surrogate 0123456789abcdef")
    foreign = project.sections / "foreign.ipynb"
    write(foreign, "{}")

    assert remove_other_corpus(project, mine, project.root / "book/_build/html")

    assert all(path.exists() for path in (*kept, foreign))
    assert not gone.exists()
    # The same file with other dialogues is another corpus.
    write(project.root / "mine.csv", "two")
    remove_other_corpus(project, mine, project.root / "book/_build/html")
    assert not kept[1].exists()


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
