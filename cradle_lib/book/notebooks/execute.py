"""Executes one notebook with papermill, in a worker process, and writes the page.

The notebook is executed in a temporary folder and copied to the book only when it is complete, so
an interrupted run never leaves a page that looks finished.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cradle_lib.book.cache_key import METADATA, digest_of
from cradle_lib.book.notebooks.page import INJECTED, as_page, tags_of
from cradle_lib.book.plan import Page, Project
from cradle_lib.detection.find_runs import PAGE
from cradle_lib.files import write_text

_ANSI: Final = re.compile(r"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class Job:
    """One execution of a page; its ``ingredients`` are stored in the output."""

    project: Project
    page: Page
    ingredients: Mapping[str, str]


def watch_parent() -> None:
    """Ends this worker when the process that started it is gone."""
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


def execute(job: Job) -> str | None:
    """Executes a notebook and writes the page.

    Gives the message of a failure, or ``None``. After a failure, the earlier page is unchanged.
    """
    import papermill

    project, page, problem = job.project, job.page, None
    project.work.mkdir(parents=True, exist_ok=True)
    _traceback_file(job).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{page.name}-", dir=project.work) as folder:
        executed = Path(folder) / "notebook.ipynb"
        try:
            _run(job, executed)
        except papermill.PapermillExecutionError as error:
            traceback = "\n".join(error.traceback) or str(error)
            problem = failure(
                job, _failed_cell(executed, error), error.ename, error.evalue, traceback
            )
        except Exception as error:  # If a kernel dies, its transport may raise any exception.
            problem = failure(job, "outside any cell", type(error).__name__, str(error))
        if problem is None:
            finished = _tidy(executed.read_text(encoding="utf-8"), job)
            write_text(project.sections / f"{page.name}.ipynb", finished)
        return problem


def _run(job: Job, executed: Path) -> None:
    import papermill
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    # The kernel inherits these. With the first, pages read runs and start no model. Without the
    # second, a page took six times as long while others also had threads on every core.
    os.environ[PAGE] = job.page.name
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # The path of a Unix socket may have no more than 107 characters.
    with tempfile.TemporaryDirectory(prefix="nbk-") as sockets:

        class Manager(AsyncKernelManager):  # type: ignore[misc, unused-ignore]
            """A kernel of this Python that no other process can reach over the network."""

            def __init__(self, *args: Any, **options: Any) -> None:
                if os.name == "posix":
                    # In a shared folder, two kernels could use the same socket.
                    options |= {"transport": "ipc", "ip": os.path.join(sockets, "k")}
                super().__init__(*args, **options)
                command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
                self._kernel_spec = KernelSpec(argv=command, language="python")

        papermill.execute_notebook(
            str(job.page.notebook.path),
            str(executed),
            parameters=job.page.parameters,
            progress_bar=False,
            cwd=str(job.project.notebooks),
            kernel_name="python3",
            language="python",
            kernel_manager_class=Manager,
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )


def _tidy(text: str, job: Job) -> str:
    """Makes paths relative to the repository, arranges the page, and stores its ingredients."""
    text = text.replace(json.dumps(f"{job.project.root}{os.sep}", ensure_ascii=False)[1:-1], "")
    content = json.loads(text)
    content["metadata"].pop("papermill", None)
    content["metadata"][METADATA] = {
        "ingredients": dict(job.ingredients),
        "artefacts": digest_of(job.project, job.page.provides),
        "source": job.project.shown(job.page.notebook.path),
    }
    content["cells"] = as_page(content["cells"])
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _failed_cell(executed: Path, error: Any) -> str:
    """Gives the number of the failed cell in the source, and the first line that failed."""
    cells = json.loads(executed.read_text(encoding="utf-8"))["cells"]
    # Papermill has added a cell at the top and one before the failed cell, which is two further.
    added = {INJECTED, "papermill-error-cell-tag"}
    number = sum(added.isdisjoint(tags_of(cell)) for cell in cells[: error.cell_index + 3])
    text = _ANSI.sub("", "\n".join(error.traceback))
    marked = re.findall(r"^-+> *\d+ (.*)$", text, flags=re.MULTILINE)
    line = (marked[:1] or [error.source.strip().split("\n")[0]])[0]
    return f"cell {number}: {line.strip()[:120]}"


def failure(job: Job, cell: str, kind: str, message: str, traceback: str | None = None) -> str:
    """Writes the traceback of a failure to a file, and gives a summary of four lines.

    The lines are: notebook and page, cell with the first line that failed, error, path of the file.
    """
    file = _traceback_file(job)
    text = _ANSI.sub("", traceback or f"{kind}: {message}")
    write_text(file, text.rstrip() + "\n")
    first = (message.strip().splitlines() or [""])[0][:300]
    return (
        f"{job.project.shown(job.page.notebook.path)} (page {job.page.name}) failed\n  {cell}\n"
        f"  {kind}{first and f': {first}'}\n  full traceback: {job.project.shown(file)}"
    )


def _traceback_file(job: Job) -> Path:
    return job.project.work / f"{job.page.name}.traceback.txt"
