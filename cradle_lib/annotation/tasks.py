"""Tasks for Label Studio: what the people of a study are shown.

A task holds one dialogue and says for whom it is. Neither gold labels nor anybody's annotation
is in it, so that the adjudicator and the senior label without sight of the originals.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from cradle_lib.annotation.study import Assignment, Study, file_name
from cradle_lib.corpus.dialogue import Corpus, Dialogue
from cradle_lib.files import replacing

#: Fields of a task's data, chosen so that JSON-MIN, which flattens, overwrites none of them.
FIELDS: Final = ("dialogue_id", "turns", "note", "corpus", "texts", "annotators")


def authored(dialogue: Dialogue) -> list[dict[str, str]]:
    """Writes a dialogue the way a task holds it: one object for each turn, rows kept apart."""
    return [
        {
            "author": f"{turn.speaker}, continued" if turn.continues else turn.speaker,
            "text": turn.text,
        }
        for turn in dialogue.turns
    ]


def task_data(
    assignment: Assignment, annotators: Sequence[str], study: Study, dialogue: Dialogue
) -> dict[str, Any]:
    """Writes the ``data`` of one task.

    Args:
        assignment: Why the dialogue is shown.
        annotators: Who is to label it.
        study: The plan.
        dialogue: The dialogue.

    Returns:
        The data. Neither gold labels nor anybody's annotation is in it.
    """
    return {
        "dialogue_id": dialogue.id,
        "turns": authored(dialogue),
        "note": _note(assignment),
        "corpus": study.corpus,
        "texts": study.texts,
        "annotators": list(annotators),
    }


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
    study: Study, corpus: Corpus, folder: Path, assignments: Sequence[Assignment], *, shared: bool
) -> list[Path]:
    """Writes tasks, one file for each project.

    Args:
        study: The plan.
        corpus: The dialogues.
        folder: Where to write; made if it is missing.
        assignments: Which tasks.
        shared: Whether the two members of a team work in one project. By default each
            person has a project, because the open edition of Label Studio shows everybody
            in a project what the others did.

    Returns:
        The files, such as ``round1-A.json``, ``round1-A-B.json`` or ``senior-S.json``.

    Raises:
        CradleError: If they can't be written there.
    """
    by_id = {dialogue.id: dialogue for dialogue in corpus}
    files: dict[str, dict[str, tuple[Assignment, tuple[str, ...]]]] = {}
    for item in assignments:
        people: tuple[str, ...] = (item.annotator,)
        if shared and item.role == "annotator":
            people = study.teams[item.team]
        name = export_name(item, people)
        files.setdefault(name, {})[item.dialogue] = item, people
    written = []
    for name, tasks in files.items():
        content = [
            {"data": task_data(item, people, study, by_id[dialogue])}
            for dialogue, (item, people) in tasks.items()
        ]
        path = folder / f"{name}.json"
        with replacing(path) as part:
            part.write_text(json.dumps(content, ensure_ascii=False, indent=1), encoding="utf-8")
        written.append(path)
    return written


def export_name(assignment: Assignment, people: Sequence[str]) -> str:
    """Names the project of an assignment, such as ``round1-A``: a file name without ending."""
    stage = assignment.role
    if stage == "annotator":
        return "-".join((f"round{assignment.round}", *map(file_name, people)))
    return "-".join((stage, *map(file_name, people)))
