"""Brings the executed notebooks of the book up to date.

Each page is executed when what it rests on has changed (see
:mod:`cradle_lib.book.cache_key`), three at a time, after the pages whose artefacts it reads.
A notebook that fails stops only the pages that need it.
"""

from __future__ import annotations

import multiprocessing
import re
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Final

from cradle_lib.book.cache_key import Ingredients, stored_state
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.execute import Done, Job, execute, failure, watch_parent
from cradle_lib.book.plan import REGISTRY, Page, Project, load_plan
from cradle_lib.errors import BookError
from cradle_lib.files import is_hidden

# One more than the cores that a small machine has: a kernel that starts waits for a second.
_WORKERS: Final = 3


@dataclass(frozen=True, slots=True)
class Update:
    """What was done: pages executed, as they finished, and fresh ones; outputs of no page."""

    executed: tuple[str, ...]
    fresh: tuple[str, ...]
    removed: tuple[str, ...]


def update(
    project: Project,
    *,
    models: Sequence[str] | None = None,
    corpus: BookCorpus | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Update:
    """Executes every page that is out of date, and removes those that are no longer made.

    ``models`` are the ids of the registry's default models, and the ``corpus`` is the one that the
    environment names, unless others are given. ``report`` receives a line for each page that is
    executed or removed, and what notebooks wrote to standard error.

    Raises:
        BookError: If the plan and the book do not fit, or, after all other notebooks have run,
            if some failed: four lines for each.
    """
    if models is None:
        from cradle_lib.detection.registry import load_registry

        models = [model.id for model in load_registry(project.root / REGISTRY).default]
    pages = load_plan(project, models, corpus or BookCorpus.chosen(project.root))
    check_toc(project, pages)
    removed = _remove_orphans(project, pages)
    for name in removed:
        report(f"removed {name}: no page of the plan makes it")
    executed, fresh = _execute(project, pages, report)
    return Update(tuple(executed), tuple(fresh), removed)


def _execute(
    project: Project, pages: Sequence[Page], report: Callable[[str], None]
) -> tuple[list[str], list[str]]:
    """Executes pages in their order; gives the names of executed pages, and of fresh ones."""
    ingredients = Ingredients(project, pages)
    by_name = {page.name: page for page in pages}
    executed: list[str] = []
    fresh: list[str] = []
    failures: list[str] = []
    running: dict[Future[Done], Job] = {}
    order = TopologicalSorter({page.name: page.after for page in pages})
    order.prepare()
    # Processes start when the first page is submitted.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(_WORKERS, mp_context=spawn, initializer=watch_parent)
    try:
        while True:
            # A page that is up to date makes the next ones ready at once.
            while ready := order.get_ready():
                for page in map(by_name.__getitem__, ready):
                    found = ingredients.of(page)
                    reason = ingredients.stale(page, found)
                    if reason is None:
                        fresh.append(page.name)
                        order.done(page.name)
                    else:
                        report(f"executing {page.name} ({reason})")
                        job = Job(project, page, found)
                        running[pool.submit(execute, job)] = job
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                name = job.page.name
                try:
                    done = future.result()
                except Exception as error:  # The worker died, or could not send its answer.
                    done = Done(failure(job, "outside any cell", type(error).__name__, str(error)))
                for line in done.said:
                    report(f"{project.shown(job.page.notebook.path)} ({name}): {line}")
                if done.failure is None:
                    executed.append(name)
                    order.done(name)
                else:
                    report(f"{name} failed")
                    failures.append(done.failure)
    finally:
        # Without this an interrupt would first work through the whole queue.
        pool.shutdown(cancel_futures=True)
    if failures:
        raise BookError("\n".join(failures))
    return executed, fresh


def _remove_orphans(project: Project, pages: Sequence[Page]) -> tuple[str, ...]:
    """Removes outputs that no page makes; refuses to remove what the pipeline did not make."""
    wanted = {f"{page.name}.ipynb" for page in pages}
    there = sorted(project.sections.iterdir()) if project.sections.is_dir() else []
    orphans = [file for file in there if file.name not in wanted and not is_hidden(file.name)]
    for file in orphans:
        if stored_state(file) is None:
            raise BookError(
                "the book's pipeline did not make this file, and no page of the plan does",
                path=file,
                hint="Move it out of book/sections.",
            )
    for file in orphans:
        file.unlink()
    return tuple(project.shown(file) for file in orphans)


def check_toc(project: Project, pages: Sequence[Page]) -> None:
    """Refuses a plan with a page that the table of contents does not list; Sphinx, the opposite.

    A ``glob:`` entry for the folder of executed pages lists all of them.
    """
    try:
        listed = project.toc.read_text(encoding="utf-8")
    except OSError as error:
        raise BookError(f"no table of contents ({error.strerror})", path=project.toc) from None
    if f"glob: {project.sections.name}/*" in listed:
        return
    names = [f"{project.sections.name}/{page.name}" for page in pages]
    missing = [n for n in names if not re.search(rf"(file|root): {re.escape(n)}\s", listed)]
    if missing:
        lines = ", ".join(f"`- file: {name}`" for name in missing)
        raise BookError("a planned page is not listed", path=project.toc, hint=f"Add {lines}.")
