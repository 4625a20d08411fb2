"""Executes the notebook of one page in a process of its own, and puts the result in place.

The process is a fork of the build, which has made the imports and read the runs that pages share:
without it, every page would begin with about three seconds of imports, and each page of results
with five of reading journals. The result is moved into the book only when it is whole, so an
interrupted run never leaves a page that looks finished.
"""

from __future__ import annotations

import base64
import io
import json
import os
import re
import threading
import time
import traceback
from collections.abc import Mapping
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final

from cradle_lib.book.cache_key import METADATA, artefacts, key_of
from cradle_lib.book.notebooks.notebook import PARAMETERS_TAG
from cradle_lib.book.notebooks.page import as_page, tags_of
from cradle_lib.book.plan import Page, Project
from cradle_lib.detection.journal_paths import PAGE
from cradle_lib.files import replacing

_CONTROL: Final = re.compile(r"\x1b\[[0-9;]*m")
_LANGUAGE: Final = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python", "pygments_lexer": "ipython3"},
}


@dataclass(frozen=True, slots=True)
class Job:
    """One execution; what the page rests on, ``ingredients``, is stored in the output."""

    project: Project
    page: Page
    ingredients: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Done:
    """Why a page could not be made, if so, and the lines that it wrote to standard error."""

    failure: str | None
    said: tuple[str, ...] = ()


class CellError(Exception):
    """A cell failed: where, with which error, which is its cause."""


def work(job: Job, channel: Connection) -> None:
    """Makes a page in this process, which ends with the process that started it."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()
    channel.send(execute(job))


def execute(job: Job) -> Done:
    """Runs a notebook and moves the result into place; if it fails, the output stays as it was.

    A warning or a progress bar of a library goes to standard error. It is no part of the page,
    and no fault of it.
    """
    project, page, problem = job.project, job.page, None
    _traceback(job).unlink(missing_ok=True)
    content = json.loads(page.notebook.path.read_text(encoding="utf-8"))
    said = io.StringIO()
    try:
        with redirect_stderr(said):
            _run(job, content["cells"])
        if page.provides and not artefacts(project, page.provides):
            lacking = f"it should provide {' or '.join(page.provides)}, and did not"
            problem = failure(job, "after the last cell", "BookError", lacking)
    except CellError as error:
        cause = error.__cause__ or error
        story = "".join(traceback.format_exception(cause))
        problem = failure(job, str(error), type(cause).__name__, str(cause), story)
    if problem is None:
        project.sections.mkdir(parents=True, exist_ok=True)
        with replacing(project.sections / f"{page.name}.ipynb") as part:
            part.write_text(_finished(content, job), encoding="utf-8")
    return Done(problem, _lines(said.getvalue()))


def _run(job: Job, cells: list[dict[str, Any]]) -> None:
    """Runs the cells as a kernel would, and puts their outputs into them."""
    # Here, models are read and not run.
    os.environ[PAGE] = job.page.name
    os.chdir(job.project.notebooks)
    from IPython.core.displaypub import CapturingDisplayPublisher
    from IPython.core.interactiveshell import InteractiveShell
    from threadpoolctl import threadpool_limits
    from traitlets.config import Config

    # Pages run side by side. Where each has threads on every core, these wait for one another:
    # a classifier that one thread fits in 20 s took a minute and a half beside another page.
    threadpool_limits(1)
    shell = InteractiveShell.instance(config=Config(HistoryManager={"enabled": False}))
    publisher: Any = CapturingDisplayPublisher
    shell.display_pub = publisher()
    for number, cell in enumerate(cells, 1):
        if cell["cell_type"] != "code":
            continue
        source = "".join(cell["source"])
        if PARAMETERS_TAG in tags_of(cell) and job.page.parameters:
            values = (f"{name} = {_literal(value)}" for name, value in job.page.parameters.items())
            source = "\n".join([source.rstrip(), "# On this page:", *values])
        cell["source"], cell["outputs"] = source, _outputs(shell, source, number)


def _outputs(shell: Any, source: str, number: int) -> list[dict[str, Any]]:
    from IPython.core import displayhook

    shell.display_pub.outputs = []
    hook: Any = displayhook.CapturingDisplayHook
    shell.display_trap.hook = hook(shell, shell.display_pub.outputs)
    printed = io.StringIO()
    with redirect_stdout(printed):
        result = shell.run_cell(source)
    error = result.error_before_exec or result.error_in_exec
    if error is not None:
        frames = traceback.extract_tb(error.__traceback__)
        lines = [frame.line for frame in frames if frame.filename.startswith("<ipython-input")]
        line = next(filter(None, lines), source.strip().partition("\n")[0])
        raise CellError(f"cell {number}: {line.strip()[:120]}") from error
    outputs: list[dict[str, Any]] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    for shown in shell.display_pub.outputs:
        kept = {"data": shown["data"], "metadata": shown["metadata"] or {}}
        outputs.append({"output_type": "display_data", **kept})
    return outputs


def _literal(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)


def _finished(content: dict[str, Any], job: Job) -> str:
    """Arranges the page, stores its state, and drops the folder of this machine."""
    state = {
        "key": key_of(job.ingredients),
        "ingredients": dict(job.ingredients),
        "artefacts": artefacts(job.project, job.page.provides),
        "source": job.project.shown(job.page.notebook.path),
    }
    cells = json.dumps(as_page(content["cells"]), ensure_ascii=False, default=_encoded)
    folder = json.dumps(f"{job.project.root}{os.sep}", ensure_ascii=False)[1:-1]
    content["cells"] = json.loads(cells.replace(folder, ""))
    content["metadata"] |= {**_LANGUAGE, METADATA: state}
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _encoded(picture: bytes) -> str:
    return base64.b64encode(picture).decode("ascii")


def _lines(said: str) -> tuple[str, ...]:
    """What a notebook wrote to standard error; of a progress bar its last state."""
    lines = []
    for line in _CONTROL.sub("", said).split("\n"):
        states = [state.rstrip() for state in line.split("\r") if state.strip()]
        lines += states[-1:]
    return tuple(lines)


def failure(job: Job, cell: str, kind: str, message: str, story: str | None = None) -> str:
    """Writes the whole story of a failure to a file, and sums it up for the reader.

    The sum is four lines: notebook and page, cell with its first failing line, error, where the
    story is.
    """
    file = _traceback(job)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text((story or f"{kind}: {message}").rstrip() + "\n", encoding="utf-8")
    first = (message.strip().splitlines() or [""])[0][:300]
    return (
        f"{job.project.shown(job.page.notebook.path)} (page {job.page.name}) failed\n  {cell}\n"
        f"  {kind}{first and f': {first}'}\n  full traceback: {job.project.shown(file)}"
    )


def _traceback(job: Job) -> Path:
    return job.project.work / f"{job.page.name}.traceback.txt"
