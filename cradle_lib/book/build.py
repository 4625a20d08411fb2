"""Brings the executed notebooks of the book up to date.

Each page is executed when what it rests on has changed (see
:mod:`cradle_lib.book.cache_key`), two at a time, after the pages whose artefacts it reads.
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

_WORKERS: Final = 2


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
    run = _Run(project, pages, report)
    run.all()
    if run.failures:
        raise BookError("\n".join(run.failures))
    return Update(tuple(run.executed), tuple(run.fresh), removed)


class _Run:
    """One pass over the plan."""

    def __init__(
        self, project: Project, pages: tuple[Page, ...], report: Callable[[str], None]
    ) -> None:
        self.project, self.report = project, report
        self.pages = {page.name: page for page in pages}
        self.ingredients = Ingredients(project, pages)
        self.executed: list[str] = []
        self.fresh: list[str] = []
        self.failures: list[str] = []
        self._order = TopologicalSorter({page.name: page.after for page in pages})
        self._pool: ProcessPoolExecutor | None = None
        self._running: dict[Future[Done], Job] = {}

    def all(self) -> None:
        self._order.prepare()
        try:
            self._start_ready()
            while self._running:
                done, _ = wait(self._running, return_when=FIRST_COMPLETED)
                for future in done:
                    self._finish(future)
                self._start_ready()
        finally:
            if self._pool is not None:
                # Without this an interrupt would first work through the whole queue.
                self._pool.shutdown(cancel_futures=True)

    def _start_ready(self) -> None:
        # A page that is up to date makes the next ones ready at once.
        while ready := self._order.get_ready():
            for name in ready:
                page = self.pages[name]
                found = self.ingredients.of(page)
                reason = self.ingredients.stale(page, found)
                if reason is None:
                    self.fresh.append(name)
                    self._order.done(name)
                else:
                    self.report(f"executing {name} ({reason})")
                    self._submit(page, found)

    def _submit(self, page: Page, ingredients: dict[str, str]) -> None:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                _WORKERS,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=watch_parent,
            )
        job = Job(self.project, page, ingredients)
        self._running[self._pool.submit(execute, job)] = job

    def _finish(self, future: Future[Done]) -> None:
        job = self._running.pop(future)
        try:
            done = future.result()
        except Exception as error:  # The worker died, or could not send its answer.
            done = Done(failure(job, "outside any cell", type(error).__name__, str(error)))
        for line in done.said:
            self.report(f"{self.project.shown(job.page.notebook.path)} ({job.page.name}): {line}")
        if done.failure is None:
            self.executed.append(job.page.name)
            self._order.done(job.page.name)
        else:
            self.report(f"{job.page.name} failed")
            self.failures.append(done.failure)


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
