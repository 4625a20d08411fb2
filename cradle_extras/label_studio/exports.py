"""Reads annotations from exports of Label Studio.

Exports are untrusted input, so everything is checked: texts against the corpus, tasks against the
plan. An export with an error is refused completely.

The format is Label Studio's ``JSON``: a list of tasks with their annotations, plain or gzipped.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from itertools import zip_longest
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, BeforeValidator, Field, ValidationError

from cradle_extras.label_studio.interface import title
from cradle_extras.label_studio.study import Study, read_json
from cradle_extras.label_studio.tasks import TaskData, task_turns
from cradle_lib import paths
from cradle_lib.annotation.table import Annotation, Annotations
from cradle_lib.corpus.dialogue import Corpus, Dialogue
from cradle_lib.errors import CorpusError
from cradle_lib.labels import BITS, LABELS
from cradle_lib.validation import faults

_NAMES: Final = {title(label): label for label in LABELS} | {label: label for label in LABELS}
#: Exports of the surrogate's annotations, one for each annotator and round, made by
#: ``tools/annotations``. They are read in the same way as a user's exports.
SHIPPED: Final = paths.SURROGATE / "annotations"
_EXPORT: Final = (
    "Export the project as JSON, made of the tasks and the configuration that "
    "`cradle annotate export` wrote."
)
# Kinds of results without a label: relations between turns, notes, ratings. Other kinds, such as
# choices and taxonomies, are refused, because they may contain a label.
_UNLABELLED: Final = frozenset(
    {"relation", "textarea", "rating", "number", "datetime", "pairwise", "ranker"}
)
SKIPPED: Final = "skipped annotations"
WITHOUT_LABEL: Final = "results without a label"
NEWER_DRAFTS: Final = "drafts newer than the submitted annotation"
#: What is left out and counted; :func:`read_exports` counts doubtful accounts too.
IGNORED: Final = (SKIPPED, WITHOUT_LABEL, NEWER_DRAFTS)
_Number = Annotated[int, Field(ge=0, lt=10**9)]


class _Region(BaseModel):
    """A marked turn, from its start to its end, and its labels."""

    start: _Number
    end: _Number
    text: str
    paragraphlabels: list[str]


class _Result(BaseModel):
    from_name: Literal["label"]
    to_name: Literal["dialogue"]
    type: Literal["paragraphlabels"]
    value: _Region


def _labelled(result: Any) -> Any:
    """Gives ``None`` for a result of a kind without labels, any other unchanged."""
    kind = result.get("type") if isinstance(result, dict) else None
    return None if isinstance(kind, str) and kind in _UNLABELLED else result


class _TaskAnnotation(BaseModel):
    """One person's annotation of a task; ``None`` for each result without a label."""

    was_cancelled: bool | None = None
    completed_by: Any = None
    updated_at: Any = None
    result: list[Annotated[_Result | None, BeforeValidator(_labelled)]]


class _Task(BaseModel):
    id: int | str | None = None
    data: TaskData
    annotations: list[_TaskAnnotation]
    drafts: list[Any] | None = None


def read_exports(
    files: Sequence[Path],
    study: Study,
    corpus: Corpus,
    ignored: Counter[str] | None = None,
) -> Annotations:
    """Reads exports of all projects of a study.

    Skipped annotations, drafts and predictions are not used. A task that was both skipped and
    submitted counts as submitted.

    Args:
        files: JSON exports, plain or gzipped (``.gz``).
        study: The plan that the tasks were exported with.
        corpus: The dialogues.
        ignored: Counter to which the numbers of :data:`IGNORED` are added: skipped annotations,
            results without a label, such as relations and notes, and drafts that were saved after
            the annotation was submitted. Each account that submitted for several annotators, and
            each annotator with several accounts, is a further phrase with the number of its
            annotations: their agreement may compare a person with themselves.

    Returns:
        The annotations, one for each assignment of the plan.

    Raises:
        CorpusError: If a file can't be read, a text differs from the corpus, a task or an
            annotation is duplicate, missing, only skipped or not assigned, or a region was not
            made with the interface. The message names the task, and the annotator if known.
    """
    study.check(corpus)
    wanted = {(item.dialogue, item.annotator): item for item in study.assignments}
    found: dict[tuple[str, str], tuple[Annotation, str]] = {}
    ignored = Counter() if ignored is None else ignored
    submitted: Counter[tuple[str, str]] = Counter()
    only_drafts = 0
    for path in files:
        for here, task in _tasks_in(path):
            dialogue = _dialogue_of(task.data, here, study, corpus)
            here = f"{here} (dialogue {dialogue.id})"
            last = [given for given in task.annotations if not given.was_cancelled][-1:]
            only_drafts += bool(task.drafts) and not last
            ignored[NEWER_DRAFTS] += sum(
                _is_newer(draft, given) for given in last for draft in task.drafts or ()
            )
            for given in task.annotations:
                if given.was_cancelled:
                    ignored[SKIPPED] += 1
                    continue
                (name,) = task.data.annotators
                place, key = f"{here}, annotator {name}", (dialogue.id, name)
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
                if (account := _account(given.completed_by)) is not None:
                    submitted[account, name] += 1
                plan = wanted[key]
                entry = Annotation(*key, plan.team, plan.round, plan.role, masks)
                found[key] = entry, place
    if missing := [key for key in wanted if key not in found]:
        dialogue_id, name = missing[0]
        raise CorpusError(
            f"dialogue {dialogue_id}: not annotated by {name}; {len(missing)} of {len(wanted)} "
            f"annotations are missing, and {ignored[SKIPPED]} tasks were skipped, {only_drafts} "
            "have only a draft. Submit these tasks, also if no turn needs a label, export again, "
            "and import all exports."
        )
    ignored.update(_doubtful_accounts(submitted))
    return Annotations.of(corpus, (entry for entry, _ in found.values()))


def _account(completed_by: Any) -> str | None:
    """Gives the id of the account, which some exports have in an object with its address."""
    if isinstance(completed_by, dict):
        completed_by = completed_by.get("id", completed_by.get("email"))
    return None if completed_by is None else str(completed_by)[:80]


def _doubtful_accounts(submitted: Mapping[tuple[str, str], int]) -> Counter[str]:
    """Describes accounts of several annotators, and annotators with several accounts."""
    people, accounts = defaultdict(set), defaultdict(set)
    for account, name in submitted:
        people[account].add(name)
        accounts[name].add(account)
    notes: Counter[str] = Counter()
    for (account, name), count in submitted.items():
        if len(people[account]) > 1:
            names = ", ".join(sorted(people[account]))
            notes[
                f"annotations by account {account}, which submitted for {names}: their agreement "
                "may compare a person with themselves"
            ] += count
        if len(accounts[name]) > 1:
            ids = ", ".join(sorted(accounts[name]))
            notes[f"annotations of {name}, from several accounts: {ids}"] += count
    return notes


def _is_newer(draft: Any, annotation: _TaskAnnotation) -> bool:
    """Whether a draft was saved after an annotation was submitted, or its time is unknown."""
    saved: Any = draft.get("updated_at") if isinstance(draft, dict) else None
    try:
        return datetime.fromisoformat(saved) > datetime.fromisoformat(annotation.updated_at)
    except (TypeError, ValueError):
        return True


def _tasks_in(path: Path) -> Iterator[tuple[str, _Task]]:
    content = read_json(path, _EXPORT)
    if not isinstance(content, list):
        raise CorpusError("expected a list of tasks", path=path, hint=_EXPORT)
    for position, item in enumerate(content):
        number = item.get("id") if isinstance(item, dict) else None
        known = isinstance(number, int | str)
        here = f"{path}, task {number!s:.40}" if known else f"{path}, item {position}"
        try:
            task = _Task.model_validate(item)
        except ValidationError as error:
            raise CorpusError(faults(error, _Task, quoted=True), path=here, hint=_EXPORT) from None
        yield here, task


def _dialogue_of(data: TaskData, here: str, study: Study, corpus: Corpus) -> Dialogue:
    who = f"annotator {data.annotators[0]:.80}"
    if data.texts != study.texts:
        raise CorpusError(
            f"{here}, {who}: made for corpus {data.corpus!r:.80} with texts {data.texts!r:.80}; "
            f"this study is on {study.corpus} with texts {study.texts}. Name the right study."
        )
    name = data.dialogue_id
    if name not in corpus.by_id:
        raise CorpusError(f"{here}, {who}: dialogue {name!r:.80} is not in {study.corpus}.")
    dialogue = corpus.by_id[name]
    rows = zip_longest(data.turns, task_turns(dialogue))
    edited = next((turn for turn, (shown, said) in enumerate(rows) if shown != said), None)
    if edited is not None:
        raise CorpusError(
            f"{here} (dialogue {name}), {who}, turn {edited}: the text was edited and differs from "
            "the corpus. Labels on an edited text can't be used: import the task again."
        )
    return dialogue


def _masks(results: Sequence[_Result], place: str, dialogue: Dialogue) -> tuple[int, ...]:
    masks = [0] * len(dialogue.turns)
    for region in (result.value for result in results):
        turn, where = region.start, f"{place}, turn {region.start}"
        if turn != region.end:
            raise CorpusError(f"{where}: a region spans several turns. Label each turn separately.")
        if turn >= len(masks):
            raise CorpusError(f"{where}: the dialogue has {len(masks)} turns. Export again.")
        # Spaces are ignored, because browsers drop line breaks from a selection. A region is one
        # complete turn, or a part of it if it was drawn by hand.
        own, marked = "".join(dialogue.turns[turn].text.split()), "".join(region.text.split())
        if marked not in own or (own and not marked):
            raise CorpusError(
                f"{where}: the turn does not contain the text of a region. The region belongs to "
                "another task: export again."
            )
        if not region.paragraphlabels or not _NAMES.keys() >= {*region.paragraphlabels}:
            raise CorpusError(
                f"{where}: {region.paragraphlabels!r:.80} are not labels of the interface. Choose "
                "a label or delete the region."
            )
        for name in region.paragraphlabels:
            masks[turn] |= BITS[_NAMES[name]]
    return tuple(masks)
