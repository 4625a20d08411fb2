"""Brings the executed notebooks of the book up to date.

Each page is executed when what it rests on has changed (see
:mod:`cradle_lib.book.cache_key`), two at a time, after the pages whose artefacts it reads.
A notebook that fails stops only the pages that need it.
"""

from __future__ import annotations

import multiprocessing
import shlex
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass
from graphlib import TopologicalSorter
from typing import Final

from cradle_lib.book.cache_key import Ingredients, stored_state
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.execute import Done, Job, execute, failure, watch_parent
from cradle_lib.book.plan import Page, Project, default_models, load_plan
from cradle_lib.book.toc import check_toc
from cradle_lib.errors import BookError, compose

_WORKERS: Final = 2
# Fewer pages for a worker do not make up for imports that none of them may need.
_PAGES_TO_FORK: Final = 2


@dataclass(frozen=True, slots=True)
class Update:
    """What was done.

    Attributes:
        executed: Pages that were executed, in the order in which they finished.
        fresh: Pages that were up to date.
        removed: Outputs that no page makes any more.
    """

    executed: tuple[str, ...]
    fresh: tuple[str, ...]
    removed: tuple[str, ...]


def update(
    project: Project,
    *,
    models: Mapping[str, str] | None = None,
    corpus: BookCorpus | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Update:
    """Executes every page that is out of date, and removes those that are no longer made.

    Args:
        project: Where the book lies.
        models: Models that have a page, with their entries; by default the registry's.
        corpus: The book's corpus; by default the one that the environment names.
        report: Receives a line for each page that is executed or removed, and what notebooks
            wrote to standard error.

    Returns:
        What was done.

    Raises:
        BookError: If the plan and the book do not fit, or, after all other notebooks have run,
            if some failed: four lines for each.
    """
    corpus = corpus or BookCorpus.chosen(project.root)
    if models is None:
        models, lacking = default_models(project, corpus)
        chosen = "" if corpus.choice == "surrogate" else f" --corpus {shlex.quote(corpus.choice)}"
        for name in lacking:
            report(
                f"no page for {name}: it has no journal over {corpus.name} "
                f"(cradle infer --model {name}{chosen})"
            )
    pages = load_plan(project, models, corpus)
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
        self._fork = False

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
        stale: list[tuple[Page, dict[str, str]]] = []
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
                    stale.append((page, found))
        self._fork |= len(stale) > _PAGES_TO_FORK * _WORKERS
        for page, found in stale:
            self._submit(page, found)

    def _submit(self, page: Page, ingredients: dict[str, str]) -> None:
        if self._pool is None:
            self._pool = ProcessPoolExecutor(
                _WORKERS,
                mp_context=multiprocessing.get_context("spawn"),
                initializer=watch_parent,
            )
        job = Job(self.project, page, ingredients, self._fork)
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
    orphans = [file for file in there if file.name not in wanted and not file.name.startswith(".")]
    for file in orphans:
        if stored_state(file) is None:
            raise BookError(
                compose(
                    "the book's pipeline did not make this file, and no page of the plan does",
                    path=file,
                    hint="Move it out of book/sections.",
                )
            )
    for file in orphans:
        file.unlink()
    return tuple(project.shown(file) for file in orphans)
