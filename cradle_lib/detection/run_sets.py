"""Groups runs over the same dialogues, which can be compared."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import replace
from itertools import takewhile

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.errors import ScoringError
from cradle_lib.files import visible_files


def common_dialogues(runs: Sequence[Predictions]) -> list[Predictions]:
    """Restricts runs over a corpus, or over parts of it, to their common dialogues.

    Raises:
        ScoringError: If no dialogue is covered by all.
    """
    if not runs:
        return []
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


def with_same_dialogues(runs: Sequence[Predictions]) -> list[Predictions]:
    """Adds, for each sample, the other models' predictions on the same dialogues.

    Args:
        runs: Whole runs and runs over samples of the same corpus.

    Returns:
        The whole runs, then for each sample the whole runs restricted to it and the runs over it.
    """
    whole = [run for run in runs if run.is_whole]
    extended = list(whole)
    for same in _by_dialogues(run for run in runs if not run.is_whole):
        extended += [run.subset(same[0].corpus) for run in whole] + same
    return extended


def distinct_runs(runs: Sequence[Predictions], *, answers: bool = False) -> list[Predictions]:
    """Puts runs with the same labels on every turn together: they are one system.

    Args:
        runs: Runs over a corpus, or over parts of it.
        answers: Whether the same answers must also be unusable. They count in the exact match and
            in tables of outcomes, and not in F1.

    Returns:
        The first run of each system, in the given order. Its name tells the others: ``Tuned
        (= constrained)``.
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


def repeated_runs(corpus: Corpus) -> dict[str, list[Predictions]]:
    """Loads repeated runs of a system, which differ only in their seeds.

    Each was written by ``cradle infer --out runs/repeats/SYSTEM/SEED``.

    Args:
        corpus: The corpus that they were over, or that they took a sample of.

    Returns:
        The runs of each system, both in the order of their folders' names; those that ship come
        first. A run that is not finished is restricted to what it answered.

    Raises:
        JournalError: If a journal can't be read, or does not fit the corpus.
    """
    found: dict[str, list[Predictions]] = {}
    for folder in (paths.SHIPPED_RUNS, paths.RUNS):
        for path in visible_files(folder, f"repeats/*/*/{corpus.name}/*.jsonl"):
            system = path.parents[2].name
            found.setdefault(system, []).append(load_predictions(path, corpus, partial=True))
    return found


def run_sets(
    runs: Sequence[Predictions], baseline: str = "", *, smallest: int = 20
) -> list[list[Predictions]]:
    """Groups runs over the same dialogues.

    Args:
        runs: Whole runs and runs over samples of the same corpus.
        baseline: Id of the model that comes first in every set in which it is.
        smallest: Dialogues that a set other than the largest must have: with fewer than 20
            nothing is tested.

    Returns:
        The sets of two runs or more over the same dialogues, the largest first; for a sample
        the whole runs are restricted to its dialogues.
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
    """Names systems that are shown as one: ``Tuned`` and ``Tuned, wide`` as ``Tuned (= wide)``."""
    first, *others = [name.split(", ") for name in names]
    others_shown = []
    for parts in others:
        shared = sum(
            1 for _ in takewhile(lambda two: two[0] == two[1], zip(first, parts, strict=False))
        )
        others_shown.append(", ".join(parts[shared:] if len(parts) > shared else parts))
    return names[0] + (f" (= {', = '.join(others_shown)})" if others_shown else "")
