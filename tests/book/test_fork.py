"""``fork`` copies the page for a user's own model."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from cradle_lib import paths
from cradle_lib.book.fork import fork
from cradle_lib.book.plan import Project, load_plan
from cradle_lib.errors import BookError


@pytest.fixture
def project(tmp_path: Path) -> Project:
    (tmp_path / "book").mkdir()
    shutil.copytree(paths.NOTEBOOKS, tmp_path / "notebooks")
    shutil.copy(paths.BOOK / "_toc.yml", tmp_path / "book")
    return Project(tmp_path)


def test_a_fork_adds_a_notebook_a_page_and_a_line_in_the_contents(project: Project) -> None:
    plan = project.plan.read_text()
    copy = fork(project, "my-model")
    cells = json.loads(copy.read_text())["cells"]
    assert "".join(cells[0]["source"]).startswith("# My model\n")
    text = "".join("".join(cell["source"]) for cell in cells)
    assert "def answer(prompt):" in text
    # Instructions for copying are only in the original.
    assert "cradle fork" in (paths.NOTEBOOKS / "add-a-model.ipynb").read_text()
    assert "cradle fork" not in text
    assert project.plan.read_text().startswith(plan.rstrip("\n"))
    entry = yaml.safe_load(project.plan.read_text())["pages"][-1]
    assert entry["page"] == "my-model"
    assert entry["notebook"] == "my-model.ipynb"
    assert entry["parameters"]["name"] == "my-model"
    assert entry["provides"][0] == "runs/{corpus_name}/my-model.jsonl"
    listed = project.toc.read_text().splitlines()
    place = listed.index("      - file: sections/add-a-model")
    assert listed[place + 1] == "      - file: sections/my-model"
    pages = load_plan(project, ["keyword"])
    mine = next(page for page in pages if page.name == "my-model")
    assert mine.parameters["corpus"] == "surrogate"
    assert "my-model" in next(page for page in pages if page.name == "results").after


def test_a_fork_with_the_id_of_a_registered_model_has_a_run_of_its_own(project: Project) -> None:
    fork(project, "qwen3-32b")
    entry = yaml.safe_load(project.plan.read_text())["pages"][-1]
    assert entry["provides"] == ["runs/{corpus_name}/own-qwen3-32b.jsonl"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("results", "exists already"),
        ("../out", "lower-case letters"),
        # The run of the template, which is shown on its own page only.
        ("your--model", "another page has a model"),
    ],
)
def test_an_invalid_fork_changes_nothing(project: Project, name: str, message: str) -> None:
    before = {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()}
    with pytest.raises(BookError, match=message):
        fork(project, name)
    assert {p: p.read_bytes() for p in project.root.rglob("*") if p.is_file()} == before
