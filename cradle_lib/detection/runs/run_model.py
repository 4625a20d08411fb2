"""Returns the run of a model that is asked for: the stored one, or a new one."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from cradle_lib import paths
from cradle_lib.arguments import Positive, checked
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection.baselines.function import Function
from cradle_lib.detection.models.engine import Options
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.models.registry import function_entry, load_registry, resolve
from cradle_lib.detection.protocol.session import Prompt
from cradle_lib.detection.runs.find_runs import (
    find_journal,
    leave_out,
    load_named,
    load_run,
    other_runs,
    require_name,
)
from cradle_lib.detection.runs.matching import matching_journals, run_path
from cradle_lib.detection.runs.missing_run import missing_run
from cradle_lib.detection.runs.predictions import Predictions, load_predictions
from cradle_lib.detection.runs.run import run
from cradle_lib.detection.runs.run_names import renamed, with_distinct_names
from cradle_lib.detection.runs.selection import choose_dialogues
from cradle_lib.detection.runs.stored_answers import run_files
from cradle_lib.errors import EngineError, NoRunError, RegistryError
from cradle_lib.record import History


@checked
def run_model(
    model: str | Model | Callable[[Prompt], object],
    corpus: Corpus,
    history: History = "self",
    *,
    name: str | None = None,
    version: str | None = None,
    limit: Positive | None = None,
    sample: Positive | None = None,
    options: Options | None = None,
    **settings: Any,
) -> Predictions:
    """Runs a model over a corpus, or resumes an earlier start.

    A stored run is read only if it was made with the same settings. A run with other settings has
    a journal of its own.

    While the book is built, only baselines and functions are run. For every other model the
    existing journal is read, because a run may cost hours or money; only ``cradle infer`` or your
    own call extends it.

    Args:
        model: An id in ``models.yml``; a spec such as ``hf:./folder``, ``hf:ORG/NAME``,
            ``openai:NAME`` or ``anthropic:NAME``; or a function that takes a
            :class:`~cradle_lib.detection.Prompt` and returns the text of an answer.
        corpus: The corpus.
        history: Labels that the history shows: ``self``, ``gold`` or ``none``.
        name: Display name of a function or a spec.
        version: Version of the data and weights that a function uses; required if it uses a value
            that can't be compared, such as a trained model.
        limit: Maximum number of dialogues, from the start of the corpus or of the sample.
        sample: Number of dialogues to draw, stratified by scenario and timing.
        options: Execution settings (:class:`~cradle_lib.detection.Options`), such as ``device``,
            ``concurrency`` (parallel calls), ``progress``, ``consent`` (called with the
            destination before text leaves the machine) and ``max_cost`` (dollars, over all
            starts). By default nothing is sent.
        **settings: For an id or a spec: ``engine``, ``trained_on``, ``base_url``, ``key``,
            ``prompt``, ``neutralise``, and any decoding setting.

    Returns:
        The predictions, aligned to the dialogues that are answered completely; with ``limit`` or
        ``sample`` to those of them that were chosen.

    Raises:
        CradleError: If there is no such model, it can't run here, text may not be sent, or a page
            needs a run that was not made; the message has the command that makes it.
    """
    engine = None
    if isinstance(model, str | Model):
        notice = (options or Options()).notice
        entry = resolve(model, name=name, notice=notice, **settings)
    else:
        engine = Function(model, name, version)
        entry = function_entry(engine)
        if settings:
            raise RegistryError(f"{entry.name}: a function takes no {', '.join(settings)}")
    is_part = limit is not None or sample is not None
    if not is_part:
        sample = entry.sample
    wanted = choose_dialogues(corpus, limit, sample)
    found = None if engine else _stored(entry, corpus, history, wanted, paths.SHIPPED_RUNS)
    if found is None and (entry.kind == "baseline" or not os.environ.get(paths.PAGE)):
        options = options or Options()
        journal = run_path(entry, corpus, history, notice=options.notice, on_any_change=True)
        path = run(
            entry,
            corpus,
            out=journal,
            history=history,
            limit=limit,
            sample=sample,
            options=options,
            engine=engine,
        )
        found = load_predictions(path, corpus, partial=True)
    if found is None:
        found = _stored(entry, corpus, history, wanted)
    if found is None and not is_part and find_journal(entry, corpus, history) is not None:
        found = load_run(entry, corpus, history, partial=True)
    if found is None:
        error = missing_run(entry, corpus, history, limit, sample)
        raise NoRunError(f"{error} A page runs no model.")
    if is_part:
        found = _part(found, corpus, wanted)
    return found if entry.group == "own" and name is None else renamed(found, entry.name)


def _stored(
    entry: Model, corpus: Corpus, history: History, wanted: Sequence[Dialogue], *folders: Path
) -> Predictions | None:
    """Loads the first stored run that answers a question about all wanted dialogues."""
    ids = {dialogue.id for dialogue in wanted}
    for path in matching_journals(entry, corpus, history, *folders):
        with suppress(NoRunError):
            found = load_predictions(path, corpus, partial=True)
            if ids <= {dialogue.id for dialogue in found.corpus}:
                return found
    return None


def _part(found: Predictions, corpus: Corpus, wanted: Sequence[Dialogue]) -> Predictions:
    """Restricts a run to the dialogues that were asked for."""
    ids = {dialogue.id for dialogue in wanted}
    places = [place for place, dialogue in enumerate(found.corpus) if dialogue.id in ids]
    if len(places) < len(found.corpus):
        part = found.corpus.subset(places, f"{corpus.name}[{len(places)}]")
        found = found.subset(part)
    chosen = None if len(ids) == len(corpus) else [dialogue.id for dialogue in wanted]
    return replace(found, record=found.record.model_copy(update={"dialogues": chosen}))


@checked
def default_runs(corpus: Corpus, models: Sequence[str] = ()) -> list[Predictions]:
    """Runs baselines that have not been run, and loads the stored runs of other models.

    Nothing is sent. Models that need hardware, hours or money are not run.

    Args:
        corpus: The corpus.
        models: As for :func:`.stored_runs`.

    Returns:
        The predictions in the order of the models. A model without a run is left out. If a run
        can't be read, or a baseline has no data to learn from, the reason is written to the
        standard error stream.

    Raises:
        RegistryError: If there is no such model.
        CradleError: If a baseline can't be run.
    """
    registry = load_registry()
    found: list[Predictions] = []
    for name in models or [entry.id for entry in registry.values() if entry.default]:
        require_name(name, corpus)
        with leave_out():
            if name in registry and registry[name].kind == "baseline":
                try:
                    found.append(run_model(registry[name], corpus))
                    continue
                except EngineError as error:  # The corpus has no train split.
                    if not run_files(name, corpus):
                        raise EngineError(f"{registry[name].name}: {error}") from None
            if run_files(name, corpus):
                found.append(load_named(name, corpus))
    return with_distinct_names(found if models else found + other_runs(corpus, found))
