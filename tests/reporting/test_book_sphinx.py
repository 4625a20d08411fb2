"""The one command, ``jupyter-book build book/``, over a miniature book."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from .mini_book import notebook, write

# The tests share a book: on one worker it is made once.
pytestmark = pytest.mark.xdist_group("book-sphinx")

ROOT = Path(__file__).resolve().parents[2]
TABLE = (
    "from IPython.display import HTML\n"
    "HTML('<table><tr><th></th><th>a</th></tr><tr><th>1</th><td>2</td></tr></table>')"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A book of two pages with the real configuration, templates and styles."""
    root = tmp_path_factory.mktemp("book")
    shutil.copy(ROOT / "_config.yml", root)
    for part in ("_templates", "_static"):
        shutil.copytree(ROOT / "book" / part, root / "book" / part)
    (root / "book/_config.yml").symlink_to("../_config.yml")
    (root / "data/surrogate").mkdir(parents=True)
    for split in ("test", "meta"):
        (root / f"data/surrogate/{split}.parquet").touch()
    shutil.copy(ROOT / "data/help_lines.yml", root / "data")
    write(root / "models.yml", "always-none: {name: None, group: baseline, engine: always-none}")
    write(root / "book/references.bib", "")
    write(root / "book/intro.md", "# Title\n\n```{helplines}\n```\n\nIt costs $1 or $2.\n")
    write(root / "book/_toc.yml", "format: jb-book\nroot: intro\nchapters:\n- glob: sections/*\n")
    write(root / "notebooks/pages.yml", "pages: [{page: one, notebook: one.ipynb, title: One}]")
    write(root / "notebooks/one.ipynb", notebook([TABLE], parameters=False))
    return root


def build(root: Path) -> subprocess.CompletedProcess[str]:
    program = Path(sys.executable).with_name("jupyter-book")
    command = [program, "build", "--warningiserror", "--keep-going", "book/"]
    environment = {name: value for name, value in os.environ.items() if name != "CRADLE_CORPUS"}
    return subprocess.run(
        command, cwd=root, env=environment, capture_output=True, text=True, check=False
    )


def test_a_failing_notebook_ends_the_build_with_four_lines_and_no_traceback(root: Path) -> None:
    good = (root / "notebooks/one.ipynb").read_text(encoding="utf-8")
    write(root / "notebooks/one.ipynb", notebook(["1 / 0"], parameters=False))

    done = build(root)

    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "notebooks/one.ipynb (page one) failed",
        "  cell 1: 1 / 0",
        "  ZeroDivisionError: division by zero",
        "  full traceback: book/_build/notebook-runs/one.traceback.txt",
    ]
    assert "Traceback" not in done.stdout
    write(root / "notebooks/one.ipynb", good)


def test_one_command_executes_renders_and_tidies(root: Path) -> None:
    done = build(root)

    assert done.returncode == 0, done.stderr
    assert "[book] 1 pages executed, 0 up to date" in done.stdout
    page = (root / "book/_build/html/sections/one.html").read_text(encoding="utf-8")
    assert "<title>One" in page
    assert "<th></th>" not in page
    assert "THEBE" not in page
    assert "x-thebe-config" not in page
    assert 'src="https://' not in page
    for number in ("988", "741741"):
        assert number in page
    intro = (root / "book/_build/html/intro.html").read_text(encoding="utf-8")
    assert "It costs $1 or $2." in intro
    assert "cradle-help-list" in intro


def test_without_changes_nothing_is_executed_or_written_again(root: Path) -> None:
    build(root)
    page = root / "book/_build/html/sections/one.html"
    before = page.stat().st_mtime_ns

    done = build(root)

    assert "[book] 0 pages executed, 1 up to date" in done.stdout
    assert page.stat().st_mtime_ns == before


def test_a_changed_style_reaches_the_built_site(root: Path) -> None:
    build(root)
    with (root / "book/_static/book.css").open("a", encoding="utf-8") as style:
        style.write("/* changed */\n")

    build(root)

    built = (root / "book/_build/html/_static/book.css").read_text(encoding="utf-8")
    assert built.endswith("/* changed */\n")


def test_an_output_says_what_it_rests_on(root: Path) -> None:
    build(root)

    stored = json.loads((root / "book/sections/one.ipynb").read_text(encoding="utf-8"))
    ingredients = stored["metadata"]["cradle"]["ingredients"]
    assert {"notebook", "python", "library", "execution", "title"} <= set(ingredients)
