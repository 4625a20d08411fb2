"""The plan, the parameters, the table of contents, and the library's closure."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.book.build import check_toc
from cradle_lib.book.cache_key import Ingredients
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.notebook import Notebook
from cradle_lib.book.plan import Project, load_plan
from cradle_lib.errors import BookError

from .mini_book import MODELS, PLAN, TOC, make, notebook, write


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make(tmp_path)


def test_pages_come_after_those_that_they_read(project: Project) -> None:
    pages = {page.name: page for page in load_plan(project, MODELS)}

    assert set(pages) == {"words", "run", "table"}
    assert list(pages).index("table") > list(pages).index("run")
    assert pages["table"].after == ("run",)
    assert pages["run"].parameters == {"models": ["a", "b"]}
    assert pages["run"].inputs == ("data/two.txt",)
    for_each = ("runs/a.json", "runs/b.json", "data/runs/a.json", "data/runs/b.json")
    assert pages["run"].provides == for_each


@pytest.mark.parametrize("text", [True, False])
def test_the_text_of_dialogues_is_a_choice_of_the_environment(text: bool) -> None:
    plan = load_plan(Project(paths.ROOT), MODELS, BookCorpus(text=text))
    [explore] = [page for page in plan if page.name == "explore"]
    assert explore.parameters["text"] is text


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{name: one.txt}", "{nam: one.txt}", r"unknown parameter 'nam'; .* declares: name"),
        ("notebook: words.ipynb", "notebook: none.ipynb", r"none\.ipynb: no such notebook"),
        ("notebook: words.ipynb", "notebook: ../words.ipynb", r"pages\.0\.notebook"),
        ("inputs: [data/one.txt]", "input: [data/one.txt]", r"pages\.0\.input: Extra"),
        ("inputs: [data/one.txt]", "inputs: [/etc/passwd]", r"relative to the repository"),
        ("page: table", "page: words", r"same page"),
        ("after: [run]", "after: [runs]", r"after 'runs', which is no entry"),
        ("after: [run]", "after: [table]", r"wait for each other: table -> table"),
        ("pages:", "pages: [", r"not YAML"),
    ],
)
def test_a_wrong_plan_is_refused_with_what_is_wrong(
    project: Project, old: str, new: str, message: str
) -> None:
    assert old in PLAN
    write(project.plan, PLAN.replace(old, new))

    with pytest.raises(BookError, match=message):
        load_plan(project, MODELS)


def test_an_input_that_matches_no_file_is_refused(project: Project) -> None:
    (project.root / "data/one.txt").unlink()

    with pytest.raises(BookError, match=r"page 'words' reads 'data/one\.txt'"):
        Ingredients(project, load_plan(project, MODELS))


def test_parameters_are_what_the_tagged_cell_assigns(tmp_path: Path) -> None:
    write(tmp_path / "n.ipynb", notebook(["x: list[str] = []\ny = 1\nimport os", "z = 2"]))
    assert Notebook.read(tmp_path / "n.ipynb").parameters() == ["x", "y"]
    write(tmp_path / "n.ipynb", notebook(["x: int = ("]))
    with pytest.raises(BookError, match=r"n\.ipynb.*does not parse"):
        Notebook.read(tmp_path / "n.ipynb").parameters()


@pytest.mark.parametrize("content", ["", "[]", '{"cells": [{}]}', '{"cells": 3}'])
def test_a_file_that_is_no_notebook_is_refused(tmp_path: Path, content: str) -> None:
    write(tmp_path / "n.ipynb", content)

    with pytest.raises(BookError, match="not a notebook of format 4"):
        Notebook.read(tmp_path / "n.ipynb")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("      - file: sections/words\n", "", r"Add `- file: sections/words`"),
        ("sections/run", "sections/runs", r"Add `- file: sections/run`"),
    ],
)
def test_a_table_of_contents_that_does_not_fit_the_plan_is_refused(
    project: Project, old: str, new: str, message: str
) -> None:
    pages = load_plan(project, MODELS)
    check_toc(project, pages)
    assert old in TOC
    write(project.toc, TOC.replace(old, new))

    with pytest.raises(BookError, match=message):
        check_toc(project, pages)
