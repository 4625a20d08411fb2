"""The build pipeline of a miniature project, with real papermill and kernels."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from cradle_lib.book.build import Update, update
from cradle_lib.book.cache_key import Ingredients
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.plan import Project, load_plan
from cradle_lib.errors import BookError

from .mini_book import MODELS, PACKAGE, RUN, TABLE, WORDS, make, notebook, text_of, write

ALL = {"words", "run", "table"}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Project:
    """A miniature project that was built once; tests use copies."""
    project = make(tmp_path_factory.mktemp("built"))
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(project.root)
        done = build(project)
    assert set(done.executed) == ALL
    return project


@pytest.fixture
def project(built: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    shutil.copytree(built.root, tmp_path / "réplique")
    monkeypatch.syspath_prepend(tmp_path / "réplique")
    return Project(tmp_path / "réplique", (PACKAGE,))


def build(project: Project) -> Update:
    return update(project, models=MODELS, corpus=BookCorpus())


def stale(project: Project) -> set[str]:
    """Returns the pages that are stale now."""
    pages = load_plan(project, MODELS, BookCorpus())
    ingredients = Ingredients(project, pages)
    return {page.name for page in pages if ingredients.stale(page, ingredients.of(page))}


def edit(path: Path, old: str, new: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")


def test_irrelevant_changes_execute_nothing(project: Project) -> None:
    write(project.root / PACKAGE / "__pycache__/scores.cpython-311.pyc", "anything")
    write(project.root / PACKAGE / "cli" / "new.py", "print('no page can use it')")
    source = json.loads((project.notebooks / "words.ipynb").read_text(encoding="utf-8"))
    source["cells"][1]["execution_count"] = 7
    source["metadata"]["editor"] = "any"
    write(project.notebooks / "words.ipynb", json.dumps(source, indent=4))
    for file in project.root.rglob("*"):
        os.utime(file)

    assert stale(project) == set()


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        ("data/one.txt", "first", "first few", ALL),
        ("notebooks/pages.yml", "{name: one.txt}", "{name: two.txt}", {"words"}),
        ("notebooks/words.ipynb", "print", "print(1); print", {"words"}),
        (f"{PACKAGE}/__init__.py", "10 *", "100 *", ALL),
        (f"{PACKAGE}/stop.txt", "the", "first", ALL),
        # An artefact makes the page that writes it and the page that reads it stale.
        ("runs/a.json", "20", "30", {"run", "table"}),
        # An edited page is executed again: a number, a half of the file.
        ("book/sections/words.ipynb", "2\\n", "3\\n", {"words"}),
        ("book/sections/words.ipynb", '"nbformat": 4', "<<<<<<< HEAD", {"words"}),
    ],
)
def test_a_change_makes_the_pages_that_depend_on_it_stale(
    project: Project, file: str, old: str, new: str, expected: set[str]
) -> None:
    assert stale(project) == set()
    edit(project.root / file, old, new)
    assert stale(project) == expected


@pytest.mark.parametrize(("corpus", "expected"), [("surrogate", set()), ("hub", {"words"})])
def test_a_fetched_release_makes_only_pages_about_it_stale(
    project: Project, corpus: str, expected: set[str]
) -> None:
    write(project.notebooks / "words.ipynb", notebook(["corpus = ''"]))
    edit(project.plan, "{name: one.txt}", '{corpus: "{corpus}"}')
    for folder in "surrogate", "release":
        write(project.root / f"data/{folder}/test.parquet", "test")

    def ingredients() -> dict[str, dict[str, str]]:
        pages = load_plan(project, MODELS, BookCorpus(corpus))
        found = Ingredients(project, pages)
        return {page.name: found.of(page) for page in pages}

    before = ingredients()
    write(project.root / "data/release/train.parquet", "train")
    after = ingredients()
    assert {name for name in before if before[name] != after[name]} == expected


def test_a_module_beside_the_notebooks_is_an_ingredient(project: Project) -> None:
    def ingredients() -> dict[str, str]:
        pages = load_plan(project, MODELS, BookCorpus("surrogate"))
        return Ingredients(project, pages).of(pages[0])

    found = [ingredients()]
    for content in ("WORDS = ['a']", "WORDS = ['b']"):
        write(project.notebooks / "mine/words.py", content)
        found.append(ingredients())
    assert len({each["modules"] for each in found}) == 3
    assert {name for name in found[0] if found[0][name] != found[1][name]} == {"modules"}


RUNS = """
pages:
  # As the page of runs: it makes some and shows all, and a fork is compared with one of them.
  - page: all
    notebook: all.ipynb
    provides: [runs/surrogate-test/base.jsonl]
    runs: true
  - page: fork
    notebook: fork.ipynb
    provides: [runs/surrogate-test/fork.jsonl]
    after: [all]
  - page: undeclared
    notebook: undeclared.ipynb
  - page: reader
    notebook: reader.ipynb
    parameters: {corpus: "{corpus}"}
"""
FOLDER = "from pathlib import Path\nruns = Path('../runs/surrogate-test')"
MADE = "runs.mkdir(parents=True, exist_ok=True)\n(runs / '{0}.jsonl').write_text('{0} 1')"
SHOWN = "print(*sorted(path.read_text() for path in runs.glob('*.jsonl')), sep='\\n')"


def test_pages_show_all_runs_that_exist_at_the_end_of_a_build(project: Project) -> None:
    write(project.plan, RUNS)
    write(project.root / "data/surrogate/test.parquet", "test")
    base, fork, other = (MADE.format(name) for name in ("base", "fork", "other"))
    for name, cells in {
        "all": [FOLDER, base, SHOWN],
        "fork": [FOLDER, "assert (runs / 'base.jsonl').exists()", fork],
        "undeclared": [FOLDER, "while not (runs / 'fork.jsonl').exists(): pass", other],
        "reader": ["corpus = ''", FOLDER, SHOWN],
    }.items():
        write(project.notebooks / f"{name}.ipynb", notebook(cells, parameters=name == "reader"))

    for version in "1", "2":
        done = build(project)
        shown = ["base 1", f"fork {version}", "other 1"]
        for page in "all", "reader":
            assert text_of(project.sections / f"{page}.ipynb").splitlines() == shown
        assert done.executed.index("fork") < done.executed.index("reader")
        assert build(project).executed == []
        edit(project.notebooks / "fork.ipynb", "fork 1", "fork 2") if version == "1" else None
    # Without a change of runs, nothing is executed twice.
    assert done.executed == ["fork", "reader", "all"] or done.executed == ["fork", "all", "reader"]


def test_a_page_reads_artefacts_and_has_no_times_or_paths(built: Project) -> None:
    # "the first words" without the stop word "the" is two words, times ten.
    assert text_of(built.sections / "table.ipynb") == '["a", 20]\n["b", 20]\n'
    text = (built.sections / "run.ipynb").read_text(encoding="utf-8")
    content = json.loads(text)
    assert str(built.root) not in text
    assert "papermill" not in content["metadata"]
    assert all("papermill" not in cell["metadata"] for cell in content["cells"])
    assert [cell["metadata"]["tags"] for cell in content["cells"]] == [["hide-input"]]
    ingredients = content["metadata"]["cradle"]["ingredients"]
    assert ingredients["parameters"] == '{"models": ["a", "b"]}'


def test_a_page_has_its_parameters_and_a_renamed_one_replaces_the_old(project: Project) -> None:
    edit(project.plan, "page: words", "page: few")
    edit(project.toc, "sections/words", "sections/few")
    where = "import os\nprint(os.path.abspath('words.ipynb'))"
    write(project.notebooks / "words.ipynb", notebook([*WORDS, where]))
    foreign = project.sections / "mine.ipynb"
    write(foreign, notebook(["1"]))

    done = build(project)

    assert done.executed == ["few"]
    # A page that is not in the plan is removed; other files are kept.
    assert not (project.sections / "words.ipynb").exists()
    assert foreign.exists()
    page = json.loads((project.sections / "few.ipynb").read_text(encoding="utf-8"))
    # Paths are relative.
    assert text_of(project.sections / "few.ipynb") == "2\nnotebooks/words.ipynb\n"
    values = f'{WORDS[0]}\n\n# Parameters\nname = "one.txt"'
    assert page["cells"][1]["source"] == f"{values}\n\n{WORDS[1]}"
    assert page["metadata"]["cradle"]["source"] == "notebooks/words.ipynb"


def test_a_failing_notebook_stops_only_dependent_pages(project: Project) -> None:
    before = (project.sections / "run.ipynb").read_bytes()
    write(project.notebooks / "run.ipynb", notebook([RUN[0], "x = 1\nx = {}['xx']", *RUN[1:]]))
    write(project.notebooks / "words.ipynb", notebook([*WORDS, "print('more')"]))
    write(project.notebooks / "table.ipynb", notebook([*TABLE, "1"], parameters=False))

    # The failing line is not the first of its cell.
    with pytest.raises(BookError, match=r"cell 2: x = {}\['xx'\]"):
        build(project)

    traceback = (project.work / "run.traceback.txt").read_text(encoding="utf-8")
    assert "KeyError" in traceback
    assert "\x1b" not in traceback
    assert text_of(project.sections / "words.ipynb") == "2\nmore\n"
    assert (project.sections / "run.ipynb").read_bytes() == before
    assert [path.name for path in project.work.iterdir()] == ["run.traceback.txt"]
