"""Brings the executed notebooks of the book up to date.

Each page is executed when what it rests on has changed (see
:mod:`cradle_lib.book.cache_key`), three at a time, after the pages whose artefacts it reads.
A notebook that fails stops only the pages that need it.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from typing import Final

from cradle_lib.book.cache_key import Ingredients, stored_state
from cradle_lib.book.corpus import BookCorpus
from cradle_lib.book.notebooks.execute import Job, execute, failure, watch_parent
from cradle_lib.book.plan import REGISTRY, Project, load_plan
from cradle_lib.errors import BookError
from cradle_lib.files import visible_files

# One more than the cores that a small machine has: a kernel that starts waits for a second.
_WORKERS: Final = 3


@dataclass(frozen=True, slots=True)
class Update:
    """What was done: names of the pages executed, as they finished, and of those up to date."""

    executed: list[str] = field(default_factory=list)
    fresh: list[str] = field(default_factory=list)


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
    executed.

    Raises:
        BookError: If the plan is malformed, or, after all other notebooks have run, if some failed:
            four lines for each.
    """
    if models is None:
        from cradle_lib.detection.registry import load_registry

        registry = load_registry(project.root / REGISTRY)
        models = [name for name, model in registry.items() if model.default]
    pages = load_plan(project, models, corpus or BookCorpus.chosen(project.root))
    by_name = {page.name: page for page in pages}
    for file in visible_files(project.sections, "*.ipynb"):
        # A file that the pipeline did not make is somebody's own.
        if file.stem not in by_name and stored_state(file) is not None:
            file.unlink()
    ingredients = Ingredients(project, pages)
    done, failures = Update(), []
    running: dict[Future[str | None], Job] = {}
    order = TopologicalSorter({page.name: page.after for page in pages})
    order.prepare()
    # Processes start when the first page is submitted.
    spawn = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(_WORKERS, mp_context=spawn, initializer=watch_parent)
    try:
        while True:
            # A page that is up to date makes the next ones ready at once.
            while ready := [by_name[name] for name in order.get_ready()]:
                # Pages for whose artefacts others wait come first.
                for page in sorted(ready, key=lambda page: not page.provides):
                    found = ingredients.of(page)
                    reason = ingredients.stale(page, found)
                    if reason is None:
                        done.fresh.append(page.name)
                        order.done(page.name)
                    else:
                        report(f"executing {page.name} ({reason})")
                        job = Job(project, page, found)
                        running[pool.submit(execute, job)] = job
            if not running:
                break
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                job = running.pop(future)
                try:
                    problem = future.result()
                except Exception as error:  # The worker died, or could not send its answer.
                    problem = failure(job, "outside any cell", type(error).__name__, str(error))
                if problem is None:
                    done.executed.append(job.page.name)
                    order.done(job.page.name)
                else:
                    report(f"{job.page.name} failed")
                    failures.append(problem)
    finally:
        # Without this an interrupt would first work through the whole queue.
        pool.shutdown(cancel_futures=True)
    if failures:
        raise BookError("\n".join(failures))
    return done
