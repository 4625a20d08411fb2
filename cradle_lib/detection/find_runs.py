"""Finds stored runs by the name of their model, and groups runs over the same dialogues.

A journal that ships with the repository takes precedence over one under ``runs/``.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import takewhile
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.arguments import checked
from cradle_lib.corpus import Corpus
from cradle_lib.corpus.load import load_corpus
from cradle_lib.detection.baselines.tfidf import train_split
from cradle_lib.detection.journal import journal_files, journal_path, list_runs
from cradle_lib.detection.model import Model
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.detection.registry import load_registry, resolve
from cradle_lib.errors import CorpusError, EngineError, NoRunError, ScoringError
from cradle_lib.files import visible_files
from cradle_lib.record import History

#: Environment variable that is set while pages are executed: building the book runs no model.
PAGE: Final = "CRADLE_PAGE"


def load_run(
    entry: Model, corpus: Corpus, history: History = "self", *, partial: bool = False
) -> Predictions:
    """Loads a model's run over a corpus, from one journal or its shards.

    Args:
        entry: The model.
        corpus: The corpus that it was run over.
        history: The labels that its history showed.
        partial: Whether to accept an incomplete run.

    Returns:
        The predictions, aligned to the dialogues that are covered.

    Raises:
        NoRunError: If the model has not been run over the corpus.
        JournalError: As :func:`.load_predictions`.
    """
    path = find_journal(entry, corpus, history)
    if path is None:
        wanted = paths.shown(journal_path(entry, corpus, history))
        raise NoRunError(
            f"{wanted}: there is no run of {entry.name} over {corpus.name}. "
            "Make it with `cradle infer`, or `run_model` for a function."
        )
    return load_predictions(path, corpus, partial=partial)


def find_journal(entry: Model, corpus: Corpus, history: History = "self") -> Path | None:
    """Finds the journal of a model's run over a corpus.

    Returns:
        The path of its journal, which for a run in shards does not exist itself; ``None`` if
        the model has not been run.
    """
    for folder in (paths.SHIPPED_RUNS, paths.RUNS):
        path = journal_path(entry, corpus, history, out=folder)
        if journal_files(path)[0].exists():
            return path
    return None


@checked
def stored_runs(corpus: Corpus, models: Sequence[str] = ()) -> list[Predictions]:
    """Loads stored runs; no model is run.

    Args:
        corpus: The corpus of the runs.
        models: Ids in the registry, or specs. By default, the models of the default set, followed
            by :func:`other_runs`.

    Returns:
        The predictions in the order of the models. A run over a sample, or an unfinished run, is
        aligned to its part of the corpus.

    Raises:
        NoRunError: If a named model has no run, or no model of the default set has one.
        JournalError: If a journal does not fit the corpus.
    """
    registry = load_registry()
    if models:
        named = [resolve(name, registry) for name in models]
        return [load_run(entry, corpus, partial=True) for entry in named]
    found = []
    for entry in registry.values():
        if entry.default:
            with suppress(NoRunError):
                found.append(load_run(entry, corpus, partial=True))
    found += other_runs(corpus)
    if not found:
        raise NoRunError(
            f"no model of the default set has been run over {corpus.name}. "
            "Make a run with `cradle infer`, for instance with `--model keyword`."
        )
    return found


def other_runs(corpus: Corpus) -> list[Predictions]:
    """Loads the user's runs of models outside the default set, by name.

    The run of the notebook template is left out, as are runs without a complete dialogue.

    Raises:
        JournalError: If a journal does not fit the corpus.
    """
    default = {entry.id for entry in load_registry().values() if entry.default}
    names = {name for name, made in list_runs(paths.RUNS).items() if corpus.name in made}
    found = []
    for name in sorted(names - default - {paths.TEMPLATE_RUN}):
        with suppress(NoRunError):
            path = paths.RUNS / corpus.name / f"{name}.jsonl"
            found.append(load_predictions(path, corpus, partial=True))
    return found


@checked
def dev_runs(runs: Sequence[Predictions], corpus: str) -> list[Predictions]:
    """Loads the runs of the same models over the dev split of the same corpus.

    Args:
        runs: Runs over another split. Dev runs are loaded for those that stored log-probabilities.
        corpus: ``surrogate`` or ``hub``; a file has no dev split.

    Returns:
        The dev runs, in the order of the runs. Models without a run over dev are left out. The list
        is empty if the release has not been fetched.
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


@checked
def missing_baselines(corpus: Corpus, runs: Sequence[Predictions]) -> tuple[str, ...]:
    """Says which baselines of the default set have no run, and why.

    Args:
        corpus: The corpus of the runs.
        runs: The runs that were found.

    Returns:
        A sentence or more for a page; empty if every baseline has a run.
    """
    found = {run.record.model for run in runs}
    names = [
        entry.name
        for entry in load_registry().values()
        if entry.default and entry.kind == "baseline" and entry.id not in found
    ]
    if not names:
        return ()
    why = ""
    try:
        train_split(corpus)
    except EngineError as error:
        why = f" {str(error)[0].upper()}{str(error)[1:]}"
    return (f"Without a run over {corpus.name}: {', '.join(names)}.{why}",)


@checked
def repeated_runs(corpus: Corpus) -> dict[str, list[Predictions]]:
    """Loads the repeated runs of each system, which differ only in their seeds.

    Each run was written by ``cradle infer --out runs/repeats/SYSTEM/SEED``.

    Args:
        corpus: The corpus of the runs, or the corpus that they are a sample of.

    Returns:
        The runs of each system, in the order of their folders' names; shipped runs come first. An
        unfinished run is restricted to the dialogues that it answered.

    Raises:
        JournalError: If a journal can't be read, or does not fit the corpus.
    """
    found: dict[str, list[Predictions]] = {}
    for folder in (paths.SHIPPED_RUNS, paths.RUNS):
        for path in visible_files(folder, f"repeats/*/*/{corpus.name}/*.jsonl"):
            system = path.parents[2].name
            found.setdefault(system, []).append(load_predictions(path, corpus, partial=True))
    return found


def common_dialogues(runs: Sequence[Predictions]) -> list[Predictions]:
    """Restricts runs over a corpus, or over parts of it, to their common dialogues.

    Raises:
        ScoringError: If no dialogue is covered by all.
    """
    shared = set.intersection(*({d.id for d in run.corpus} for run in runs))
    fewest = min(runs, key=lambda run: len(run.corpus)).corpus
    chosen = [place for place, dialogue in enumerate(fewest) if dialogue.id in shared]
    if not chosen:
        raise ScoringError(
            f"no dialogue is covered by all {len(runs)} runs. Compare runs over the same corpus."
        )
    part = fewest
    if len(chosen) < len(fewest):
        part = fewest.subset(chosen, f"{fewest.name}[{len(chosen)}]")
    return [run.subset(part) for run in runs]


@checked
def with_same_dialogues(runs: Sequence[Predictions]) -> list[Predictions]:
    """Adds, for each sample, the other models' predictions on the same dialogues.

    Args:
        runs: Whole runs and runs over samples of the same corpus.

    Returns:
        The whole runs, then for each sample the whole runs restricted to it and the runs over it.
    """
    complete = [run for run in runs if run.covers_corpus]
    extended = list(complete)
    for same in _by_dialogues(run for run in runs if not run.covers_corpus):
        extended += [run.subset(same[0].corpus) for run in complete] + same
    return extended


@checked
def distinct_runs(runs: Sequence[Predictions], *, answers: bool = False) -> list[Predictions]:
    """Groups runs with the same labels on every turn, which count as one system.

    Args:
        runs: Runs over a corpus, or over parts of it.
        answers: Whether the same answers must also be unusable, which matters for exact match and
            tables of outcomes, but not for F1.

    Returns:
        The first run of each system, in the given order. Its name contains the names of the others:
        ``Small, tuned (= tuned, constrained)``.
    """
    systems: dict[Hashable, list[Predictions]] = {}
    for run in runs:
        usable = run.ok.tobytes() if answers else b""
        key = (run.corpus.fingerprint, run.masks.tobytes(), usable)
        systems.setdefault(key, []).append(run)
    found = []
    for same in systems.values():
        name = _joined_name([run.record.name for run in same])
        found.append(replace(same[0], record=same[0].record.model_copy(update={"name": name})))
    return found


@checked
def run_sets(
    runs: Sequence[Predictions], baseline: str = "", *, smallest: int = 20
) -> list[list[Predictions]]:
    """Groups runs over the same dialogues.

    Args:
        runs: Whole runs and runs over samples of the same corpus.
        baseline: Id of the model that comes first in each set that contains it.
        smallest: Smallest number of dialogues of a set, except the largest set; below 20 dialogues
            nothing is tested.

    Returns:
        Sets of at least two runs over the same dialogues, the largest first. For a sample, the
        whole runs are restricted to its dialogues.
    """
    sets = [
        sorted(same, key=lambda run: run.record.model != baseline)
        for same in _by_dialogues(with_same_dialogues(runs))
        if len(same) > 1
    ]
    sets.sort(key=lambda same: -len(same[0].corpus))
    return sets[:1] + [same for same in sets[1:] if len(same[0].corpus) >= smallest]


def _by_dialogues(runs: Iterable[Predictions]) -> list[list[Predictions]]:
    found: dict[str, list[Predictions]] = {}
    for run in runs:
        found.setdefault(run.corpus.fingerprint, []).append(run)
    return list(found.values())


def _joined_name(names: Sequence[str]) -> str:
    """Names systems that are shown as one, such as ``Small, tuned (= tuned, constrained)``.

    Of the leading parts that a name shares with the first name, only the last is repeated.
    """
    first, *others = [name.split(", ") for name in names]
    shown = []
    for parts in others:
        pairs = takewhile(lambda pair: pair[0] == pair[1], zip(first, parts, strict=False))
        shared = len(list(pairs))
        shown.append(", ".join(parts[max(shared - 1, 0) :]))
    return names[0] + (f" (= {', '.join(shown)})" if shown else "")
