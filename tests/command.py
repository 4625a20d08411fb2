"""Runs programs in processes forked from a server that has imported the packages already.

Imports take most of the time of a short command. Nothing else differs from a command in a shell;
the start itself is tested on an installed package and in the build of the whole book.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from cradle_lib import paths

ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
_SERVER: Final = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(
    [
        "cradle_lib.cli.main",
        "cradle_lib.scoring.compare",
        "cradle_lib.book.sphinx_ext",
        "jupyter_book.cli.main",
        "jupyter_book.sphinx",
        "myst_nb.sphinx_ext",
        "sphinx.application",
        "sphinx_book_theme",
        "sphinxcontrib.bibtex",
    ]
)
_PROCESS: Final = """
import os, sys
for number, file in enumerate(files, start=1):
    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
os.environ.clear()
os.environ.update(environment)
os.chdir(folder)
sys.argv = arguments
exec(code)
"""


def run(
    code: str, arguments: Sequence[str], environment: Mapping[str, str], folder: Path
) -> subprocess.CompletedProcess[str]:
    """Runs code in a new process, with these program arguments."""
    with tempfile.TemporaryDirectory() as made:
        files = [Path(made, name) for name in ("out", "err")]
        names = {
            "files": files,
            "environment": dict(environment),
            "folder": folder,
            "arguments": list(arguments),
            "code": code,
        }
        process = _SERVER.Process(target=exec, args=(_PROCESS, names))
        process.start()
        process.join()
        out, err = (file.read_text() for file in files)
    assert process.exitcode is not None
    return subprocess.CompletedProcess(names["arguments"], process.exitcode, out, err)


def cradle(
    *arguments: str | int | Path, code: str = "", environment: Mapping[str, str] = ENVIRONMENT
) -> subprocess.CompletedProcess[str]:
    """Runs ``cradle`` in the project's folder, optionally after some code."""
    program = f"{code}\nfrom cradle_lib.cli import main\nmain()"
    return run(program, ["cradle", *map(str, arguments)], environment, paths.ROOT)
