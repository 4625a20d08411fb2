"""The plan of pages and its notebooks."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.book.cache_key import digest, digest_of
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.notebook import Notebook
from cradle_lib.book.plan import Project, load_plan
from cradle_lib.errors import BookError

from .mini_book import MODELS, PLAN, make, notebook, write


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return make(tmp_path)


@pytest.mark.parametrize("text", [True, False])
def test_the_environment_decides_whether_dialogue_text_is_shown(text: bool) -> None:
    plan = load_plan(Project(paths.ROOT), MODELS, BookCorpus(text=text))
    [explore] = [page for page in plan if page.name == "explore"]
    assert explore.parameters["text"] is text


def test_only_pages_about_the_probe_set_depend_on_its_runs() -> None:
    plan = load_plan(Project(paths.ROOT), MODELS)
    assert {page.name for page in plan if "runs/probes/*.jsonl" in page.runs} == {
        "probes",
        "training",
    }
    [training] = [page for page in plan if page.name == "training"]
    # Also all other runs of the corpus, and those of the dev split.
    assert {"runs/surrogate-test/*.jsonl", "runs/surrogate-dev/*.jsonl"} < {*training.runs}
    # The train split is that of the training's record, not that of the book's corpus.
    assert training.parameters == {"corpus": "surrogate"}


@pytest.mark.parametrize(
    ("corpus", "splits", "training"),
    [
        ("surrogate", ("train", "dev"), "surrogate"),
        # Each page then says what it does not show.
        ("hub", ("train",), ""),
    ],
)
def test_pages_get_the_training_splits_only_if_both_exist(
    project: Project, corpus: str, splits: tuple[str, ...], training: str
) -> None:
    write(project.notebooks / "words.ipynb", notebook(["training = ''"]))
    write(project.plan, PLAN.replace("{name: one.txt}", '{training: "{training}"}'))
    folder = {"hub": "release"}.get(corpus, corpus)
    for split in ("test", *splits):
        write(project.root / f"data/{folder}/{split}.parquet", split)
    [words, *_] = load_plan(project, MODELS, BookCorpus(corpus))
    assert words.parameters == {"training": training}


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("{name: one.txt}", "{nam: one.txt}", r"unknown parameter 'nam'; .* declares: name"),
        (
            "notebook: words.ipynb",
            "notebook: none.ipynb",
            r"none\.ipynb: there is no such notebook",
        ),
        ("notebook: words.ipynb", "notebook: ../words.ipynb", r"pages\.0\.notebook"),
        ("after: [run]", "before: [run]", "unknown field `before` in `pages.2`. Fields: page"),
        ("after: [run]", "after: [fork]", r"table comes after 'fork', which is no page"),
        ("after: [run]", "after: [table]", r"wait for each other: table after table"),
        ("page: table", "page: words", r"same page"),
        ("pages:", "pages: [", r"can't be read"),
    ],
)
def test_an_invalid_plan_is_refused(project: Project, old: str, new: str, message: str) -> None:
    assert old in PLAN
    write(project.plan, PLAN.replace(old, new))

    with pytest.raises(BookError, match=message):
        load_plan(project, MODELS)


@pytest.mark.parametrize("content", ["", '{"cells": [{}]}'])
def test_an_invalid_notebook_is_refused(tmp_path: Path, content: str) -> None:
    write(tmp_path / "n.ipynb", content)

    with pytest.raises(BookError, match="not a notebook of format 4"):
        Notebook.read(tmp_path / "n.ipynb")


def test_a_file_without_permission_does_not_end_the_build(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root may read every file, the error of another user is simulated."""
    write(project.root / "runs/a.jsonl", "{}")
    write(project.root / "runs/closed.jsonl", "{}")
    read = Path.read_bytes

    def refuse(path: Path) -> bytes:
        if path.name == "closed.jsonl":
            raise PermissionError(13, "Permission denied")
        return read(path)

    monkeypatch.setattr(Path, "read_bytes", refuse)
    found = digest_of(project, ["runs/*.jsonl"])
    assert found == {"runs/a.jsonl": digest(b"{}"), "runs/closed.jsonl": ""}
