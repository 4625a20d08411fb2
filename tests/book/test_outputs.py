"""What builds leave behind, without a build: whose it is, and what of it stays."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cradle_lib.book.cache_key import digest
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.outputs import place_files, remove_orphans, remove_other_corpus
from cradle_lib.book.plan import Project
from cradle_lib.errors import BookError

from .mini_book import write


def executed(project: Project, name: str, **ingredients: str) -> Path:
    path = project.sections / f"{name}.ipynb"
    write(path, json.dumps({"metadata": {"cradle": {"ingredients": ingredients}}}))
    return path


@pytest.fixture
def project(tmp_path: Path) -> Project:
    write(tmp_path / "mine.csv", "one")
    return Project(tmp_path)


def test_executed_notebooks_stay_if_no_other_corpus_went_into_them(project: Project) -> None:
    mine = str(project.root / "mine.csv")
    kept = [
        executed(project, "any", notebook="x"),
        executed(project, "same", **{"parameter corpus": json.dumps(mine)}),
        executed(project, "equal", **{f"input {mine}": digest(b"one")}),
    ]
    gone = [
        executed(project, "other", **{"parameter corpus": '"surrogate"'}),
        executed(project, "older", **{f"input {mine}": digest(b"zero")}),
    ]
    foreign = project.sections / "foreign.ipynb"
    write(foreign, "{}")

    remove_other_corpus(project, BookCorpus(mine), project.root / "book/_build/html")

    assert all(path.exists() for path in (*kept, foreign))
    assert not any(path.exists() for path in gone)


def test_orphans_are_pages_sources_pictures_and_files_of_no_page(tmp_path: Path) -> None:
    there = [
        "intro.html", "index.html", "search.html", "genindex.html", "_static/gone.html",
        "sections/qwen2.5-72b.html", "sections/gone.html", "_sources/intro.md",
        "_sources/sections/qwen2.5-72b.ipynb", "_sources/sections/gone.ipynb",
        "_images/used.svg", "_images/gone.svg", "_downloads/ab/used.csv", "_downloads/cd/gone.csv",
    ]  # fmt: skip
    for name in there:
        write(tmp_path / name, "x")

    removed = remove_orphans(
        tmp_path, {"intro", "sections/qwen2.5-72b"}, {"used.svg", "ab/used.csv"}
    )

    assert set(removed) == {name for name in there if "gone." in name and "_static" not in name}
    left = {p.relative_to(tmp_path).as_posix() for p in tmp_path.rglob("*") if p.is_file()}
    assert left == set(there) - set(removed)


def test_files_that_a_notebook_carries_are_placed_and_older_ones_removed(tmp_path: Path) -> None:
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
    carry("../../outside")
    with pytest.raises(BookError, match="which is not in _explorer"):
        place_files(project, out)
    page.unlink()
    place_files(project, out)
    assert placed() == {}
