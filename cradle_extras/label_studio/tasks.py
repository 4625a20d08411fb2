"""Writes the tasks of a study for Label Studio.

A task contains one dialogue and the name of its annotator. It has no gold labels and no
annotations, so that the adjudicator and the senior label without seeing earlier annotations.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from cradle_extras.label_studio.study import Assignment, Study, file_name
from cradle_lib.corpus.dialogue import Corpus, Dialogue
from cradle_lib.files import write_text


class TaskData(BaseModel):
    """The ``data`` of a task: the dialogue, a note, the corpus and the annotator."""

    dialogue_id: str
    turns: list[dict[str, Any]]
    note: str
    corpus: str
    texts: str
    annotators: list[str] = Field(min_length=1, max_length=1)


def task_turns(dialogue: Dialogue) -> list[dict[str, Any]]:
    """Converts a dialogue to the ``turns`` of a task: one object for each row of the corpus."""
    return [
        {"author": turn.speaker + ", continued" * turn.continues, "text": turn.text}
        for turn in dialogue.turns
    ]


def task_data(assignment: Assignment, study: Study, dialogue: Dialogue) -> dict[str, Any]:
    """Makes the ``data`` of one task."""
    return TaskData(
        dialogue_id=dialogue.id,
        turns=task_turns(dialogue),
        note=_note(assignment),
        corpus=study.corpus,
        texts=study.texts,
        annotators=[assignment.annotator],
    ).model_dump()


def _note(assignment: Assignment) -> str:
    if assignment.role == "annotator":
        return f"Dialogue {assignment.dialogue}, round {assignment.round}"
    turns = ", ".join(map(str, assignment.turns))
    before = "two" if assignment.role == "adjudicator" else "three"
    return (
        f"Dialogue {assignment.dialogue}: {before} people differ about turns {turns} (counted "
        "from 0). Label the whole dialogue as you see it."
    )


def write_tasks(
    study: Study, corpus: Corpus, folder: Path, assignments: Sequence[Assignment]
) -> list[Path]:
    """Writes tasks to files such as ``round1-A.json`` or ``senior-S.json``, one for each project.

    Each person has separate projects, because the open edition of Label Studio shows everybody in
    a project the annotations of the others.
    """
    files: dict[Path, list[dict[str, Any]]] = {}
    for item in assignments:
        data = task_data(item, study, corpus.by_id[item.dialogue])
        files.setdefault(folder / f"{export_name(item)}.json", []).append({"data": data})
    for path, content in files.items():
        write_text(path, json.dumps(content, ensure_ascii=False, indent=1))
    return list(files)


def export_name(assignment: Assignment) -> str:
    """Names the project of an assignment, such as ``round1-A``: a file name without suffix."""
    stage = f"round{assignment.round}" if assignment.role == "annotator" else assignment.role
    return f"{stage}-{file_name(assignment.annotator)}"
