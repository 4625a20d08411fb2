"""A page of one's own, in each of the three ways: a function, a folder of weights, a server."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
import yaml

from cradle_lib import paths
from cradle_lib.book.build import check_toc
from cradle_lib.book.fork import fork
from cradle_lib.book.plan import Project, load_plan
from cradle_lib.errors import BookError

from ..detection.local.tiny_models import make_weights
from .test_no_calls import INFER, UPDATE, Counting, place, python, server

__all__ = ["place", "server"]  # fixtures


@pytest.fixture
def project(tmp_path: Path) -> Project:
    for folder in ("notebooks", "book"):
        (tmp_path / folder).mkdir()
    for name in ("runs.ipynb", "add-a-model.ipynb", "results.ipynb", "pages.yml"):
        shutil.copy(paths.NOTEBOOKS / name, tmp_path / "notebooks")
    shutil.copy(paths.BOOK / "_toc.yml", tmp_path / "book")
    return Project(tmp_path)


def test_a_fork_is_a_notebook_a_page_of_the_plan_and_a_line_of_the_contents(
    project: Project,
) -> None:
    plan = project.plan.read_text()
    copy = fork(project, "my-model", parameters={"baseline": "always-none"})
    cells = json.loads(copy.read_text())["cells"]
    assert "".join(cells[0]["source"]).startswith("# My model\n")
    text = "".join("".join(cell["source"]) for cell in cells)
    assert "def answer(prompt):" in text
    # How to make a copy is said on the page that is copied.
    assert "cradle fork" in (paths.NOTEBOOKS / "add-a-model.ipynb").read_text()
    assert "cradle fork" not in text
    assert project.plan.read_text().startswith(plan.rstrip("\n"))
    entry = yaml.safe_load(project.plan.read_text())["pages"][-1]
    assert entry["page"] == "my-model"
    assert entry["notebook"] == "my-model.ipynb"
    assert entry["parameters"]["baseline"] == "always-none"
    assert entry["parameters"]["name"] == "my-model"
    assert entry["provides"][0] == "runs/{corpus_name}/my-model.jsonl"
    listed = project.toc.read_text().splitlines()
    place = listed.index("      - file: sections/add-a-model")
    assert listed[place + 1] == "      - file: sections/my-model"


@pytest.mark.parametrize(
    ("name", "source", "parameters", "message"),
    [
        ("results", "add-a-model", {}, "exists already"),
        ("My Model", "add-a-model", {}, "small letters"),
        ("../out", "add-a-model", {}, "small letters"),
        ("mine", "nothing", {}, "no notebook 'nothing' is in the plan"),
        ("mine", "add-a-model", {"colour": "red"}, "colour"),
    ],
)
def test_a_fork_that_can_not_be_is_one_line_and_changes_nothing(
    project: Project, name: str, source: str, parameters: dict[str, str], message: str
) -> None:
    before = {path: path.read_bytes() for path in project.root.rglob("*") if path.is_file()}
    with pytest.raises(BookError, match=message):
        fork(project, name, source, parameters)
    assert {p: p.read_bytes() for p in project.root.rglob("*") if p.is_file()} == before


def test_the_shipped_plan_and_contents_take_a_fork(tmp_path: Path) -> None:
    shutil.copytree(paths.NOTEBOOKS, tmp_path / "notebooks")
    (tmp_path / "book").mkdir()
    shutil.copy(paths.BOOK / "_toc.yml", tmp_path / "book")
    project = Project(tmp_path)
    fork(project, "my-model")
    pages = load_plan(project, ["keyword"])
    check_toc(project, pages)
    mine = next(page for page in pages if page.name == "my-model")
    results = next(page for page in pages if page.name == "results")
    assert "my-model" in results.after
    assert mine.parameters["corpus"] == "surrogate"


def test_each_of_the_three_ways_leads_to_a_page_and_a_row(place: Path) -> None:
    for name in ("add-a-model.ipynb", "results.ipynb"):
        shutil.copy(paths.NOTEBOOKS / name, place / "notebooks")
    plan = (
        "  - {page: add-a-model, notebook: add-a-model.ipynb, parameters: {corpus: '{corpus}'},\n"
        "     provides: ['runs/{corpus_name}/your-model.jsonl'], after: [runs]}\n"
        "  - {page: results, notebook: results.ipynb, runs: true,\n"
        "     parameters: {corpus: '{corpus}', draws: 50}}\n"
    )
    with (place / "notebooks" / "pages.yml").open("a") as file:
        file.write(plan)
    with (place / "book" / "_toc.yml").open("a") as file:
        file.write("  - file: sections/add-a-model\n  - file: sections/results\n")
    models = (place / "models.yml").read_text()
    url = yaml.safe_load(models)["near"]["base_url"]
    (place / "models.yml").write_text(models.partition("near:")[0])
    make_weights(place / "tiny")
    commands = [
        "fork a-function",
        "infer --model hf:./tiny --set engine=reference --set max_new_tokens=2 --corpus mine.csv",
        f"infer --model openai:mine --set base_url={url} --corpus mine.csv",
        "fork others --from runs --parameter models=[hf:./tiny,openai:mine]",
    ]
    for command in commands:
        done = python(place, INFER, *command.split())
        # What a model with random weights writes can't be read, and the exit status says so.
        assert done.returncode == int("hf:./tiny --set" in command), done.stderr
    asked = Counting.calls
    built = python(place, UPDATE)
    assert built.returncode == 0, built.stderr
    assert {"a-function", "others", "runs", "results"} <= set(built.stdout.split())
    assert Counting.calls == asked
    sections = place / "book" / "sections"
    for system in ("a-function", "./tiny", "mine"):
        assert system in (sections / "results.ipynb").read_text()
        assert (system in (sections / "others.ipynb").read_text()) == (system != "a-function")
