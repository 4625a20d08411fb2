"""Executes one notebook with papermill, in a worker process, and puts the result in place.

The notebook runs in a folder of its own and is moved into the book only when it is whole, so
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
    """One execution; what the page rests on, ``ingredients``, is stored in the output."""

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
    """Runs a notebook and moves the result into place; says why, if it can't be made.

    If it fails, the output stays as it was.
    """
    import papermill

    project, page, problem = job.project, job.page, None
    project.work.mkdir(parents=True, exist_ok=True)
    _traceback(job).unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix=f"{page.name}-", dir=project.work) as folder:
        ran = Path(folder) / "notebook.ipynb"
        try:
            _run(job, ran)
        except papermill.PapermillExecutionError as error:
            story = "\n".join(error.traceback) or str(error)
            problem = failure(job, _place(ran, error), error.ename, error.evalue, story)
        except Exception as error:  # A kernel that dies raises whatever its transport raises.
            problem = failure(job, "outside any cell", type(error).__name__, str(error))
        if problem is None:
            finished = _tidy(ran.read_text(encoding="utf-8"), job)
            write_text(project.sections / f"{page.name}.ipynb", finished)
        return problem


def _run(job: Job, ran: Path) -> None:
    import papermill
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    # The kernel inherits these. On pages, models are read and not run; and of pages that run side
    # by side, each with threads on every core, one took six times as long.
    os.environ[PAGE] = job.page.name
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    # The path of a Unix socket may have no more than 107 characters.
    with tempfile.TemporaryDirectory(prefix="nbk-") as sockets:

        class Manager(AsyncKernelManager):  # type: ignore[misc, unused-ignore]
            """A kernel of this Python that no other process can reach over the network."""

            def __init__(self, *args: Any, **options: Any) -> None:
                if os.name == "posix":
                    # Without a separate name, two kernels in one folder would share a socket.
                    options |= {"transport": "ipc", "ip": os.path.join(sockets, "k")}
                super().__init__(*args, **options)
                command = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
                self._kernel_spec = KernelSpec(argv=command, language="python")

        papermill.execute_notebook(
            str(job.page.notebook.path),
            str(ran),
            parameters=job.page.parameters,
            progress_bar=False,
            cwd=str(job.project.notebooks),
            kernel_name="python3",
            language="python",
            kernel_manager_class=Manager,
            extra_arguments=["--IPKernelApp.log_level=CRITICAL"],
        )


def _tidy(text: str, job: Job) -> str:
    """Drops what differs from run to run, arranges the page, and stores its state."""
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


def _place(ran: Path, error: Any) -> str:
    """The number of the failing cell in the source, and its first line that failed."""
    cells = json.loads(ran.read_text(encoding="utf-8"))["cells"]
    # Papermill has put a cell at the top, and one before that which failed.
    added = {INJECTED, "papermill-error-cell-tag"}
    number = sum(added.isdisjoint(tags_of(cell)) for cell in cells[: error.cell_index + 3])
    text = _ANSI.sub("", "\n".join(error.traceback))
    marked = re.findall(r"^-+> *\d+ (.*)$", text, flags=re.MULTILINE)
    line = (marked[:1] or [error.source.strip().split("\n")[0]])[0]
    return f"cell {number}: {line.strip()[:120]}"


def failure(job: Job, cell: str, kind: str, message: str, story: str | None = None) -> str:
    """Writes the whole story of a failure to a file, and sums it up for the reader.

    The sum is four lines: notebook and page, cell with its first failing line, error, where the
    story is.
    """
    file = _traceback(job)
    text = _ANSI.sub("", story or f"{kind}: {message}")
    write_text(file, text.rstrip() + "\n")
    first = (message.strip().splitlines() or [""])[0][:300]
    return (
        f"{job.project.shown(job.page.notebook.path)} (page {job.page.name}) failed\n  {cell}\n"
        f"  {kind}{first and f': {first}'}\n  full traceback: {job.project.shown(file)}"
    )


def _traceback(job: Job) -> Path:
    return job.project.work / f"{job.page.name}.traceback.txt"
