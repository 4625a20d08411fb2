"""Executes one notebook, and writes the page.

The page is written only if every cell ran and none failed; otherwise the earlier page stays.
"""

from __future__ import annotations

import asyncio
import atexit
import json
import os
import re
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from cradle_lib import paths
from cradle_lib.book.cache_key import METADATA, digest_of, page_digest
from cradle_lib.book.notebooks.page import INJECTED, as_page, tags_of
from cradle_lib.book.notebooks.settings import ONE_THREAD, SETTINGS
from cradle_lib.book.plan import Page, Project
from cradle_lib.files import write_text

if TYPE_CHECKING:
    from jupyter_client.manager import AsyncKernelManager

_ANSI: Final = re.compile(r"\x1b\[[0-9;]*m")
# Seconds: a busy machine may need minutes. A kernel that died is noticed before.
_PATIENCE: Final = 600
# The system's limit for the path of a socket is 103 bytes on macOS and 107 on Linux.
_LONGEST_SOCKET: Final = 103


@dataclass(frozen=True, slots=True)
class Job:
    """One execution of a page.

    Attributes:
        project: The folders of the book.
        page: The page.
        ingredients: Stored in the output.
        scratch: Folder for temporary files, removed after the build. Its path should be short.
    """

    project: Project
    page: Page
    ingredients: Mapping[str, str]
    scratch: Path


@dataclass(frozen=True, slots=True)
class _Fault:
    """Why a page can't be used: its cell by position, if one is at fault, and the error."""

    index: int | None
    kind: str
    message: str
    traceback: str = ""


def execute(job: Job) -> str | None:
    """Executes a notebook and writes the page.

    Gives the message of a failure, or ``None``. After a failure, the earlier page is unchanged.
    """
    import papermill

    project, page = job.project, job.page
    traceback_file(job).unlink(missing_ok=True)
    notebook = papermill.execute_notebook(
        page.notebook.to_node(),
        None,
        parameters=page.parameters,
        prepare_only=True,
        kernel_name="python3",
        language="python",
    )
    with tempfile.TemporaryDirectory(dir=job.scratch, ignore_cleanup_errors=True) as folder:
        fault = _run(notebook, job, Path(folder))
    if fault is not None:
        return _describe(fault, notebook, job)
    write_text(project.sections / f"{page.name}.ipynb", _tidy(json.dumps(notebook), job))
    return None


def _run(notebook: Any, job: Job, folder: Path) -> _Fault | None:
    """Runs the cells of a notebook, which receive their outputs, until one fails."""
    from nbclient import NotebookClient
    from nbclient.exceptions import CellExecutionError, DeadKernelError

    started: list[int] = []
    client = NotebookClient(
        notebook,
        kernel_manager_class=_manager(folder),
        resources={"metadata": {"path": str(job.project.notebooks)}},
        on_cell_start=lambda cell, cell_index: started.append(cell_index),
        # Even if a tag allows errors.
        force_raise_errors=True,
        # Otherwise a cell whose outputs come late would lose them without an error.
        raise_on_iopub_timeout=True,
        iopub_timeout=_PATIENCE,
        startup_timeout=_PATIENCE,
    )
    try:
        # nbclient's own loop would stay open in this thread.
        asyncio.run(client.async_execute(env=_environment(job, folder)))
    except CellExecutionError as error:
        failed = _Fault(started[-1], error.ename, error.evalue, str(error))
        return _error_of(notebook, started[-1]) or failed
    except Exception as error:  # If a kernel dies, its transport may raise any exception.
        place = started[-1] if started else None
        died = isinstance(error, DeadKernelError)
        hint = ". Often the machine has too little memory." * died
        return _Fault(place, type(error).__name__, f"{error}{hint}")
    finally:
        # Otherwise it is called when the build ends, and fails, if the kernel died early.
        atexit.unregister(client._cleanup_kernel)
    return next(filter(None, (_error_of(notebook, n) for n in range(len(notebook.cells)))), None)


def _error_of(notebook: Any, index: int) -> _Fault | None:
    """Finds the error that a cell shows, or that it did not run."""
    cell = notebook.cells[index]
    if cell.cell_type != "code" or not cell.source.strip():
        return None
    for output in cell.outputs:
        if output.output_type == "error":
            traceback = "\n".join(output.traceback)
            return _Fault(index, output.ename, output.evalue, traceback)
    return None if cell.execution_count else _Fault(index, "the cell did not run", "")


def _environment(job: Job, folder: Path) -> dict[str, str]:
    """Gives the variables of the kernel: those of the user, without anything that changes pages."""
    found = {name: value for name, value in os.environ.items() if name != "PYTHONSTARTUP"}
    # Pages read runs and start no model.
    own = {paths.PAGE: job.page.name, "IPYTHONDIR": str(folder / "ipython")}
    return dict([ONE_THREAD]) | found | SETTINGS | own


def _manager(folder: Path) -> type[AsyncKernelManager]:
    """Makes the class of a kernel that keeps its files in a folder."""
    from jupyter_client.kernelspec import KernelSpec
    from jupyter_client.manager import AsyncKernelManager

    from cradle_lib.book.notebooks.provisioner import Provisioner

    class Manager(AsyncKernelManager):  # type: ignore[misc, unused-ignore]
        """A kernel of this Python that no other process can reach over the network."""

        def __init__(self, *args: Any, **options: Any) -> None:
            socket = str(folder / "k")
            # Without short paths, a signed connection within this machine has to do.
            if os.name == "posix" and len(os.fsencode(f"{socket}-1")) <= _LONGEST_SOCKET:
                options |= {"transport": "ipc", "ip": socket}
            connection = str(folder / "kernel.json")
            super().__init__(*args, connection_file=connection, **options)
            # Otherwise a kernel called "python3" would be looked up among the user's.
            spec = self._kernel_spec = KernelSpec(argv=[], language="python")
            self.provisioner = Provisioner(kernel_spec=spec, parent=self)

        def format_kernel_cmd(self, extra_arguments: list[str] | None = None) -> list[str]:
            """Gives the arguments of the kernel."""
            return ["--log-level=CRITICAL", "-f", self.connection_file, *(extra_arguments or ())]

    return Manager


def _tidy(text: str, job: Job) -> str:
    """Makes paths relative to the repository, arranges the page, and stores its ingredients."""
    text = text.replace(json.dumps(f"{job.project.root}{os.sep}")[1:-1], "")
    content = json.loads(text)
    content["metadata"].pop("papermill", None)
    content["cells"] = as_page(content["cells"])
    content["metadata"][METADATA] = {
        "ingredients": dict(job.ingredients),
        "artefacts": digest_of(job.project, job.page.provides),
        "source": job.project.shown(job.page.notebook.path),
    }
    content["metadata"][METADATA]["page"] = page_digest(content)
    return json.dumps(content, ensure_ascii=False, indent=1) + "\n"


def _describe(fault: _Fault, notebook: Any, job: Job) -> str:
    """Describes a fault with the number of its cell in the source, and the line that failed."""
    if fault.index is None:
        return failure(job, "outside any cell", fault.kind, fault.message)
    cells = notebook.cells[: fault.index + 1]
    number = sum(INJECTED not in tags_of(cell) for cell in cells)
    text = _ANSI.sub("", fault.traceback)
    marked = re.findall(r"^-+> *\d+ (.*)$", text, flags=re.MULTILINE)
    line = (marked[:1] or [cells[-1].source.strip().split("\n")[0]])[0]
    place = f"cell {number}: {line.strip()[:120]}"
    return failure(job, place, fault.kind, fault.message, fault.traceback)


def failure(job: Job, cell: str, kind: str, message: str, traceback: str = "") -> str:
    """Writes the traceback of a failure to a file, and gives a summary of four lines.

    The lines are: notebook and page, cell with the first line that failed, error, path of the file.
    """
    file = traceback_file(job)
    first = (message.strip().splitlines() or [""])[0][:300]
    write_text(file, _ANSI.sub("", traceback or f"{kind}: {message}").rstrip() + "\n")
    return (
        f"{job.project.shown(job.page.notebook.path)} (page {job.page.name}) failed\n  {cell}\n"
        f"  {kind}{first and f': {first}'}\n  full traceback: {job.project.shown(file)}"
    )


def traceback_file(job: Job) -> Path:
    """Gives the path of the file with the traceback of a page that failed."""
    return job.project.work / f"{job.page.name}.traceback.txt"
