"""Brings the executed notebooks of the book up to date.

A page is executed if its inputs have changed (see :mod:`cradle_lib.book.cache_key`), after the
pages whose artefacts it reads, and once more if another page then changed a run that it reads.
Three pages are executed in parallel. A notebook that fails stops only the pages that need it.
"""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

from cradle_lib.book.cache_key import Ingredients, stored_state
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.execute import Job, execute, failure, traceback_file
from cradle_lib.book.notebooks.provisioner import Kernel, short_place
from cradle_lib.book.plan import REGISTRY, Page, Project, load_plan
from cradle_lib.errors import BookError
from cradle_lib.files import visible_files

# One more than the two cores of a small machine, because a starting kernel idles for a second.
_WORKERS: Final = 3


@dataclass(frozen=True, slots=True)
class Update:
    """Names of the pages executed, in order of completion, and of the pages already up to date."""

    executed: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)


def update(
    project: Project,
    *,
    models: Sequence[str] | None = None,
    corpus: BookCorpus | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Update:
    """Executes every page that is out of date, and removes pages that are no longer in the plan.

    Args:
        project: The folders of the book.
        models: Ids of models; by default the registry's default models.
        corpus: By default the corpus that the environment names.
        report: Receives a line for each page that is executed or fails.

    Raises:
        BookError: If the plan is malformed, or if notebooks failed: four lines for each, after all
            others have run.
    """
    if models is None:
        from cradle_lib.detection.models.registry import load_registry

        registry = load_registry(project.root / REGISTRY)
        models = [name for name, model in registry.items() if model.default]
    pages = load_plan(project, models, corpus or BookCorpus.chosen(project.root))
    by_name = {page.name: page for page in pages}
    for file in visible_files(project.sections, "*.ipynb"):
        # Files that the pipeline did not make belong to the user.
        if file.stem not in by_name and stored_state(file) is not None:
            file.unlink()
    build = _Build(project, by_name, Ingredients(project, pages), report)
    with (
        short_folder() as folder,
        ThreadPoolExecutor(_WORKERS, initializer=_ignore_interrupts) as pool,
    ):
        scratch = Path(folder)
        build.execute_stale(pool, scratch)
        if build.executed and not build.failures:
            build.execute_stale(pool, scratch)
    if build.failures:
        raise BookError("\n".join(build.failures))
    fresh = [name for name in by_name if name not in build.executed]
    return Update(build.executed, fresh)


@dataclass(frozen=True, slots=True)
class _Build:
    """The state of one build: pages executed so far, and messages of failures."""

    project: Project
    pages: Mapping[str, Page]
    ingredients: Ingredients
    report: Callable[[str], None]
    executed: list[str] = field(default_factory=list)
    failures: list[str] = field(default_factory=list)

    def execute_stale(self, pool: ThreadPoolExecutor, scratch: Path) -> None:
        """Executes the pages that are out of date, each after the pages that it waits for."""
        running: dict[Future[str | None], Job] = {}
        try:
            self._execute_in_order(pool, scratch, running)
        except BaseException:
            _stop(running)
            raise

    def _execute_in_order(
        self, pool: ThreadPoolExecutor, scratch: Path, running: dict[Future[str | None], Job]
    ) -> None:
        order = TopologicalSorter({page.name: page.after for page in self.pages.values()})
        order.prepare()
        while True:
            # A page that is up to date makes its dependents ready immediately.
            while ready := [self.pages[name] for name in order.get_ready()]:
                # Pages with artefacts come first, because other pages wait for them.
                for page in sorted(ready, key=lambda page: not page.provides):
                    found = self.ingredients.of(page)
                    reason = self.ingredients.stale(page, found)
                    if reason is None:
                        order.done(page.name)
                        continue
                    self.report(f"executing {page.name} ({reason})")
                    job = Job(self.project, page, found, scratch)
                    running[pool.submit(execute, job)] = job
            if not running:
                return
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                try:
                    problem = future.result()
                except Exception as error:  # Such as a full disk.
                    problem = failure(job, "outside any cell", type(error).__name__, str(error))
                if problem is None:
                    self.executed.append(job.page.name)
                    order.done(job.page.name)
                else:
                    self.report(f"{job.page.name} failed")
                    self.failures.append(problem)


def _ignore_interrupts() -> None:
    """Leaves Ctrl-C to the main thread: no process that this thread starts sees it."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _stop(running: Mapping[Future[str | None], Job]) -> None:
    """Ends the kernels of pages, also of those that are being started, and their threads."""
    for future in running:
        future.cancel()
    while wait(running, timeout=0.1).not_done:
        for process in multiprocessing.active_children():
            if isinstance(process, Kernel):
                process.end()
    for job in running.values():
        traceback_file(job).unlink(missing_ok=True)


def short_folder() -> tempfile.TemporaryDirectory[str]:
    """Makes a temporary folder in the :func:`.short_place`."""
    place = short_place()
    return tempfile.TemporaryDirectory(prefix="cradle-", dir=place, ignore_cleanup_errors=True)
