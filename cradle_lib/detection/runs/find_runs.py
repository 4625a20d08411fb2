"""Finds stored runs by model and settings, and groups runs over the same dialogues.

A journal that ships with the repository takes precedence over one under ``runs/``. Runs are
described by their own records; the registry decides which models are in the default set, and names
them.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from itertools import takewhile
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.arguments import checked
from cradle_lib.corpus import Corpus
from cradle_lib.corpus.load import load_corpus
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.models.registry import load_registry, resolve
from cradle_lib.detection.runs.journal import (
    joined_path,
    list_journals,
    read_record,
)
from cradle_lib.detection.runs.matching import matching_journals
from cradle_lib.detection.runs.missing_run import missing_run, stored_with_any_settings
from cradle_lib.detection.runs.predictions import (
    Predictions,
    load_predictions,
    require_finished,
)
from cradle_lib.detection.runs.run_names import renamed, with_distinct_names
from cradle_lib.errors import CorpusError, CradleError, JournalError, NoRunError, ScoringError
from cradle_lib.files import visible_files
from cradle_lib.record import History

#: Begins a line about a run that is left out; the book shows these lines on the page.
NOT_SHOWN: Final = "Not shown: "


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
        The predictions, aligned to the dialogues that are covered. The registry's name of a model
        replaces that in the record.

    Raises:
        NoRunError: If the model has not been run over the corpus with the entry's settings.
        JournalError: As :func:`.load_predictions`.
    """
    path = find_journal(entry, corpus, history)
    if path is None:
        raise missing_run(entry, corpus, history)
    run = load_predictions(path, corpus, partial=partial)
    # Models without an entry keep the name in their record.
    return run if entry.group == "own" else renamed(run, entry.name)


def find_journal(entry: Model, corpus: Corpus, history: History = "self") -> Path | None:
    """Finds the journal of a model's run over a corpus.

    Returns:
        The path of its journal, which for a run in shards does not exist itself; ``None`` if
        the model has not been run with the entry's settings.

    Raises:
        JournalError: If a journal can't be read.
    """
    return next(matching_journals(entry, corpus, history), None)


def load_named(name: str, corpus: Corpus, *, partial: bool = True) -> Predictions:
    """Loads a run by an id in the registry, a spec, or the name of a journal without ``.jsonl``.

    Raises:
        RegistryError: If there is no such model or journal.
        JournalError: As :func:`load_run`.
    """
    registry = load_registry()
    path = None if name in registry else journal_named(name, corpus)
    if path is None:
        return load_run(resolve(name, registry), corpus, partial=partial)
    return load_predictions(path, corpus, partial=partial)


def journal_named(name: str, corpus: Corpus) -> Path | None:
    """Finds a run over a corpus by its journal: its name without ``.jsonl``, or its path."""
    if name.endswith(".jsonl"):
        return paths.ROOT / name
    for folder in (paths.SHIPPED_RUNS, paths.RUNS):
        path = folder / corpus.name / f"{name}.jsonl"
        if path in list_journals(path.parent):
            return path
    return None


def require_name(name: str, corpus: Corpus) -> None:
    """Checks that a name is an id in the registry, a valid spec, or that of a journal.

    Raises:
        RegistryError: If it is not.
    """
    if journal_named(name, corpus) is None:
        resolve(name)


@checked
def stored_runs(
    corpus: Corpus, models: Sequence[str] = (), *, skip: bool = False
) -> list[Predictions]:
    """Loads stored runs; no model is run.

    Args:
        corpus: The corpus of the runs.
        models: Ids in the registry, specs, names of journals without ``.jsonl``, or paths of
            journals in the repository. By default, the models of the default set, followed by
            :func:`other_runs`. A run that can't be read is then left out, and the reason is written
            to the standard error stream.
        skip: Whether named models without a run that can be read are left out in the same way.

    Returns:
        The predictions in the order of the models. A run over a sample, or an unfinished run, is
        aligned to its part of the corpus. Runs with the same name get different ones.

    Raises:
        NoRunError: If a named model has no run, or no model of the default set has one.
        JournalError: If the journal of a named model does not fit the corpus.
    """
    found = []
    for name in models:
        require_name(name, corpus)
        with leave_out() if skip else nullcontext():
            found.append(load_named(name, corpus))
    if models:
        return with_distinct_names(found)
    for entry in load_registry().values():
        if entry.default:
            with leave_out():
                if any(stored_with_any_settings(entry, corpus)):
                    found.append(load_run(entry, corpus, partial=True))
    found += other_runs(corpus, found)
    if not found:
        raise NoRunError(
            f"no model of the default set has been run over {corpus.name}. "
            "Make a run with `cradle infer`, for instance with `--model keyword`."
        )
    return with_distinct_names(found)


def other_runs(corpus: Corpus, shown: Iterable[Predictions] = ()) -> list[Predictions]:
    """Loads the user's runs with the paper's history, by the names of their journals.

    Args:
        corpus: The corpus of the runs.
        shown: Runs that are left out, because they were loaded before.

    Returns:
        The runs. That of the notebook template is left out. Runs that can't be read, or have no
        complete dialogue, are left out as in :func:`stored_runs`.
    """
    before = {joined_path(file) for run in shown for file in run.files}
    found = []
    for path in list_journals(paths.RUNS / corpus.name):
        if path not in before and path.stem != paths.TEMPLATE_RUN:
            with leave_out():
                if read_record(path).history == "self":
                    found.append(load_predictions(path, corpus, partial=True))
    return found


@checked
def in_default_set(run: Predictions) -> bool:
    """Says whether a run is that of a model of the default set, not one that a user added."""
    entry = load_registry().get(run.record.model)
    return entry is not None and entry.default


@contextmanager
def leave_out() -> Iterator[None]:
    """Leaves out a run that can't be read, and writes the reason to the standard error stream."""
    try:
        yield
    except CradleError as error:
        sys.stderr.write(f"{NOT_SHOWN}{' '.join(str(error).split())}\n")


@checked
def dev_runs(runs: Sequence[Predictions], corpus: str) -> list[Predictions]:
    """Loads the runs of the same systems over the dev split of the same corpus.

    Args:
        runs: Runs over another split. Dev runs are loaded for those that stored log-probabilities.
        corpus: ``surrogate`` or ``hub``; a file has no dev split.

    Returns:
        The dev runs, in the order of the runs. Systems without a run over dev are left out. The
        list is empty if the release has not been fetched.
    """
    found: list[Predictions] = []
    if corpus not in ("surrogate", "hub"):
        return found
    with suppress(CorpusError):
        dev = load_corpus(corpus, "dev")
        journals: dict[str, Path] = {}
        for folder in (paths.SHIPPED_RUNS, paths.RUNS):
            for path in list_journals(folder / dev.name):
                with leave_out():
                    journals.setdefault(read_record(path).system, path)
        for run in runs:
            if any(run.choices) and run.record.system in journals:
                with leave_out():
                    path = journals[run.record.system]
                    found.append(load_predictions(path, dev, partial=True))
    return found


@checked
def repeated_runs(corpus: Corpus) -> dict[str, list[Predictions]]:
    """Loads the repeated runs of each system, which differ only in their seeds.

    Each run was written by ``cradle infer --out runs/repeats/SYSTEM/SEED``.

    Args:
        corpus: The corpus of the runs, or the corpus that they are a sample of.

    Returns:
        The runs of each system, in the order of their folders' names; shipped runs come first. All
        runs of a system are over the same dialogues. A run that can't be read, is not finished, or
        is over other dialogues than the system's first run is left out, as in :func:`stored_runs`.
    """
    found: dict[str, list[Predictions]] = {}
    for folder in (paths.SHIPPED_RUNS, paths.RUNS):
        for path in visible_files(folder, f"repeats/*/*/{corpus.name}/*.jsonl"):
            system = path.parents[2].name
            with leave_out():
                run = load_predictions(path, corpus, partial=True)
                _require_repeat(run, found.get(system, [run])[0], path)
                found.setdefault(system, []).append(run)
    return found


def _require_repeat(run: Predictions, first: Predictions, path: Path) -> None:
    """Checks that a repeated run is finished, and over the same dialogues as the first one."""
    require_finished(run)
    if run.corpus.fingerprint != first.corpus.fingerprint:
        raise JournalError(
            f"{paths.shown(path)}: this run is over other dialogues than the first run of "
            f"{path.parents[2].name}. Run all over the same corpus or sample."
        )


def common_dialogues(runs: Sequence[Predictions]) -> list[Predictions]:
    """Restricts runs over a corpus, or over parts of it, to their common dialogues.

    Raises:
        ScoringError: If no dialogue with a user turn is covered by all.
    """
    shared = set.intersection(*({d.id for d in run.corpus} for run in runs))
    fewest = min(runs, key=lambda run: len(run.corpus)).corpus
    chosen = [place for place, dialogue in enumerate(fewest) if dialogue.id in shared]
    if not any(fewest.dialogues[place].user_turns for place in chosen):
        raise ScoringError(
            f"no dialogue with a user turn is covered by all {len(runs)} runs. Compare runs over "
            "the same corpus."
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
        found.append(renamed(same[0], name))
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
