"""A command in a process of its own, forked from one that has imported the library.

Most seconds of a short command are imports. Nothing else differs from a command that a user starts;
that it starts at all is tested where the package is installed.
"""

from __future__ import annotations

import multiprocessing
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cradle_lib import paths

ENVIRONMENT: Final = {"PATH": "/usr/bin:/bin", "COLUMNS": "200", "OMP_NUM_THREADS": "1"}
_SERVER: Final = multiprocessing.get_context("forkserver")
_SERVER.set_forkserver_preload(["cradle_lib.cli.main", "cradle_lib.scoring.comparison"])
_COMMAND: Final = """
import os, sys
for number, file in enumerate(files, start=1):
    os.dup2(os.open(file, os.O_WRONLY | os.O_CREAT), number)
os.environ.clear()
os.environ.update(environment)
os.chdir(folder)
sys.argv = ["cradle", *arguments]
exec(code)
from cradle_lib.cli import main
main()
"""


def cradle(
    *arguments: str | int | Path, code: str = "", environment: Mapping[str, str] = ENVIRONMENT
) -> subprocess.CompletedProcess[str]:
    """Runs ``cradle`` in the project's folder, after some code if there is any."""
    words = list(map(str, arguments))
    with tempfile.TemporaryDirectory() as made:
        files = [Path(made, name) for name in ("out", "err")]
        names = {
            "files": files,
            "environment": dict(environment),
            "folder": paths.ROOT,
            "arguments": words,
            "code": code,
        }
        process = _SERVER.Process(target=exec, args=(_COMMAND, names))
        process.start()
        process.join()
        out, err = (file.read_text() for file in files)
    assert process.exitcode is not None
    return subprocess.CompletedProcess(words, process.exitcode, out, err)
