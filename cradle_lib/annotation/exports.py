"""Exports of Label Studio, read back in.

Everything in an export comes from people and from another program, so nothing of it is
believed: every text is compared with the corpus, every task with the plan. An export is read
as a whole or not at all.

Formats: Label Studio's ``JSON`` (a list of tasks with their annotations) and ``JSON-MIN`` (a
flat list of annotations), plain or gzipped.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cradle_lib import strict_json
from cradle_lib.annotation.interface import CONTROL, OBJECT, title
from cradle_lib.annotation.study import Study
from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.annotation.tasks import FIELDS, authored
from cradle_lib.corpus.dialogue import Corpus, Dialogue
from cradle_lib.errors import AnnotationError, compose
from cradle_lib.files import read_bounded
from cradle_lib.labels import BITS, LABELS

_NAMES: Final = {title(label): label for label in LABELS} | {label: label for label in LABELS}
_LARGEST: Final = 1 << 27
_EXPORT: Final = "Export the project as JSON or JSON-MIN."


@dataclass(frozen=True, slots=True)
class _Found:
    """One annotation in an export, not yet checked against the plan."""

    place: str
    dialogue: Dialogue
    annotators: tuple[str, ...]
    user: str
    masks: tuple[int, ...]


def read_exports(
    files: Sequence[Path], study: Study, corpus: Corpus, users: Mapping[str, str] | None = None
) -> Annotations:
    """Reads exports of all projects of a study.

    Args:
        files: JSON or JSON-MIN exports, plain or gzipped (``.gz``).
        study: The plan that the tasks were exported with.
        corpus: The dialogues.
        users: For projects that several people share: Label Studio's user number or email,
            and the annotator's name in the plan.

    Returns:
        The annotations, one for each assignment of the plan.

    Raises:
        AnnotationError: If a file can't be read, a text differs from the corpus, a task or
            an annotation is doubled, missing, skipped or not assigned, or a region is not
            one of the interface's. The message names the task and the annotator.
    """
    study.check(corpus)
    wanted = {(item.dialogue, item.annotator): item for item in study.assignments}
    found: dict[tuple[str, str], tuple[Annotation, str]] = {}
    for path in files:
        for item in _annotations_in(path, study, corpus):
            name = _annotator(item, users or {})
            key = item.dialogue.id, name
            if key not in wanted:
                raise AnnotationError(f"{item.place}: not assigned to {name} in this study.")
            if key in found:
                raise AnnotationError(
                    f"{item.place}: {name} has annotated dialogue {key[0]} already "
                    f"({found[key][1]}). Keep one of the two annotations."
                )
            plan = wanted[key]
            entry = Annotation(key[0], name, plan.team, plan.round, plan.role, item.masks)
            found[key] = entry, item.place
    missing = [key for key in wanted if key not in found]
    if missing:
        dialogue, name = missing[0]
        raise AnnotationError(
            f"dialogue {dialogue}: not annotated by {name}; {len(missing)} of {len(wanted)} "
            "annotations are missing. Submit these tasks, export again, and import all exports."
        )
    return Annotations.of(corpus, (entry for entry, _ in found.values()))


def _annotator(found: _Found, users: Mapping[str, str]) -> str:
    if len(found.annotators) == 1:
        return found.annotators[0]
    if found.user in users:
        return users[found.user]
    raise AnnotationError(
        f"{found.place}: by user {found.user or 'unknown'}, who may be any of "
        f"{', '.join(found.annotators)}. Say who it is with `--user {found.user or 'ID'}=NAME`."
    )


def _annotations_in(path: Path, study: Study, corpus: Corpus) -> Iterator[_Found]:
    content = _load(path)
    if not isinstance(content, list):
        raise AnnotationError(compose("expected a list of tasks", path=path, hint=_EXPORT))
    by_id = {dialogue.id: dialogue for dialogue in corpus}
    seen: set[int | str] = set()
    for position, task in enumerate(content):
        here = f"{path}, item {position}"
        task = _mapping(task, here)
        number = task.get("id")
        number = number if isinstance(number, int | str) else f"at {position}"
        here = f"{path}, task {number!s:.40}"
        if "data" in task or "annotations" in task:
            data = _mapping(task.get("data"), f"{here}: data")
            dialogue, people = _checked(data, here, study, by_id)
            if number in seen:
                raise AnnotationError(
                    f"{here} (dialogue {dialogue.id}), annotator {' or '.join(people)}: the task "
                    "is in the export twice. Export again."
                )
            seen.add(number)
            yield from _of_task(task, here, dialogue, people)
        else:
            dialogue, people = _checked(task, here, study, by_id)
            user = _user(task.get("annotator"))
            place = f"{here} (dialogue {dialogue.id}), annotator {_who(people, user)}"
            if not isinstance(task.get("annotation_id"), int):
                # JSON-MIN lists an untouched task like one that was submitted without labels.
                raise _untouched(here, dialogue, people)
            values = _sequence(task.get(CONTROL, []), place)
            masks = _masks(values, place, dialogue)
            yield _Found(place, dialogue, people, user, masks)


def _of_task(
    task: Mapping[str, Any], here: str, dialogue: Dialogue, people: tuple[str, ...]
) -> Iterator[_Found]:
    annotations = _sequence(task.get("annotations"), f"{here}: annotations")
    if not annotations:
        raise _untouched(here, dialogue, people)
    for item in annotations:
        annotation = _mapping(item, f"{here}: annotations")
        user = _user(annotation.get("completed_by"))
        place = f"{here} (dialogue {dialogue.id}), annotator {_who(people, user)}"
        if not isinstance(annotation.get("task"), int | None) or (
            annotation.get("task", task.get("id")) != task.get("id")
        ):
            raise AnnotationError(
                f"{place}: the annotation is of task {annotation['task']!r:.40}. Export again."
            )
        if annotation.get("was_cancelled") not in (False, None):
            raise AnnotationError(f"{place}: skipped. Submit it, and export again.")
        results = _sequence(annotation.get("result"), f"{place}: result")
        values = [_value(_mapping(result, place), place) for result in results]
        masks = _masks(values, place, dialogue)
        yield _Found(place, dialogue, people, user, masks)


def _untouched(here: str, dialogue: Dialogue, people: tuple[str, ...]) -> AnnotationError:
    return AnnotationError(
        f"{here} (dialogue {dialogue.id}): not annotated by {' or '.join(people)}. "
        "Submit it, also if no turn needs a label, and export again."
    )


def _checked(
    data: Mapping[str, Any], here: str, study: Study, by_id: Mapping[str, Dialogue]
) -> tuple[Dialogue, tuple[str, ...]]:
    missing = [name for name in FIELDS if name not in data]
    if missing:
        raise AnnotationError(
            f"{here}: {', '.join(missing)} is missing from the task's data. Import tasks that "
            "`cradle annotate export` wrote."
        )
    people = _sequence(data["annotators"], f"{here}: annotators")
    if not people or not all(isinstance(person, str) and person for person in people):
        raise AnnotationError(f"{here}: annotators is {people!r:.80}, expected names.")
    who = f"annotator {' or '.join(people):.80}"
    if data["texts"] != study.texts:
        raise AnnotationError(
            f"{here}, {who}: made for corpus {data['corpus']!r:.80} with texts "
            f"{data['texts']!r:.80}; this study is on {study.corpus} with texts {study.texts}. "
            "Name the right study."
        )
    name = data["dialogue_id"]
    dialogue = by_id.get(name) if isinstance(name, str) else None
    if dialogue is None:
        raise AnnotationError(f"{here}, {who}: dialogue {name!r:.80} is not in {study.corpus}.")
    shown, expected = data["turns"], authored(dialogue)
    if shown != expected:
        turn = next(
            (
                number
                for number, (one, other) in enumerate(zip(_safe(shown), expected, strict=False))
                if one != other
            ),
            min(len(_safe(shown)), len(expected)),
        )
        raise AnnotationError(
            f"{here} (dialogue {name}), {who}, turn {turn}: the text was edited, it is not the "
            "corpus' any more. Labels on an edited text can't be used: import the task again."
        )
    return dialogue, tuple(people)


def _safe(turns: Any) -> list[Any]:
    return turns if isinstance(turns, list) else []


def _masks(regions: Sequence[Any], place: str, dialogue: Dialogue) -> tuple[int, ...]:
    masks = [0] * len(dialogue.turns)
    for region in regions:
        value = _mapping(region, place)
        turn = _turn(value.get("start"), place)
        if turn != _turn(value.get("end"), place):
            raise AnnotationError(
                f"{place}: a region runs over several turns, from turn {turn}. Label each turn "
                "by itself."
            )
        if turn >= len(masks):
            raise AnnotationError(
                f"{place}: a region on turn {turn}, the dialogue has {len(masks)} turns."
            )
        _require_same_text(value.get("text"), dialogue.turns[turn].text, f"{place}, turn {turn}")
        names = _sequence(value.get("paragraphlabels"), f"{place}, turn {turn}: labels")
        if not names:
            raise AnnotationError(
                f"{place}, turn {turn}: a region without a label. Choose one or delete the region."
            )
        for name in names:
            if not isinstance(name, str) or name not in _NAMES:
                raise AnnotationError(
                    f"{place}, turn {turn}: {name!r:.80} is not one of the interface's labels."
                )
            masks[turn] |= BITS[_NAMES[name]]
    return tuple(masks)


def _require_same_text(marked: Any, text: str, place: str) -> None:
    """Refuses a region of another task: what it marks is not what is said in the turn.

    Line breaks are left out of what a browser marks; a region is a whole turn, and one that
    was drawn by hand may be a part of it.
    """
    if marked is None:
        return
    own = "".join(text.split())
    found = "".join(marked.split()) if isinstance(marked, str) else ""
    if found not in own or (own and not found):
        raise AnnotationError(
            f"{place}: a region with a text that the turn does not have. It belongs to another "
            "task: export again."
        )


def _value(result: Mapping[str, Any], place: str) -> Any:
    expected = {"from_name": CONTROL, "to_name": OBJECT, "type": "paragraphlabels"}
    for key, wanted in expected.items():
        if result.get(key) != wanted:
            raise AnnotationError(
                f"{place}: a result with {key} {result.get(key)!r:.80}, expected {wanted!r}. Use "
                "the configuration that `cradle annotate export` wrote."
            )
    return result.get("value")


def _turn(value: Any, place: str) -> int:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) < 9:
        return int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 0:
        return value
    raise AnnotationError(f"{place}: a region on turn {value!r:.80}, expected a number from 0.")


def _user(value: Any) -> str:
    if isinstance(value, Mapping):
        value = value.get("email") or value.get("id")
    return str(value)[:80] if isinstance(value, int | str) and not isinstance(value, bool) else ""


def _who(people: tuple[str, ...], user: str) -> str:
    return people[0] if len(people) == 1 else f"user {user or 'unknown'}"


def _mapping(value: Any, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise AnnotationError(f"{place}: found {value!r:.80}, expected an object. {_EXPORT}")
    return value


def _sequence(value: Any, place: str) -> Sequence[Any]:
    if not isinstance(value, list):
        raise AnnotationError(f"{place}: found {value!r:.80}, expected a list. {_EXPORT}")
    return value


def _load(path: Path) -> Any:
    try:
        raw = read_bounded(path, _LARGEST)
        if path.suffix == ".gz":
            raw = _unzipped(raw)
        return strict_json.loads(raw)
    except FileNotFoundError:
        raise AnnotationError(compose("no such file", path=path, hint=_EXPORT)) from None
    except (OSError, EOFError, zlib.error) as error:
        raise AnnotationError(compose(f"can't be read ({error})", path=path)) from None
    except ValueError as error:
        first = str(error).splitlines()[0][:120]
        raise AnnotationError(compose(f"not JSON ({first})", path=path, hint=_EXPORT)) from None


def _unzipped(raw: bytes) -> bytes:
    # A few kilobytes can unpack to more than the machine holds.
    stream = zlib.decompressobj(wbits=31)
    text = stream.decompress(raw, _LARGEST)
    if not stream.eof:
        raise EOFError("the gzip stream is cut off or unpacks to more than 128 MB")
    return text
