"""Exports of Label Studio, read back in.

An export comes from people and from another program, so everything is checked: texts against the
corpus, tasks against the plan. An export with an error is refused completely.

Formats: Label Studio's ``JSON`` (a list of tasks with their annotations) and ``JSON-MIN`` (a
flat list of annotations), plain or gzipped.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from cradle_extras.errors import first_fault
from cradle_extras.label_studio.interface import CONTROL, OBJECT, title
from cradle_extras.label_studio.study import Study, read_json
from cradle_extras.label_studio.tasks import TaskData, authored
from cradle_lib import paths
from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.corpus.dialogue import Corpus, Dialogue
from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS, LABELS

_NAMES: Final = {title(label): label for label in LABELS} | {label: label for label in LABELS}
#: Those of the surrogate are stored as exports, one for each person and round, so that reading them
#: is the same work as reading one's own. They are simulated; ``tools/annotations`` made them.
SHIPPED: Final = paths.SURROGATE / "annotations"
_EXPORT: Final = (
    "Export the project as JSON or JSON-MIN, made of the tasks and the configuration that "
    "`cradle annotate export` wrote."
)
# Kinds of results without a label, beside the turns or on them: notes, arrows, grades, shapes.
# Unknown kinds are refused, and so are choices and taxonomies: what was chosen may be a label.
_UNLABELLED: Final = frozenset(
    {
        *("relation", "textarea", "rating", "number", "datetime", "pairwise", "ranker"),
        *("rectangle", "ellipse", "polygon", "keypoint", "brush", "bitmask", "magicwand"),
        *("vector", "videorectangle", "videovector"),
    }
)
SKIPPED: Final = "skipped annotations"
WITHOUT_LABEL: Final = "results without a label"
_Number = Annotated[int, Field(ge=0, lt=10**9)]


class _Region(BaseModel):
    """What is marked: a turn, from its start to its end, and what it was given."""

    start: _Number
    end: _Number
    text: Any = None
    paragraphlabels: list[str]


class _Result(BaseModel):
    from_name: Literal["label"]
    to_name: Literal["dialogue"]
    type: Literal["paragraphlabels"]
    value: _Region


def _labelled(result: Any) -> Any:
    """Gives ``None`` for a result of a kind that carries no label, any other as it is."""
    if not isinstance(result, dict) or str(result.get("type")) not in _UNLABELLED:
        return result
    value = result.get("value")
    labelled = isinstance(value, dict) and any(name.endswith("labels") for name in value)
    return result if labelled else None


class _Given(BaseModel):
    """One person's annotation of a task; ``None`` for each result that carries no label."""

    completed_by: Any = None
    task: int | None = None
    was_cancelled: bool | None = None
    result: list[Annotated[_Result | None, BeforeValidator(_labelled)]]


class _Task(BaseModel):
    id: int | str | None = None
    data: TaskData
    annotations: list[_Given]


def read_exports(
    files: Sequence[Path],
    study: Study,
    corpus: Corpus,
    users: Mapping[str, str] | None = None,
    ignored: Counter[str] | None = None,
) -> Annotations:
    """Reads exports of all projects of a study.

    As in Label Studio's own JSON-MIN, an annotation that was skipped does not count, and neither
    do drafts and predictions. Whoever skipped a task and submitted it has submitted it.

    Args:
        files: JSON or JSON-MIN exports, plain or gzipped (``.gz``).
        study: The plan that the tasks were exported with.
        corpus: The dialogues.
        users: For projects that several people share: Label Studio's user number or email,
            and the annotator's name in the plan.
        ignored: Takes the number of skipped annotations and of results that carry no label, such
            as relations and notes.

    Returns:
        The annotations, one for each assignment of the plan.

    Raises:
        CorpusError: If a file can't be read, a text differs from the corpus, a task or
            an annotation is doubled, missing, only skipped or not assigned, or a region is not
            one of the interface's. The message names the task, and the annotator if it is known.
    """
    study.check(corpus)
    wanted = {(item.dialogue, item.annotator): item for item in study.assignments}
    found: dict[tuple[str, str], tuple[Annotation, str]] = {}
    skipped: dict[tuple[str, str], str] = {}
    ignored = Counter() if ignored is None else ignored
    for path in files:
        for here, task in _tasks_in(path):
            dialogue = _dialogue_of(task.data, here, study, corpus)
            here = f"{here} (dialogue {dialogue.id})"
            for given in task.annotations:
                if given.was_cancelled:
                    ignored[SKIPPED] += 1
                    # Somebody outside the study may look at a task and skip it.
                    with suppress(CorpusError):
                        name = _annotator(
                            task.data.annotators, given.completed_by, users or {}, here
                        )
                        skipped[dialogue.id, name] = f"{here}, annotator {name}"
                    continue
                name = _annotator(task.data.annotators, given.completed_by, users or {}, here)
                place, key = f"{here}, annotator {name}", (dialogue.id, name)
                if given.task not in (None, task.id):
                    raise CorpusError(
                        f"{place}: the annotation is of task {given.task}. Export again."
                    )
                results = [result for result in given.result if result is not None]
                ignored[WITHOUT_LABEL] += len(given.result) - len(results)
                masks = _masks(results, place, dialogue)
                if key not in wanted:
                    raise CorpusError(f"{place}: not assigned to {name} in this study.")
                if key in found:
                    raise CorpusError(
                        f"{place}: {name} has annotated dialogue {dialogue.id} already "
                        f"({found[key][1]}). Keep one of the two annotations."
                    )
                plan = wanted[key]
                entry = Annotation(*key, plan.team, plan.round, plan.role, masks)
                found[key] = entry, place
    missing = [key for key in wanted if key not in found]
    for key in missing:
        if key in skipped:
            raise CorpusError(f"{skipped[key]}: skipped. Submit it, and export again.")
    if missing:
        dialogue_id, name = missing[0]
        raise CorpusError(
            f"dialogue {dialogue_id}: not annotated by {name}; {len(missing)} of {len(wanted)} "
            "annotations are missing. Submit these tasks, also where no turn needs a label, export "
            "again, and import all exports."
        )
    return Annotations.of(corpus, (entry for entry, _ in found.values()))


def _annotator(people: Sequence[str], user: Any, users: Mapping[str, str], here: str) -> str:
    if len(people) == 1:
        return people[0]
    if isinstance(user, Mapping):
        user = user.get("email") or user.get("id")
    user = str(user)[:80] if isinstance(user, int | str) else ""
    if user in users:
        return users[user]
    raise CorpusError(
        f"{here}: by user {user or 'unknown'}, who may be any of {', '.join(people)}. Say who it "
        f"is with `--user {user or 'ID'}=NAME`."
    )


def _tasks_in(path: Path) -> Iterator[tuple[str, _Task]]:
    content = read_json(path, _EXPORT)
    if not isinstance(content, list):
        raise CorpusError("expected a list of tasks", path=path, hint=_EXPORT)
    for position, item in enumerate(content):
        number = item.get("id") if isinstance(item, dict) else None
        known = isinstance(number, int | str)
        here = f"{path}, task {number!s:.40}" if known else f"{path}, item {position}"
        try:
            task = _Task.model_validate(_nested(item))
        except ValidationError as error:
            raise CorpusError(first_fault(error), path=here, hint=_EXPORT) from None
        yield here, task


def _nested(item: Any) -> Any:
    """Gives an item of JSON-MIN, which is flat, as JSON has it; an item of JSON as it is."""
    if not isinstance(item, dict) or "data" in item or "annotations" in item:
        return item
    marks = {"from_name": CONTROL, "to_name": OBJECT, "type": "paragraphlabels"}
    regions = item.get(CONTROL, [])
    if isinstance(regions, list):
        regions = [{**marks, "value": region} for region in regions]
    given = {"completed_by": item.get("annotator"), "result": regions}
    # JSON-MIN lists an untouched task like one that was submitted without labels.
    submitted = isinstance(item.get("annotation_id"), int)
    return {"id": item.get("id"), "data": item, "annotations": [given] if submitted else []}


def _dialogue_of(data: TaskData, here: str, study: Study, corpus: Corpus) -> Dialogue:
    who = f"annotator {' or '.join(data.annotators):.80}"
    if data.texts != study.texts:
        raise CorpusError(
            f"{here}, {who}: made for corpus {data.corpus!r:.80} with texts {data.texts!r:.80}; "
            f"this study is on {study.corpus} with texts {study.texts}. Name the right study."
        )
    name = data.dialogue_id
    if name not in corpus.by_id:
        raise CorpusError(f"{here}, {who}: dialogue {name!r:.80} is not in {study.corpus}.")
    dialogue = corpus.by_id[name]
    rows = zip_longest(data.turns, authored(dialogue))
    edited = next((turn for turn, (shown, said) in enumerate(rows) if shown != said), None)
    if edited is not None:
        raise CorpusError(
            f"{here} (dialogue {name}), {who}, turn {edited}: the text was edited, it is not the "
            "corpus' any more. Labels on an edited text can't be used: import the task again."
        )
    return dialogue


def _masks(results: Sequence[_Result], place: str, dialogue: Dialogue) -> tuple[int, ...]:
    masks = [0] * len(dialogue.turns)
    for region in (result.value for result in results):
        turn, where = region.start, f"{place}, turn {region.start}"
        if turn != region.end:
            raise CorpusError(
                f"{place}: a region runs over several turns, from turn {turn}. Label each turn "
                "by itself."
            )
        if turn >= len(masks):
            raise CorpusError(
                f"{place}: a region on turn {turn}, the dialogue has {len(masks)} turns."
            )
        _require_same_text(region.text, dialogue.turns[turn].text, where)
        if not region.paragraphlabels:
            raise CorpusError(
                f"{where}: a region without a label. Choose one or delete the region."
            )
        for name in region.paragraphlabels:
            if name not in _NAMES:
                raise CorpusError(f"{where}: {name!r:.80} is not one of the interface's labels.")
            masks[turn] |= BITS[_NAMES[name]]
    return tuple(masks)


def _require_same_text(marked: Any, text: str, place: str) -> None:
    """Refuses a region of another task: the marked text is not in the turn.

    Line breaks are left out of what a browser marks; a region is one complete turn, and one that
    was drawn by hand may be a part of it.
    """
    if marked is None:
        return
    own = "".join(text.split())
    found = "".join(marked.split()) if isinstance(marked, str) else ""
    if found not in own or (own and not found):
        raise CorpusError(
            f"{place}: a region with a text that the turn does not have. It belongs to another "
            "task: export again."
        )
