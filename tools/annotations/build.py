"""Converts the blind readings of the test split to Label Studio exports, as people would give them.

Readers A to D are the annotators, in two teams and two rounds. A dialogue that was written again
after their reading has the labels of the two people who read its last version. An adjudicator of
the other team labels the turns on which two annotators differ, without seeing their labels; a
fifth reader decides what is left. The answers are in ``data/surrogate/dialogues/readings``.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from cradle_extras.label_studio.exports import SHIPPED, read_exports
from cradle_extras.label_studio.interface import CONTROL, OBJECT
from cradle_extras.label_studio.study import Assignment, Study, next_assignments, plan_study
from cradle_extras.label_studio.tasks import export_name, task_data
from cradle_lib import strict_json
from cradle_lib.annotation.table import Annotation, Annotations, write_annotations
from cradle_lib.corpus.dialogue import Corpus, Dialogue
from cradle_lib.corpus.load import load_corpus
from cradle_lib.errors import CorpusError
from cradle_lib.files import replacing
from cradle_lib.labels import labels_of, mask_of
from tools.surrogate.readings import READINGS, text_names

#: The annotation study of the test split: two teams, the senior, and the seed of the assignment.
TEAMS: Final = {"1": ("A", "B"), "2": ("C", "D")}
SENIOR: Final = "S"
SEED: Final = 2606
#: Readers of dialogues that were written again, in the places of the first and second annotator.
_SECOND_READERS: Final = ("G", "H")


def build_annotations(folder: Path = SHIPPED) -> Annotations:
    """Writes the exports of the study, one for each person and round.

    The same readings give the same bytes. Exports of people who are no longer in the study are
    removed.

    Args:
        folder: Output folder; created if it is missing.

    Returns:
        The annotations, as read back from the written exports.

    Raises:
        CorpusError: If a reading that the study needs is missing.
    """
    corpus = load_corpus("surrogate", "test")
    study, annotations = annotate(corpus)
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


def annotate(corpus: Corpus) -> tuple[Study, Annotations]:
    """Collects the labels of the study: two annotators, then whoever must decide.

    Raises:
        CorpusError: If a reading is missing.
    """
    answers = _answers()
    study = plan_study(corpus, TEAMS, senior=SENIOR, seed=SEED)
    entries: list[Annotation] = []
    items = study.assignments
    while items:
        for item in items:
            entries.append(_annotation(item, study, corpus.by_id[item.dialogue], answers))
        known = set(study.assignments)
        more = next_assignments(study, Annotations.of(corpus, entries))
        items = tuple(item for item in more if item not in known)
        study = study.with_assignments(items)
    return study, Annotations.of(corpus, entries)


Answers = Mapping[tuple[str, str], Mapping[str, list[str]]]


def _answers() -> dict[tuple[str, str], Mapping[str, list[str]]]:
    """Reads the labels of each text, by role and reader, and by dialogue."""
    names = text_names("test")
    found = {}
    for path in sorted(READINGS.glob("test-*.jsonl")):
        *_, reader = path.stem.split("-")
        role = "adjudication" if "-adjudication-" in path.stem else "annotation"
        for line in path.read_text(encoding="utf-8").splitlines():
            answer = strict_json.loads(line)
            if names.get(answer["dialogue"]) == answer["text"] and "labels" in answer:
                found[f"{role} {reader}", answer["dialogue"]] = answer["labels"]
    return found


def _annotation(item: Assignment, study: Study, dialogue: Dialogue, answers: Answers) -> Annotation:
    name = f"test-{dialogue.index:04}"
    readers = [f"adjudication {item.annotator}"]
    if item.role == "annotator":
        second = _SECOND_READERS[study.teams[item.team].index(item.annotator)]
        readers = [f"annotation {item.annotator}", f"annotation {second}"]
    labels = next((answers[who, name] for who in readers if (who, name) in answers), None)
    if labels is None:
        raise CorpusError(f"no reading of {name} by {item.role} {item.annotator}")
    masks = [0] * len(dialogue.turns)
    for row, given in labels.items():
        masks[int(row)] = mask_of(given)
    return Annotation(item.dialogue, item.annotator, item.team, item.round, item.role, tuple(masks))


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
