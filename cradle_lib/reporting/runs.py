"""The runs that a page shows: found where they lie, and grouped into what can be compared.

A journal that ships with the repository comes before one of the same model under ``runs/``.
Nothing is run from here, so that a page of results depends on journals and not on engines.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.places import journal_path
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.detection.registry import Model, find_model, load_registry
from cradle_lib.errors import JournalError
from cradle_lib.record import History

_T = TypeVar("_T")


def stored_runs(corpus: Corpus, models: Sequence[str] = ()) -> list[Predictions]:
    """Loads runs that were made before.

    Args:
        corpus: The corpus that they were over.
        models: Ids in the registry; if none is named, those of the default set that have
            been run.

    Returns:
        The predictions in the order of the models. A run over a sample is aligned to its
        own part of the corpus.

    Raises:
        JournalError: If there is no journal for one that is named, or for any of the default
            set, or one does not fit.
    """
    registry = load_registry()
    entries = [find_model(name, registry) for name in models]
    if not entries:
        entries = [e for e in registry.values() if e.default and find_journal(e, corpus)]
    if not entries:
        raise JournalError(
            f"no model of the default set has been run over {corpus.name}. "
            f"Make a run with `{infer_command(registry['keyword'], corpus)}`."
        )
    return [load_run(entry, corpus) for entry in entries]


def whole_runs(runs: Sequence[Predictions]) -> list[Predictions]:
    """Keeps the runs that cover their corpus, not only a sample of it."""
    return [run for run in runs if is_whole(run)]


def is_whole(run: Predictions) -> bool:
    """Whether a run covers its corpus, not only a sample of it."""
    return len(run.masks) == run.of_turns


def with_same_dialogues(runs: Sequence[Predictions]) -> list[Predictions]:
    """Adds, for each sample, what the other models did on the same dialogues.

    Args:
        runs: Whole runs and runs over samples of the same corpus.

    Returns:
        The whole runs, then for each sample the whole runs restricted to it and the runs
        over it, so that these can be compared with one another.
    """
    whole = whole_runs(runs)
    samples: dict[str, list[Predictions]] = {}
    for run in runs:
        if not is_whole(run):
            samples.setdefault(run.corpus.fingerprint, []).append(run)
    extended = list(whole)
    for same in samples.values():
        extended += [run.subset(same[0].corpus) for run in whole] + same
    return extended


def comparable(
    runs: Sequence[Predictions], items: Sequence[_T]
) -> list[tuple[str, list[tuple[Predictions, _T]]]]:
    """Puts together what was computed over the same dialogues.

    Args:
        runs: The runs.
        items: What belongs to each of them, such as an evaluation.

    Returns:
        A heading that names the dialogues and their number, and the runs with their items;
        the largest set of dialogues first.
    """
    groups: dict[str, list[tuple[Predictions, _T]]] = {}
    for predictions, item in zip(runs, items, strict=True):
        groups.setdefault(predictions.corpus.fingerprint, []).append((predictions, item))
    ordered = sorted(groups.values(), key=lambda group: -len(group[0][0].corpus))
    return [(_heading(group[0][0]), group) for group in ordered]


def _heading(run: Predictions) -> str:
    size = f"{len(run.corpus):,} dialogues, {len(run.masks):,} user turns"
    if is_whole(run):
        return f"{run.corpus.name}: {size}"
    return (
        f"A sample of {run.record.corpus}: {size} of {run.of_turns:,}. "
        "Compare only under this heading"
    )


def find_journal(entry: Model, corpus: Corpus, history: History = "self") -> Path | None:
    """Finds the journal of a model over a corpus; ``None`` if it has not been run."""
    folders = (paths.SHIPPED_RUNS, paths.RUNS)
    places = (journal_path(entry, corpus, history, out=folder) for folder in folders)
    return next((path for path in places if path.exists()), None)


def infer_command(entry: Model, corpus: Corpus, history: History = "self") -> str:
    """Gives the command that makes a run: over this corpus, and no other one.

    Args:
        entry: The model; its sample is asked for, if it has one.
        corpus: A corpus that :func:`~cradle_lib.corpus.load_corpus` loaded.
        history: Whose tags it sees.

    Returns:
        A line for a shell at the top of the repository.
    """
    words = ["cradle", "infer", "--model", entry.id]
    path = corpus.path
    named = {"surrogate": paths.SURROGATE, "hub": paths.RELEASE}
    for name, folder in named.items():
        if path is not None and corpus.name.startswith(f"{name}-") and path.parent == folder:
            words += ["--corpus", name] if name != "surrogate" else []
            words += ["--split", path.stem] if path.stem != "test" else []
            break
    else:
        words += ["--corpus", paths.shown(path)] if path is not None else []
    words += ["--history", history] if history != "self" else []
    words += ["--sample", str(entry.sample)] if entry.sample is not None else []
    return shlex.join(words)


def load_run(
    entry: Model, corpus: Corpus, history: History = "self", *, partial: bool = False
) -> Predictions:
    """Loads a model's run over a corpus, or over the sample that the registry asks for.

    Args:
        entry: The model.
        corpus: The corpus that it was run over.
        history: Whose tags it saw.
        partial: Whether to accept a run that is not complete.

    Returns:
        The predictions, aligned to the dialogues that are covered.

    Raises:
        JournalError: If there is no journal, or it does not fit.
    """
    path = find_journal(entry, corpus, history)
    if path is None:
        wanted = paths.shown(journal_path(entry, corpus, history))
        raise JournalError(
            f"{wanted}: there is no run of {entry.name} over {corpus.name}. "
            f"Make it with `{infer_command(entry, corpus, history)}`."
        )
    predictions = load_predictions(path, corpus, partial=partial or entry.sample is not None)
    chosen = predictions.record.dialogues
    wanted_size = len(corpus) if chosen is None else len(chosen)
    if not partial and len(predictions.corpus) < wanted_size:
        raise JournalError(
            f"{paths.shown(path)}: {len(predictions.corpus)} of the run's {wanted_size} dialogues "
            f"are complete. Finish it with `{infer_command(entry, corpus, history)}`, as it was "
            "started."
        )
    return predictions
