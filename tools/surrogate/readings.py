"""Compares the answers of blind readers with the plans, which the readers did not see.

``readings/SPLIT-NN-READER.jsonl`` has a reader's answers: grades, the labels of each user row, and
objections. A text is named by its checksum, so an answer to a text that was changed later is
recognised. Readers also had anchors (real chats, stitched dialogues) between the dialogues. For
``…-hints.jsonl`` they saw only the beginnings of dialogues, each up to its first alert, and guessed
the crisis type.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from sklearn.metrics import cohen_kappa_score

from cradle_lib import strict_json
from cradle_lib.labels import LABELS, crisis_type, stage
from tools.surrogate.dialogue_files import Row, Written, load_dialogues
from tools.surrogate.measures import Measure
from tools.surrogate.plans import DIALOGUES

READINGS: Final = DIALOGUES / "readings"
#: Grades from 1 to 5, and the least mean that is good enough.
GRADES: Final = {"coherence": 4.2, "believability": 3.8}


@cache
def written(split: str) -> Mapping[str, Written]:
    """Reads the dialogues of a split, by id."""
    paths = sorted(DIALOGUES.glob(f"{split}/*.txt"))
    return {one.id: one for path in paths for one in load_dialogues(path)}


def text_names(split: str) -> dict[str, str]:
    """Gives the name (checksum) of the present text of each written dialogue of a split."""
    return {name: _text_name(dialogue.rows) for name, dialogue in written(split).items()}


def _text_name(rows: Iterable[Row]) -> str:
    content = json.dumps([(row.speaker, row.text) for row in rows])
    return hashlib.sha256(content.encode()).hexdigest()[:8]


def _hint(dialogue: Written) -> tuple[str, str] | None:
    """Names the text up to its first alert, and gives the crisis type confirmed later."""
    for at in range(len(dialogue.rows)):
        if event := _alerted(dialogue.rows, at):
            return _text_name(dialogue.rows[: at + 1]), event
    return None


def measure_readings() -> Iterator[Measure]:
    """Measures what readers said of the written dialogues, in any version, with the targets."""
    answers = [
        answer for answer in _answers(sorted(READINGS.glob("*.jsonl"))) if _is_written(answer)
    ]
    for grade, least in GRADES.items():
        values = [answer[grade] for answer in answers if grade in answer]
        yield Measure(f"readers: {grade}", float(np.mean(values)), least, 5)
    guessed = [right for answer in answers for right in _guessed(answer)]
    yield Measure("readers: % of types guessed at alerts", 100 * float(np.mean(guessed)), 0, 60)


def report(files: Sequence[Path]) -> Iterator[str]:
    """Describes readings: grades, agreement with the plan, guesses, and what to write again.

    Readings of a text that was changed since count for the grades only.
    """
    kept = _answers(files)
    answers = [answer for answer in kept if "coherence" in answer]
    for grade in GRADES:
        for kind in sorted({_kind(answer) for answer in answers}):
            values = [answer[grade] for answer in answers if _kind(answer) == kind]
            yield f"{grade} of {kind}: {np.mean(values):.2f} ({len(values)} readings)"
    guessed = [right for answer in kept for right in _guessed(answer)]
    if guessed:
        yield f"types guessed at alerts: {np.mean(guessed):.2f} of {len(guessed)}"
    readings: dict[str, list[dict[str, Any]]] = {}
    rows: list[RowReading] = []
    for answer in answers:
        dialogue = _dialogue(answer)
        if dialogue and _text_name(dialogue.rows) == answer["text"]:
            readings.setdefault(dialogue.id, []).append(answer)
    for _, own in sorted(readings.items()):
        if dialogue := _dialogue(own[0]):
            rows += _row_readings(dialogue, own)
    if not rows:
        return
    pairs = [(row.plan, labels) for row in rows for labels in row.readers]
    equal = np.mean([plan == labels for plan, labels in pairs])
    yield f"user rows equal to the plan: {equal:.3f}"
    yield f"kappa with the plan, labelled rows: {_kappa(pairs):.2f}"
    again: dict[str, list[str]] = {}
    for name, own in readings.items():
        again[name] = [f"objection: {one['objection']}" for one in own if one["objection"]]
    for row in rows:
        again[row.dialogue] += row.reasons()
    reasons = {name: found for name, found in sorted(again.items()) if found}
    yield f"{len(readings)} dialogues read, {len(reasons)} to write again"
    for name, found in reasons.items():
        yield f"WRITE AGAIN {name}: {'; '.join(found)}"


@dataclass(frozen=True, slots=True)
class RowReading:
    """What readers say about one user row.

    Attributes:
        dialogue: Id of the dialogue.
        at: Number of the row.
        plan: Labels of the plan, sorted.
        event: For an alert, the crisis type of the confirm that follows.
        readers: Labels of each reader, sorted.
    """

    dialogue: str
    at: int
    plan: tuple[str, ...]
    event: str | None
    readers: list[tuple[str, ...]]

    def reasons(self) -> Iterator[str]:
        """Says why the dialogue must be written again."""
        if len(self.readers) > 1 and self.plan not in self.readers:
            yield f"row {self.at}: plan {self.plan}, readers {self.readers}"
        elif self.event and any(
            label.startswith(f"confirm_{self.event}_") for found in self.readers for label in found
        ):
            yield f"row {self.at}: a reader confirms {self.event} at the alert"


def _row_readings(dialogue: Written, own: Sequence[Mapping[str, Any]]) -> Iterator[RowReading]:
    rows = dialogue.rows
    for at, row in enumerate(rows):
        if row.speaker != "U":
            continue
        # Labels of the rows that continue it belong to it, as in the answers.
        end = next((k for k in range(at + 1, len(rows)) if rows[k].speaker != "-"), len(rows))
        yield RowReading(
            dialogue.id,
            at,
            tuple(sorted({label for part in rows[at:end] for label in part.labels})),
            _alerted(rows, at),
            [tuple(sorted(one["labels"].get(str(at), ()))) for one in own],
        )


def _guessed(answer: Mapping[str, Any]) -> Iterator[bool]:
    """Says whether a guess is right; nothing for other answers, or if the text was changed."""
    dialogue = _dialogue(answer)
    hint = _hint(dialogue) if dialogue and "guess" in answer else None
    if hint and hint[0] == answer["text"]:
        yield answer["guess"] == hint[1]


def _dialogue(answer: Mapping[str, Any]) -> Written | None:
    """Finds the written dialogue of an answer; ``None`` for an anchor."""
    name = answer["dialogue"]
    return written(name.partition("-")[0]).get(name)


def _answers(files: Sequence[Path]) -> list[dict[str, Any]]:
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    return [strict_json.loads(line) for line in lines]


def _is_written(answer: Mapping[str, Any]) -> bool:
    """Whether an answer is about a written dialogue, and not about an anchor."""
    return "-" in answer["dialogue"]


def _kind(answer: Mapping[str, Any]) -> str:
    return "written" if _is_written(answer) else str(answer["dialogue"])


def _alerted(rows: Sequence[Row], at: int) -> str | None:
    """Gives the crisis type that is confirmed after an alert; None without one."""
    if not any(stage(label) == "alert" for label in rows[at].labels):
        return None
    later = (label for row in rows[at + 1 :] for label in row.labels)
    return next((crisis_type(label) for label in later if stage(label) == "confirm"), None)


def _kappa(pairs: Sequence[tuple[tuple[str, ...], tuple[str, ...]]]) -> float:
    """Cohen's kappa, one decision for each label of each row that either side labelled."""
    labelled = [pair for pair in pairs if any(pair)]
    one, other = ([label in two[side] for two in labelled for label in LABELS] for side in (0, 1))
    return float(cohen_kappa_score(one, other))
