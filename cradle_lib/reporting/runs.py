"""The runs that a page shows, grouped into what can be compared."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.detection.registry import load_registry
from cradle_lib.detection.runs import find_journal
from cradle_lib.record import History
from cradle_lib.scoring.comparison.comparison import common_dialogues
from cradle_lib.scoring.comparison.difference import ENOUGH

_T = TypeVar("_T")


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


def run_sets(runs: Sequence[Predictions], baseline: str = "") -> list[list[Predictions]]:
    """Puts runs into sets that may be compared.

    Args:
        runs: Whole runs and runs over samples of the same corpus.
        baseline: Id of the model that comes first in every set in which it is.

    Returns:
        The sets of two runs or more over the same dialogues, the largest first; for a sample
        the whole runs are restricted to its dialogues. A set other than the largest is left out
        if it has fewer than 20 dialogues: nothing could be tested.
    """
    extended = with_same_dialogues(runs)
    groups = [
        sorted((run for run, _ in group), key=lambda run: run.record.model != baseline)
        for _, group in comparable(extended, extended)
    ]
    several = [group for group in groups if len(group) > 1]
    return several[:1] + [group for group in several[1:] if len(group[0].corpus) >= ENOUGH]


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
        f"A part of {run.record.corpus}: {size} of {run.of_turns:,}. "
        "Compare only under this heading"
    )


def history_runs(runs: Sequence[Predictions], corpus: Corpus) -> list[dict[History, Predictions]]:
    """Finds, for each run, the same model's runs with other histories.

    Args:
        runs: Runs with the history ``self``.
        corpus: The corpus that they were made for.

    Returns:
        Runs by history over the same dialogues, for each model that has more than one.
    """
    found = []
    registry = load_registry()
    for run in runs:
        model = registry.get(run.record.model)
        if model is None:
            continue
        histories: dict[History, Predictions] = {"self": run}
        others: tuple[History, ...] = ("gold", "none")
        for history in others:
            path = find_journal(model, corpus, history)
            if path is not None:
                histories[history] = load_predictions(path, corpus, partial=True)
        if len(histories) > 1:
            shared = common_dialogues(list(histories.values()))
            found.append(dict(zip(histories, shared, strict=True)))
    return found
