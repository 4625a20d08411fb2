"""Executing one page: with real kernels, whatever the notebook and the user's settings are."""

from __future__ import annotations

import json
import os
import signal
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from cradle_lib.book.build import short_folder
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks import provisioner
from cradle_lib.book.notebooks.execute import Job, execute
from cradle_lib.book.plan import Project, load_plan

from .mini_book import MODELS, WORDS, make, notebook, text_of, write


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Project:
    monkeypatch.syspath_prepend(tmp_path / "book")
    return make(tmp_path / "book")


def run_words(project: Project, *cells: str, tags: Sequence[str] | None = ()) -> str | None:
    """Executes the page of words with further cells, the first of which has tags."""
    content = json.loads(notebook([*WORDS, *cells]))
    content["cells"][len(WORDS)]["metadata"]["tags"] = None if tags is None else [*tags]
    write(project.notebooks / "words.ipynb", json.dumps(content))
    [words, *_] = load_plan(project, MODELS, BookCorpus())
    with short_folder() as folder:
        return execute(Job(project, words, {}, Path(folder)))


HIDDEN = "from IPython.display import clear_output\ntry:\n    1 / 0\nfinally:\n    clear_output()"


@pytest.mark.parametrize(
    ("cell", "tags", "error"),
    [
        ("import sys; sys.exit()", (), "SystemExit"),
        ("quit()", (), "SystemExit: it ends the notebook"),
        (
            "%%capture\n%nosuchmagic",
            (),
            "UsageError: Line magic function `%nosuchmagic` not found.",
        ),
        ("%%script false\nanything", (), "CalledProcessError: Command 'b'anything"),
        ("1", ("skip-execution",), "the cell did not run"),
        (HIDDEN, ("raises-exception",), "ZeroDivisionError: division by zero"),
        (
            "try:\n    1 / 0\nexcept ArithmeticError:\n    get_ipython().showtraceback()",
            (),
            "ZeroDivisionError: division by zero",
        ),
        (
            "class Quiet(Exception):\n    def _render_traceback_(self): return []\nraise Quiet",
            (),
            "Quiet",
        ),
        ("import os; os._exit(0)", (), "DeadKernelError: Kernel died"),
    ],
)
def test_a_page_is_kept_if_a_cell_of_the_new_one_did_not_succeed(
    project: Project, cell: str, tags: tuple[str, ...], error: str
) -> None:
    write(project.sections / "words.ipynb", "the page before\n")

    problem = run_words(project, cell, "print('the result')", tags=tags)

    assert problem is not None
    name, place, kind, _ = problem.splitlines()
    assert name == "notebooks/words.ipynb (page words) failed"
    assert place.startswith("  cell 3: ")
    assert kind.startswith(f"  {error}")
    assert (project.sections / "words.ipynb").read_text(encoding="utf-8") == "the page before\n"


PAGE = """
x = 2
x + 1
x + 2
"""
FIGURE = """
from matplotlib import pyplot
print(pyplot.rcParams["figure.dpi"])
pyplot.plot([1, 2])
pyplot.show()
"""


def test_a_page_does_not_depend_on_the_settings_of_the_user(
    project: Project, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cells = [PAGE, "print('MINE' in globals())", FIGURE]
    assert run_words(project, *cells) is None
    plain = (project.sections / "words.ipynb").read_text(encoding="utf-8")
    assert "image/png" in plain
    assert text_of(project.sections / "words.ipynb").startswith("2\nFalse\n")

    mine = "MINE = 1"
    profile = tmp_path / "home/.ipython/profile_default"
    write(profile / "startup/0.py", mine)
    lines = f"c.InteractiveShellApp.exec_lines = [{mine!r}]\n"
    write(
        profile / "ipython_config.py", "c.InteractiveShell.ast_node_interactivity = 'all'\n" + lines
    )
    write(
        profile / "ipython_kernel_config.py", "c.InlineBackend.figure_formats = {'svg'}\n" + lines
    )
    write(tmp_path / "start.py", mine)
    write(tmp_path / "rc/matplotlibrc", "backend: agg\nfigure.dpi: 30\n")
    kernel = {"argv": ["false"], "display_name": "mine", "language": "python"}
    write(tmp_path / "jupyter/kernels/python3/kernel.json", json.dumps(kernel))
    for name, place in {
        "HOME": "home",
        "IPYTHONDIR": "home/.ipython",
        "PYTHONSTARTUP": "start.py",
        "MPLCONFIGDIR": "rc",
        "MATPLOTLIBRC": "rc/matplotlibrc",
        "JUPYTER_PATH": "jupyter",
        "JUPYTER_CONFIG_DIR": "jupyter",
    }.items():
        monkeypatch.setenv(name, str(tmp_path / place))
    monkeypatch.setenv("MPLBACKEND", "TkAgg")

    assert run_words(project, *cells) is None
    assert (project.sections / "words.ipynb").read_text(encoding="utf-8") == plain


@pytest.mark.parametrize(
    ("name", "short"),
    [
        ("{connection_file} {prefix}", "/tmp"),
        # Without a place for sockets, the kernel listens on a port.
        ("50 % 'of' \"it\" #1 ü", "/missing"),
    ],
)
def test_a_checkout_and_the_temporary_folder_may_have_any_path(
    tmp_path: Path, name: str, short: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = make(tmp_path / name)
    monkeypatch.syspath_prepend(project.root)
    place = tmp_path / name / ("x" * 100)
    place.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(place))
    monkeypatch.setattr(provisioner, "_SHORT_PLACE", short)

    assert run_words(project, "1", tags=None) is None

    assert text_of(project.sections / "words.ipynb") == "2\n"
    assert list(place.iterdir()) == []


PROGRAM = """
import atexit, multiprocessing, os, sys
from pathlib import Path
from concurrent.futures import ProcessPoolExecutor
import own_helper
from threadpoolctl import threadpool_info
for way in "fork", "spawn":
    with multiprocessing.get_context(way).Pool(1) as pool:
        print(pool.map(own_helper.double, [1, 2]))
def triple(number): return 3 * number
with ProcessPoolExecutor(1) as pool:
    print(list(pool.map(triple, [1, 2])))
print(any("pytest" in argument for argument in sys.argv[1:]))
print({pool["num_threads"] for pool in threadpool_info()})
atexit.register(Path("ended").touch)
"""


def test_a_page_is_a_program_of_its_own(project: Project) -> None:
    helper = "def double(number):\n    return 2 * number\n"
    write(project.notebooks / "own_helper.py", helper)

    assert run_words(project, PROGRAM) is None

    shown = text_of(project.sections / "words.ipynb")
    assert shown.splitlines()[1:] == ["[2, 4]", "[2, 4]", "[3, 6]", "False", "{1}"]
    assert (project.notebooks / "ended").exists()


FRESH = """
import os
print(os.environ["CRADLE_PAGE"], "seen" in globals(), os.getppid())
seen = True
"""


def test_pages_share_what_was_imported_before_and_nothing_else(project: Project) -> None:
    """The kernels of one worker are copies of one process; a new one replaces it if it dies."""
    write(project.notebooks / "words.ipynb", notebook([*WORDS, FRESH]))
    [words, *_] = load_plan(project, MODELS, BookCorpus())
    shown = []
    for name in ("one", "two", "three"):
        with short_folder() as folder:
            assert execute(Job(project, replace(words, name=name), {}, Path(folder))) is None
        shown.append(text_of(project.sections / f"{name}.ipynb").split()[-3:])
        if name == "two":
            os.kill(int(shown[-1][2]), signal.SIGKILL)
            os.waitid(os.P_PID, int(shown[-1][2]), os.WEXITED | os.WNOWAIT)

    assert [page[:2] for page in shown] == [["one", "False"], ["two", "False"], ["three", "False"]]
    servers = [page[2] for page in shown]
    assert servers[0] == servers[1] != servers[2]


def test_a_page_fails_if_the_process_that_started_its_kernel_is_killed(project: Project) -> None:
    killing = "import os, signal\nos.kill(os.getppid(), signal.SIGKILL)\nsignal.pause()"
    problem = run_words(project, killing)

    assert problem is not None
    assert "DeadKernelError: Kernel died" in problem
