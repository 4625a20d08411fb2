"""The surrogate annotations that ship: built by :mod:`cradle_lib.annotation.simulation`.

They are stored as Label Studio exports, one for each person and round, so that reading them
is the same work as reading one's own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.annotation.exports import read_exports
from cradle_lib.annotation.simulation import SEED, simulate
from cradle_lib.annotation.study import Assignment, Study
from cradle_lib.annotation.table import Annotation, Annotations, read_annotations
from cradle_lib.annotation.tasks import export_name, region, task_data, write_export
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.load import load_corpus

SHIPPED: Final = paths.SURROGATE / "annotations"


def build_annotations(folder: Path = SHIPPED, seed: int = SEED) -> Annotations:
    """Simulates the study on the surrogate's test split and writes its exports.

    The same corpus and seed give the same bytes. Exports of people who are not in the study
    any more are removed.

    Args:
        folder: Where to write; made if it is missing.
        seed: Start of all choices. The shipped files come from the default.

    Returns:
        The annotations, as they are read back from what was written.

    Raises:
        CorpusError: If the surrogate can't be read.
        AnnotationError: If the outcomes can't be reached on it.
    """
    corpus = load_corpus("surrogate", "test")
    study, annotations = simulate(corpus, seed)
    by_key = {(entry.dialogue, entry.annotator): entry for entry in annotations.entries}
    files: dict[str, list[tuple[Assignment, Annotation]]] = {}
    for item in study.assignments:
        name = f"{export_name(item, (item.annotator,))}.json.gz"
        files.setdefault(name, []).append((item, by_key[item.dialogue, item.annotator]))
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json.gz"):
        if old.name not in files:
            old.unlink()
    study.save(folder / "study.json")
    for name, tasks in files.items():
        write_export(_exported(tasks, study, corpus), folder / name)
    return read_exports(sorted(folder.glob("*.json.gz")), study, corpus)


def load_annotations(corpus: Corpus, annotations: str | Path = "surrogate") -> Annotations:
    """Loads annotations of a corpus.

    Args:
        corpus: The dialogues that were labelled.
        annotations: ``surrogate`` for those that ship, or a table that ``cradle annotate
            import`` wrote.

    Returns:
        The annotations.

    Raises:
        AnnotationError: If they can't be read, or were made on other dialogues.
    """
    if annotations == "surrogate":
        study = Study.load(SHIPPED / "study.json")
        return read_exports(sorted(SHIPPED.glob("*.json.gz")), study, corpus)
    return read_annotations(Path(annotations), corpus)


def _exported(
    tasks: list[tuple[Assignment, Annotation]], study: Study, corpus: Corpus
) -> Iterator[dict[str, Any]]:
    people = sorted({name for members in study.teams.values() for name in members})
    users = {name: number for number, name in enumerate((*people, study.senior), start=1)}
    by_id = {dialogue.id: dialogue for dialogue in corpus}
    for number, (item, entry) in enumerate(tasks, start=1):
        dialogue = by_id[item.dialogue]
        result = [
            region(turn.turn_id, mask, turn.text)
            for turn, mask in zip(dialogue.turns, entry.masks, strict=True)
            if mask
        ]
        yield {
            "id": number,
            "annotations": [
                {
                    "id": number,
                    "completed_by": users[item.annotator],
                    "result": result,
                    "was_cancelled": False,
                    "ground_truth": False,
                }
            ],
            "data": task_data(item, (item.annotator,), study, dialogue),
            "meta": {},
        }
