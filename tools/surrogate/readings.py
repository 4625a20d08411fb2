"""Blind readings of the written dialogues: sheets for readers, and what their answers show.

A sheet has dialogues without plan, labels and seed, in the order of their names, which are
checksums of their texts. So a reader learns nothing from a name, and an answer to a text that was
changed later is recognised. Anchors (real chats, stitched dialogues) are mixed in from a file that
is not part of the project. The answers of a reader are kept in ``readings/SPLIT-NN-READER.jsonl``.

A sheet of hints has only the beginnings of dialogues, each up to its first alert, and asks for the
crisis type: whoever has seen the rest can't guess. Its answers are in files ``…-hints.jsonl``.
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

from cradle_extras.label_studio.study import plan_study
from cradle_lib import paths, strict_json
from cradle_lib.corpus.load import load_corpus
from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS, CRISIS_TYPES, LABELS, crisis_type, stage
from tools.surrogate.dialogue_files import SIZE, Row, Written, check_file
from tools.surrogate.plans import DIALOGUES, read_plans

READINGS: Final = DIALOGUES / "readings"
SPEAKERS: Final = {"U": "User", "L": "Listener", "-": "(continues)"}
GRADES: Final = ("coherence", "believability")
#: The annotation study of the test split: two teams, the senior, and the seed of the assignment.
TEAMS: Final = {"1": ("A", "B"), "2": ("C", "D")}
SENIOR: Final = "S"
SEED: Final = 2606

Rows = Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Text:
    """A text that is read: a written dialogue, its beginning, or an anchor.

    Attributes:
        name: Checksum of the rows.
        kind: ``written``, or the kind of an anchor.
        dialogue: Id of the written dialogue; empty for an anchor.
        rows: Speaker and text of each row.
    """

    name: str
    kind: str
    dialogue: str
    rows: Rows

    @classmethod
    def of(cls, rows: Iterable[Sequence[str]], kind: str, dialogue: str = "") -> Text:
        """Names a text by its rows."""
        kept = tuple((speaker, text) for speaker, text in rows)
        name = hashlib.sha256(json.dumps(kept).encode()).hexdigest()[:8]
        return cls(name, kind, dialogue, kept)

    def __str__(self) -> str:
        """Gives the text as it is on a sheet."""
        rows = (f"{at} {SPEAKERS[who]}: {text}" for at, (who, text) in enumerate(self.rows))
        return "\n".join((f"=== {self.name}", *rows))


def sheet_ids(split: str, number: int) -> list[str]:
    """Gives the dialogues of a sheet.

    A sheet of train or dev is a file. One of the test split is a third of what a team labels in a
    round of the annotation study: 0 to 2 are the first team's in the first round, 3 to 5 its second
    round, 6 to 11 the second team's.
    """
    if split != "test":
        plans = read_plans().values()
        return [
            plan.id for plan in plans if plan.split == split and plan.dialogue // SIZE == number
        ]
    study = plan_study(load_corpus("surrogate", "test"), TEAMS, senior=SENIOR, seed=SEED)
    team, part = list(TEAMS)[number // 6], number % 6
    chosen = [
        f"test-{int(item.dialogue[1:]):04}"
        for item in study.assignments
        if (item.annotator, item.round) == (TEAMS[team][0], part // 3 + 1)
    ]
    return chosen[part % 3 * SIZE :][:SIZE]


def sheet_texts(split: str, number: int, anchors: Path | None) -> list[Text]:
    """Gives the texts of a sheet, with one anchor of each kind for twenty dialogues."""
    found = written(split)
    texts = [_text(found[name]) for name in sheet_ids(split, number) if name in found]
    if not texts:
        raise CorpusError(f"no dialogue of sheet {number} of {split} is written")
    if anchors:
        kinds: dict[str, list[Text]] = {}
        for line in anchors.read_text(encoding="utf-8").splitlines():
            anchor = strict_json.loads(line)
            kinds.setdefault(anchor["kind"], []).append(Text.of(anchor["rows"], anchor["kind"]))
        each = max(1, len(texts) // 20)
        for same in kinds.values():
            start = number * each % len(same)
            texts += (same + same)[start : start + each]
    return sorted(texts, key=lambda text: text.name)


def hint_texts(split: str, number: int) -> list[Text]:
    """Gives the dialogues of a sheet up to the first alert whose event is confirmed later."""
    found = written(split)
    texts = []
    for dialogue in (found[name] for name in sheet_ids(split, number) if name in found):
        if hint := _hint(dialogue):
            texts.append(hint[0])
    return sorted(texts, key=lambda text: text.name)


def _hint(dialogue: Written) -> tuple[Text, str] | None:
    """Gives the text of a dialogue up to its first alert, and the crisis type confirmed later."""
    for at in range(len(dialogue.rows)):
        if event := _alerted(dialogue.rows, at):
            return _text(dialogue, at + 1), event
    return None


@cache
def written(split: str) -> Mapping[str, Written]:
    """Reads the dialogues of a split that are written so far, without faults, by id."""
    found: dict[str, Written] = {}
    for path in sorted(DIALOGUES.glob(f"{split}/*.txt")):
        dialogues, faults = check_file(path, partial=True)
        faulty = {fault.dialogue for fault in faults}
        found |= {one.id: one for one in dialogues if one.id not in faulty}
    return found


def text_names(split: str) -> dict[str, str]:
    """Gives the name (checksum) of the present text of each written dialogue of a split."""
    return {name: _text(dialogue).name for name, dialogue in written(split).items()}


def _text(dialogue: Written, end: int | None = None) -> Text:
    rows = [(row.speaker, row.text) for row in dialogue.rows[:end]]
    return Text.of(rows, "written", dialogue.id)


def collect(path: Path, texts: Sequence[Text], name: str, *, hints: bool = False) -> Path:
    """Checks the answers of a reader and keeps them.

    Args:
        path: One JSON object per line, as the sheet asks for.
        texts: The texts of the sheet.
        name: Name of the kept file, such as ``test-00-A``.
        hints: Whether it was a sheet of hints.

    Returns:
        The path of the kept answers.

    Raises:
        CorpusError: If an answer is missing, twice, or malformed.
    """
    asked = {text.name: text for text in texts}
    kept: dict[str, dict[str, Any]] = {}
    for at, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
        try:
            answer = strict_json.loads(line)
            text = asked[answer["id"]]
            if text.name in kept:
                raise ValueError("a second answer to the same dialogue")
            kept[text.name] = {
                "dialogue": text.dialogue or text.kind,
                "text": text.name,
                **(_checked_guess(answer) if hints else _checked(answer, text)),
            }
        except (ValueError, LookupError, TypeError, AttributeError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise CorpusError(f"line {at}: {problem}", path=paths.shown(path)) from None
    if missing := [name for name in asked if name not in kept]:
        raise CorpusError(f"no answer to {', '.join(missing)}", path=paths.shown(path))
    target = READINGS / f"{name}.jsonl"
    target.parent.mkdir(exist_ok=True)
    lines = (json.dumps(answer, ensure_ascii=False) + "\n" for _, answer in sorted(kept.items()))
    target.write_text("".join(lines), encoding="utf-8")
    return target


def _checked(answer: dict[str, Any], text: Text) -> dict[str, Any]:
    labels: dict[str, list[str]] = {}
    for row, given in answer["labels"].items():
        at = int(row)
        while text.rows[at][0] == "-":  # A continued row belongs to the one above.
            at -= 1
        if text.rows[at][0] != "U" or not given or {*given} - {*BITS}:
            raise ValueError(f"row {row} of {text.name}: {given} are not labels of a user row")
        labels[str(at)] = sorted({*labels.get(str(at), ()), *given})
    for grade in GRADES:
        if answer[grade] not in range(1, 6):
            raise ValueError(f"{grade} of {text.name} is {answer[grade]!r}, not 1 to 5")
    return {
        "labels": labels,
        **{grade: answer[grade] for grade in GRADES},
        "objection": answer.get("objection", ""),
    }


def _checked_guess(answer: dict[str, Any]) -> dict[str, Any]:
    if answer["guess"] not in (*CRISIS_TYPES, "?"):
        raise ValueError(f"{answer['guess']!r} is not a crisis type")
    return {"guess": answer["guess"]}


def report(files: Sequence[Path]) -> Iterator[str]:
    """Describes readings: grades, agreement with the plan, guesses, and what to write again.

    Readings of a text that was changed since count for the grades only.
    """
    lines = [line for path in files for line in path.read_text(encoding="utf-8").splitlines()]
    kept = [strict_json.loads(line) for line in lines]
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
        if dialogue and _text(dialogue).name == answer["text"]:
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
    if hint and hint[0].name == answer["text"]:
        yield answer["guess"] == hint[1]


def _dialogue(answer: Mapping[str, Any]) -> Written | None:
    """Finds the written dialogue of an answer; ``None`` for an anchor."""
    name = answer["dialogue"]
    return written(name.partition("-")[0]).get(name)


def _kind(answer: Mapping[str, Any]) -> str:
    return "written" if "-" in answer["dialogue"] else str(answer["dialogue"])


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
