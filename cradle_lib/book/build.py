"""Brings the executed notebooks of the book up to date.

A page is executed if its inputs have changed (see :mod:`cradle_lib.book.cache_key`), after the
pages whose artefacts it reads. Three pages are executed in parallel. A notebook that fails stops
only the pages that need it.
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
        from cradle_lib.detection.registry import load_registry

        registry = load_registry(project.root / REGISTRY)
        models = [name for name, model in registry.items() if model.default]
    pages = load_plan(project, models, corpus or BookCorpus.chosen(project.root))
    by_name = {page.name: page for page in pages}
    for file in visible_files(project.sections, "*.ipynb"):
        # Files that the pipeline did not make belong to the user.
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
            # A page that is up to date makes its dependents ready immediately.
            while ready := [by_name[name] for name in order.get_ready()]:
                # Pages with artefacts come first, because other pages wait for them.
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
                except Exception as error:  # The worker died, or could not send its result.
                    problem = failure(job, "outside any cell", type(error).__name__, str(error))
                if problem is None:
                    done.executed.append(job.page.name)
                    order.done(job.page.name)
                else:
                    report(f"{job.page.name} failed")
                    failures.append(problem)
    finally:
        # Without this, an interrupt would first execute the whole queue.
        pool.shutdown(cancel_futures=True)
    if failures:
        raise BookError("\n".join(failures))
    return done
