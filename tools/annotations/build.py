"""Writes the simulated study as Label Studio exports, one for each person and round."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from cradle_extras.label_studio.exports import SHIPPED, read_exports
from cradle_extras.label_studio.interface import CONTROL, OBJECT
from cradle_extras.label_studio.study import Assignment, Study
from cradle_extras.label_studio.tasks import export_name, task_data
from cradle_lib.annotation.table import Annotation, Annotations, write_annotations
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.load import load_corpus
from cradle_lib.files import replacing
from cradle_lib.labels import labels_of
from tools.annotations.simulation import SEED, simulate


def build_annotations(folder: Path = SHIPPED, seed: int = SEED) -> Annotations:
    """Simulates the study on the surrogate's test split and writes its exports.

    The same corpus and seed give the same bytes. Exports of people who are no longer in the study
    are removed.

    Args:
        folder: Output folder; created if it is missing.
        seed: Random seed. The shipped files come from the default.

    Returns:
        The annotations, as read back from the written exports.

    Raises:
        CorpusError: If the surrogate can't be read, or the planned outcomes can't be reached
            with its dialogues.
    """
    corpus = load_corpus("surrogate", "test")
    study, annotations = simulate(corpus, seed)
    by_key = {(entry.dialogue, entry.annotator): entry for entry in annotations.entries}
    files: dict[str, list[tuple[Assignment, Annotation]]] = {}
    for item in study.assignments:
        name = f"{export_name(item)}.json.gz"
        files.setdefault(name, []).append((item, by_key[item.dialogue, item.annotator]))
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("*.json.gz"):
        if old.name not in files:
            old.unlink()
    study.save(folder / "study.json")
    for name, tasks in files.items():
        write_export(_exported(tasks, study, corpus), folder / name)
    made = read_exports(sorted(folder.glob("*.json.gz")), study, corpus)
    write_annotations(made, folder / "annotations.parquet")
    return made


def _exported(
    tasks: list[tuple[Assignment, Annotation]], study: Study, corpus: Corpus
) -> Iterator[dict[str, Any]]:
    people = sorted({name for members in study.teams.values() for name in members})
    users = {name: number for number, name in enumerate((*people, study.senior), start=1)}
    for number, (item, entry) in enumerate(tasks, start=1):
        dialogue = corpus.by_id[item.dialogue]
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
            "data": task_data(item, study, dialogue),
            "meta": {},
        }


def region(turn_id: int, mask: int, text: str) -> dict[str, Any]:
    """Builds the result of one labelled turn in the form of Label Studio's editor."""
    return {
        "id": f"turn{turn_id}",
        "from_name": CONTROL,
        "to_name": OBJECT,
        "type": "paragraphlabels",
        "origin": "manual",
        "value": {
            "start": str(turn_id),
            "end": str(turn_id),
            "startOffset": 0,
            "endOffset": len(text),
            "text": text,
            "paragraphlabels": list(labels_of(mask)),
        },
    }


def write_export(tasks: Iterable[Mapping[str, Any]], path: Path) -> None:
    """Writes annotated tasks as gzipped JSON; the same content gives the same bytes."""
    text = json.dumps(list(tasks), ensure_ascii=False, separators=(",", ":"))
    with replacing(path) as part:
        part.write_bytes(gzip.compress(text.encode(), compresslevel=9, mtime=0))
