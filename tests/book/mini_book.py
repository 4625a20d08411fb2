"""Miniature projects that tests change: a library with pages, and a whole book."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from textwrap import dedent

import yaml

from cradle_lib.book.plan import Project

from ..command import run

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = "mini_lib"
MODELS = ["a", "b"]

LIBRARY = {
    "__init__.py": """
        from pathlib import Path

        def load(name):
            stop = Path(__file__).with_name("stop.txt").read_text().split()
            return [w for w in Path("..", "data", name).read_text().split() if w not in stop]

        def score(words):
            return 10 * len(words)
    """,
    "stop.txt": "the",
}

PLAN = """
pages:
  - page: words
    notebook: words.ipynb
    parameters: {name: one.txt}
  - page: run
    notebook: run.ipynb
    parameters: {models: [a, b]}
    provides: ["runs/{model}.json"]
  - page: table
    notebook: table.ipynb
    after: [run]
"""

TOC = """
format: jb-book
root: intro
parts:
  - caption: All
    chapters:
      - file: sections/words
      - file: sections/run
      - file: sections/table
"""

WORDS = ['name: str = "none.txt"', "from mini_lib import load\nprint(len(load(name)))"]
RUN = [
    "models: list[str] = []",
    "import json\nfrom pathlib import Path\nfrom mini_lib import load, score",
    "Path('../runs').mkdir(exist_ok=True)\nfor model in models:\n    run = [model, "
    "score(load('two.txt'))]\n    Path(f'../runs/{model}.json').write_text(json.dumps(run))",
]
TABLE = [
    "from pathlib import Path",
    "for path in sorted(Path('../runs').glob('*.json')):\n    print(path.read_text())",
]


def notebook(cells: Sequence[str], *, parameters: bool = True, title: str = "") -> str:
    """Makes a notebook of code cells; the first may be the parameters cell."""
    heading = {"cell_type": "markdown", "id": "title", "metadata": {}, "source": f"# {title}"}
    code = [
        {
            "cell_type": "code",
            "id": f"c{number}",
            "execution_count": None,
            "metadata": {"tags": ["parameters", "hide-input"]} if parameters and not number else {},
            "outputs": [],
            "source": source,
        }
        for number, source in enumerate(cells)
    ]
    content = {"cells": [heading] * bool(title) + code, "metadata": {}}
    return json.dumps(content | {"nbformat": 4, "nbformat_minor": 5})


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(dedent(text).lstrip("\n"), encoding="utf-8")


def make(root: Path) -> Project:
    """Writes the project into an empty folder."""
    for name, text in LIBRARY.items():
        write(root / PACKAGE / name, text)
    for name in ("one.txt", "two.txt"):
        write(root / "data" / name, "the first words")
    write(root / "notebooks/pages.yml", PLAN)
    write(root / "book/_toc.yml", TOC)
    write(root / "notebooks/words.ipynb", notebook(WORDS))
    write(root / "notebooks/run.ipynb", notebook(RUN))
    write(root / "notebooks/table.ipynb", notebook(TABLE, parameters=False))
    return Project(root, (PACKAGE,))


def text_of(path: Path) -> str:
    """Returns the printed output of an executed notebook."""
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    return "".join("".join(output.get("text", "")) for output in outputs)


def make_site(root: Path) -> Path:
    """Writes a book with the real configuration, templates and styles, and without notebooks."""
    settings = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))
    # The redirects' targets are not in the miniature book.
    settings["sphinx"]["config"]["cradle_redirects"] = {}
    write(root / "_config.yml", yaml.safe_dump(settings))
    for part in ("_templates", "_static", "_search"):
        shutil.copytree(ROOT / "book" / part, root / "book" / part)
    (root / "book/_config.yml").symlink_to("../_config.yml")
    (root / "data/surrogate").mkdir(parents=True)
    for split in ("test", "meta"):
        (root / f"data/surrogate/{split}.parquet").touch()
    shutil.copy(ROOT / "data/help_lines.yml", root / "data")
    write(root / "book/references.bib", "")
    write(root / "book/intro.md", "# Title\n\n```{helplines}\n```\n\nIt costs $1 or $2.\n")
    write(root / "book/_toc.yml", "format: jb-book\nroot: intro\nchapters:\n- glob: sections/*\n")
    write(root / "models.yml", "always-none: {name: None, group: baseline, engine: always-none}")
    return root


def build(root: Path, corpus: str | None = None) -> subprocess.CompletedProcess[str]:
    """Builds the miniature book with the command of the README."""
    command = ["jupyter-book", "build", "--warningiserror", "--keep-going", "book/"]
    environment = {name: value for name, value in os.environ.items() if name != "CRADLE_CORPUS"}
    if corpus is not None:
        environment["CRADLE_CORPUS"] = corpus
    # A socket in this folder would have a path that is too long.
    temporary = root.parent / ("x" * 100)
    temporary.mkdir(exist_ok=True)
    environment["TMPDIR"] = str(temporary)
    return run("from jupyter_book.cli.main import main\nmain()", command, environment, root)
