"""The pipeline, with real papermill and real kernels, over a miniature project."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cradle_lib.book.build import Update, update
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.plan import Project
from cradle_lib.errors import BookError

from .mini_book import MODELS, PACKAGE, RUN, TABLE, WORDS, make, notebook, text_of, write

ALL = {"words", "run", "table"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A miniature project that has been built once; tests work on copies of it."""
    project = make(tmp_path_factory.mktemp("built"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(project.root))
        done = bring(project)
    assert set(done.executed) == ALL
    return project


@pytest.fixture
def project(built: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    shutil.copytree(built.root, tmp_path / "réplique")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "réplique"))
    return Project(tmp_path / "réplique", (PACKAGE,))


def bring(project: Project) -> Update:
    return update(project, models=MODELS, corpus=BookCorpus())


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_a_copy_whose_files_were_touched_executes_nothing(project: Project) -> None:
    for file in project.root.rglob("*"):
        os.utime(file)

    done = bring(project)

    assert done.executed == ()
    assert set(done.fresh) == ALL


def test_a_page_reads_what_the_pages_before_it_wrote(built: Project) -> None:
    # "the first words" without the stop word "the" is two words, times ten.
    assert text_of(built.sections / "table.ipynb") == '["a", 20]\n["b", 20]\n'


def test_a_page_names_no_folder_of_this_machine(project: Project) -> None:
    where = "import os\nprint(os.path.abspath('words.ipynb'))"
    write(project.notebooks / "words.ipynb", notebook([*WORDS, where]))
    bring(project)

    assert text_of(project.sections / "words.ipynb") == "2\nnotebooks/words.ipynb\n"


def test_a_page_shows_its_values_and_results_first_and_the_code_below(project: Project) -> None:
    path = project.notebooks / "words.ipynb"
    cells = [*WORDS, "more = 'two words'", "print(more)", "print('last')"]
    content = json.loads(notebook(cells))
    content["cells"][3]["metadata"]["tags"] = ["finding"]
    title = {"cell_type": "markdown", "id": "t", "metadata": {}, "source": "# Words\n\nWhy."}
    path.write_text(json.dumps({**content, "cells": [title, *content["cells"]]}), encoding="utf-8")

    bring(project)

    page = json.loads((project.sections / "words.ipynb").read_text(encoding="utf-8"))
    heading, headline, why, two, code, last, rest = page["cells"]
    assert (heading["source"], why["source"]) == ("# Words", "Why.")
    assert headline["metadata"]["tags"] == ["finding", "remove-input"]
    shown = [text for cell in (headline, two, last) for text in cell["outputs"][0]["text"]]
    assert shown == ["two words\n", "2\n", "last\n"]
    values = f'{WORDS[0]}\n\n# Parameters\nname = "one.txt"'
    assert code["source"] == f"{values}\n\n{WORDS[1]}"
    assert rest["source"] == "\n\n".join(cells[2:])
    assert page["metadata"]["cradle"]["source"] == "notebooks/words.ipynb"


def test_a_changed_parameter_executes_its_own_page(project: Project) -> None:
    write(project.root / "data/three.txt", "three other words")
    edit(project.plan, "{name: one.txt}", "{name: three.txt}")

    assert bring(project).executed == ("words",)
    assert text_of(project.sections / "words.ipynb") == "3\n"


def test_a_changed_library_executes_every_page_and_a_changed_command_none(
    project: Project,
) -> None:
    write(project.root / PACKAGE / "cli" / "new.py", "print('no page can use it')")
    assert bring(project).executed == ()
    edit(project.root / PACKAGE / "deep.py", "10 *", "100 *")

    assert set(bring(project).executed) == ALL
    assert text_of(project.sections / "table.ipynb") == '["a", 200]\n["b", 200]\n'


def test_a_page_that_reads_all_runs_is_executed_again_when_one_is_added_or_changed(
    project: Project,
) -> None:
    edit(project.plan, "    after: [run]", "    runs: true")
    bring(project)
    folder = project.root / "runs" / "surrogate-test"
    for text in ("one", "another"):
        write(folder / "own.jsonl", text)
        assert bring(project).executed == ("table",)


def test_a_changed_data_file_executes_the_pages_that_declare_it(project: Project) -> None:
    write(project.root / "data/one.txt", "the first few words")

    assert bring(project).executed == ("words",)
    assert text_of(project.sections / "words.ipynb") == "3\n"


def test_saved_outputs_and_compiled_modules_change_nothing(project: Project) -> None:
    write(project.root / PACKAGE / "__pycache__/scores.cpython-311.pyc", "anything")
    source = json.loads((project.notebooks / "words.ipynb").read_text(encoding="utf-8"))
    source["cells"][1]["execution_count"] = 7
    source["metadata"]["editor"] = "any"
    write(project.notebooks / "words.ipynb", json.dumps(source, indent=4))

    assert bring(project).executed == ()


def test_a_page_that_is_dropped_from_the_plan_is_removed(project: Project) -> None:
    edit(
        project.plan,
        "  - page: words\n    notebook: words.ipynb\n",
        "  - page: few\n    notebook: words.ipynb\n",
    )
    edit(project.toc, "sections/words", "sections/few")

    done = bring(project)

    assert done.executed == ("few",)
    assert done.removed == ("book/sections/words.ipynb",)
    assert not (project.sections / "words.ipynb").exists()


def test_a_foreign_file_among_the_outputs_is_refused_and_kept(project: Project) -> None:
    foreign = project.sections / "mine.ipynb"
    write(foreign, notebook(["1"]))

    with pytest.raises(BookError, match=r"mine\.ipynb.*Move it out"):
        bring(project)

    assert foreign.exists()


def test_a_failing_notebook_is_told_in_four_lines_and_stops_only_what_needs_it(
    project: Project,
) -> None:
    before = (project.sections / "run.ipynb").read_bytes()
    write(project.notebooks / "run.ipynb", notebook([RUN[0], "x = 1\nx = {}['xx']", *RUN[1:]]))
    write(project.notebooks / "words.ipynb", notebook([*WORDS, "print('more')"]))
    write(project.notebooks / "table.ipynb", notebook([*TABLE, "1"], parameters=False))

    with pytest.raises(BookError) as caught:
        bring(project)

    assert str(caught.value).splitlines() == [
        "notebooks/run.ipynb (page run) failed",
        "  cell 2: x = {}['xx']",
        "  KeyError: 'xx'",
        "  full traceback: book/_build/notebook-runs/run.traceback.txt",
    ]
    story = (project.work / "run.traceback.txt").read_text(encoding="utf-8")
    assert "KeyError" in story
    assert "\x1b" not in story
    assert text_of(project.sections / "words.ipynb") == "2\nmore\n"
    assert (project.sections / "run.ipynb").read_bytes() == before
    assert [path.name for path in project.work.iterdir()] == ["run.traceback.txt"]


def test_a_dying_kernel_and_a_missing_artefact_are_failures_like_any_other(
    project: Project,
) -> None:
    write(project.notebooks / "words.ipynb", notebook([*WORDS, "import os; os._exit(3)"]))
    write(project.notebooks / "run.ipynb", notebook([RUN[0], "done = True"]))
    shutil.rmtree(project.root / "runs")

    with pytest.raises(BookError) as caught:
        bring(project)

    lines = str(caught.value).splitlines()
    assert len(lines) == 8
    assert "  DeadKernelError: Kernel died" in lines
    there = "runs/a.json or runs/b.json or data/runs/a.json or data/runs/b.json"
    assert f"  BookError: it should provide {there}, and did not" in lines


def test_an_executed_notebook_holds_no_time_no_machine_and_folds_its_code(
    built: Project,
) -> None:
    text = (built.sections / "run.ipynb").read_text(encoding="utf-8")
    content = json.loads(text)

    assert str(built.root) not in text
    assert "papermill" not in content["metadata"]
    assert all("papermill" not in cell["metadata"] for cell in content["cells"])
    assert [cell["metadata"]["tags"] for cell in content["cells"]] == [["hide-input"]]
    assert content["metadata"]["cradle"]["ingredients"]["parameter models"] == '["a", "b"]'
