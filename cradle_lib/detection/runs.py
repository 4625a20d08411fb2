"""Finds, loads and makes runs by the name of their model.

A journal that ships with the repository takes precedence over one under ``runs/``.
"""

from __future__ import annotations

import functools
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.corpus.load import load_corpus
from cradle_lib.detection.baselines.function import Function
from cradle_lib.detection.engine import Options
from cradle_lib.detection.journal_paths import PAGE, journal_path, made_runs, stored_as
from cradle_lib.detection.model import Model
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.detection.registry import load_registry, resolve, set_options, spec_options
from cradle_lib.detection.run import Consent, Progress, run
from cradle_lib.detection.session import Prompt
from cradle_lib.errors import (
    CorpusError,
    EngineError,
    JournalError,
    NoRunError,
    OtherRunError,
    RegistryError,
)
from cradle_lib.record import History


def run_model(
    model: str | Model | Callable[[Prompt], object],
    corpus: Corpus,
    history: History = "self",
    *,
    name: str | None = None,
    version: str | None = None,
    limit: int | None = None,
    sample: int | None = None,
    device: str | None = None,
    concurrency: int = 8,
    consent: Consent | None = None,
    max_cost: float | None = None,
    progress: Callable[[Progress], None] | None = None,
    **settings: Any,
) -> Predictions:
    """Runs a model over a corpus, or resumes an earlier start.

    While the book is built, only baselines and functions are run. Of every other model the
    journal is read, as far as it goes: it may have cost hours or money, and only ``cradle infer``
    or a call of one's own makes it longer.

    Args:
        model: An id in ``models.yml``; a spec such as ``hf:./folder``, ``hf:ORG/NAME``,
            ``openai:NAME`` or ``anthropic:NAME``; or a function that takes a
            :class:`~cradle_lib.detection.Prompt` and returns the text of an answer.
        corpus: The corpus.
        history: Whose labels the history shows.
        name: What pages call a function or a spec.
        version: What you call this state of a function, whose source says nothing of the data
            and the weights that it uses.
        limit: Only this many dialogues, from the start.
        sample: Only this many dialogues, drawn evenly from scenarios and timings.
        device: For instance ``cpu`` or ``cuda:1``, for a model that this machine computes.
        concurrency: Dialogues at once, for a service.
        consent: Asked before text leaves the machine, with a sentence that says where to.
        max_cost: Most dollars for this run, all its starts together.
        progress: Called at the start and after every answer.
        **settings: For a spec: ``engine``, ``base_url``, ``key``, and any decoding setting.

    Returns:
        The predictions, aligned to the dialogues that are answered completely.

    Raises:
        CradleError: If there is no such model, it can't run here, its journal was made with
            other settings, or text may not be sent.
    """
    function = None
    if isinstance(model, str | Model):
        entry = resolve(model, name=name, **settings)
    else:
        function = Function(model, name, version)
        entry = function.model
        if settings:
            raise RegistryError(f"{entry.name}: a function takes no {', '.join(settings)}")
    shipped = journal_path(entry, corpus, history, out=paths.SHIPPED_RUNS)
    at_once = entry.kind == "baseline"
    if not shipped.exists() and (at_once or not os.environ.get(PAGE)):
        path = journal_path(entry, corpus, history, out=paths.RUNS)
        start = functools.partial(
            run,
            entry,
            corpus,
            out=path,
            history=history,
            limit=limit,
            sample=sample if sample is not None or limit is not None else entry.sample,
            options=Options(device=device, concurrency=concurrency, notice=_warn),
            progress=progress,
            consent=consent,
            max_cost=max_cost,
            function=function,
        )
        try:
            start()
        except OtherRunError as changed:
            if not at_once:
                raise
            names = (path.with_suffix(f".outdated-{number}") for number in count(1))
            aside = path.replace(next(name for name in names if not name.exists()))
            _warn(
                f"{changed} The journal was recreated. The previous file was renamed to "
                f"{paths.shown(aside)}."
            )
            start()
    return load_run(entry, corpus, history, partial=True)


def default_runs(corpus: Corpus, models: Sequence[str] = ()) -> list[Predictions]:
    """Runs baselines that have not been run, and loads the stored runs of other models.

    Nothing is sent, and no model is run that needs hardware, hours or money.

    Args:
        corpus: The corpus.
        models: Ids in the registry, or specs; the default set if none is named.

    Returns:
        The predictions in the order of the models. A model without a run is left out, as is a
        baseline that has nothing to learn from.

    Raises:
        CradleError: As :func:`run_model`.
    """
    registry = load_registry()
    entries = [resolve(name, registry) for name in models] or registry.default
    found = []
    for entry in entries:
        with suppress(NoRunError):
            if entry.kind == "baseline":
                with suppress(EngineError):  # There is no train split beside the corpus.
                    run_model(entry, corpus)
            found.append(load_run(entry, corpus, partial=True))
    return found


def stored_runs(corpus: Corpus, models: Sequence[str] = ()) -> list[Predictions]:
    """Loads runs that were made before; nothing is run.

    Args:
        corpus: The corpus that they were over.
        models: Ids in the registry, or specs; if none is named, those of the default set that have
            been run, and after them the functions and specs that have been, by name, but not the
            template's: that one has a page of its own.

    Returns:
        The predictions in the order of the models. A run over a sample, or one that is not
        finished, is aligned to its own part of the corpus.

    Raises:
        JournalError: If there is no journal for one that is named, or for any of the default
            set, or one does not fit.
    """
    registry = load_registry()
    if models:
        named = [resolve(name, registry) for name in models]
        return [load_run(entry, corpus, partial=True) for entry in named]
    # Functions and specs have no entry.
    made = made_runs(paths.RUNS)
    own = [name for name in sorted(made) if name not in registry and corpus.name in made[name]]
    own = [name for name in own if name != paths.TEMPLATE_RUN]
    journals = [find_journal(entry, corpus) for entry in registry.default]
    journals += [paths.RUNS / corpus.name / f"{name}.jsonl" for name in own]
    found = []
    for path in filter(None, journals):
        with suppress(NoRunError):
            found.append(load_predictions(path, corpus, partial=True))
    if not found:
        raise NoRunError(
            f"no model of the default set has been run over {corpus.name}. "
            f"Make a run with `{infer_command(registry['keyword'], corpus)}`."
        )
    return found


def dev_runs(runs: Sequence[Predictions], corpus: str) -> list[Predictions]:
    """Loads the runs of the same models over the dev split of the same corpus.

    Args:
        runs: Runs over another split; of those that stored log-probabilities, the models are asked
            after.
        corpus: ``surrogate`` or ``hub``; a file has no dev split.

    Returns:
        The dev runs, in the order of the runs; none for a model that was not run over dev, or if
        the release has not been fetched.
    """
    found: list[Predictions] = []
    if corpus not in ("surrogate", "hub"):
        return found
    with suppress(CorpusError):
        dev = load_corpus(corpus, "dev")
        for each in runs:
            if any(each.choices):
                with suppress(NoRunError):
                    found += stored_runs(dev, [each.record.model])
    return found


def load_run(
    entry: Model, corpus: Corpus, history: History = "self", *, partial: bool = False
) -> Predictions:
    """Loads a model's run over a corpus, from one journal or its shards.

    Args:
        entry: The model.
        corpus: The corpus that it was run over.
        history: Whose tags it saw.
        partial: Whether to accept a run that is not complete.

    Returns:
        The predictions, aligned to the dialogues that are covered.

    Raises:
        NoRunError: If the model has not been run over the corpus.
        JournalError: If the journal does not fit.
    """
    path = find_journal(entry, corpus, history)
    if path is None:
        wanted = paths.shown(journal_path(entry, corpus, history))
        raise NoRunError(
            f"{wanted}: there is no run of {entry.name} over {corpus.name}. "
            f"Make it with `{infer_command(entry, corpus, history)}`."
        )
    predictions = load_predictions(path, corpus, partial=partial or entry.sample is not None)
    if not partial and not predictions.is_finished:
        chosen = len(predictions.record.dialogues or corpus)
        raise JournalError(
            f"{paths.shown(path)}: {len(predictions.corpus)} of the run's {chosen} dialogues "
            f"are complete. Finish it with `{infer_command(entry, corpus, history)}`, as it was "
            "started."
        )
    return predictions


def find_journal(entry: Model, corpus: Corpus, history: History = "self") -> Path | None:
    """Finds where a model's run over a corpus lies.

    Returns:
        The path of its journal, which for a run in shards does not exist itself; ``None`` if
        the model has not been run.
    """
    folders = (paths.SHIPPED_RUNS, paths.RUNS)
    places = (journal_path(entry, corpus, history, out=folder) for folder in folders)
    return next((path for path in places if stored_as(path)), None)


def infer_command(entry: Model, corpus: Corpus, history: History = "self") -> str:
    """Gives the command that makes a run: over this corpus, and no other one.

    Args:
        entry: The model; its sample is asked for, if it has one.
        corpus: A corpus that :func:`~cradle_lib.corpus.load_corpus` loaded.
        history: Whose tags it sees.

    Returns:
        A line for a shell at the top of the repository; for a function, whose code only its
        notebook has, the call that runs it.
    """
    if entry.engine == "function":
        return f"run_model(..., name={entry.name!r})"
    words = ["cradle", "infer", *spec_options(entry), *corpus_options(corpus)]
    words += set_options({"history": history}) if history != "self" else []
    words += ["--sample", str(entry.sample)] if entry.sample is not None else []
    return shlex.join(words)


def corpus_options(corpus: Corpus) -> list[str]:
    """Gives the options by which a command finds a corpus again; none for the default one."""
    path = corpus.path
    if path is None:
        return []
    for name, folder in {"surrogate": paths.SURROGATE, "hub": paths.RELEASE}.items():
        if corpus.name.startswith(f"{name}-") and path.parent == folder:
            words = ["--corpus", name] if name != "surrogate" else []
            return words + (["--split", path.stem] if path.stem != "test" else [])
    return ["--corpus", paths.shown(path)]


def _warn(sentence: str) -> None:
    sys.stderr.write(f"{sentence}\n")
