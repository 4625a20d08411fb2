"""Tables of scores, published values beside what was computed: Tables 4, 5, 11 and Sec 6.1.

Rows that were computed over different dialogues stand under different headings, and only
rows under the same heading are compared for the best value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from cradle_lib.detection.predictions import Predictions
from cradle_lib.detection.registry import load_registry
from cradle_lib.labels import LABELS, short
from cradle_lib.published import published
from cradle_lib.reporting.published import (
    SYSTEMS,
    published_cell,
    published_systems,
    reference_cell,
)
from cradle_lib.reporting.runs import comparable, is_whole
from cradle_lib.reporting.tables import (
    MISSING,
    MISSING_NOTE,
    UNDEFINED,
    UNDEFINED_NOTE,
    Cell,
    Column,
    Row,
    Table,
    count,
    mark_best,
    percent,
    text,
)
from cradle_lib.scoring.conventions import Level
from cradle_lib.scoring.evaluate import Evaluation
from cradle_lib.scoring.gaps import NEEDED, gap
from cradle_lib.scoring.scores import OVERALL

_LEVELS: Final[Mapping[Level, str]] = {
    "turn": "Turn level (the paper's Table 4, left)",
    "dialogue": "Dialogue level (the paper's Table 4, right)",
    "confirm": "Dialogue level, confirms only (the paper's Table 5)",
}
_UNREAD_NOTE: Final = "Unread: answers that were unparsed, refused or failed."
_PUBLISHED: Final = "Published by the paper, on the real test split"


def scores_table(runs: Sequence[Predictions], evaluations: Sequence[Evaluation]) -> Table:
    """Makes Table 4 or 5: all scores of all models at one level.

    Args:
        runs: What was scored.
        evaluations: Their evaluations, all at the same level, in the same order.

    Returns:
        One row for each run in percent, with intervals, under one heading for each set of
        dialogues; right below a whole run what is published for the same system; then
        the paper's systems that were not run. Values of the paper are never marked as best.
        Where no label of the level is gold, precision, recall and F1 are not defined.

    Raises:
        ValueError: If there are not as many evaluations as runs, or they mix levels.
    """
    if len({evaluation.counts.level for evaluation in evaluations}) != 1:
        raise ValueError("a table of scores needs evaluations of one level")
    level = evaluations[0].counts.level
    # The paper gives exact match for turns only.
    names = OVERALL if level == "turn" else OVERALL[1:]
    rows: list[Row] = []
    for heading, group in comparable(runs, evaluations):
        block = [
            Row(
                (
                    text(run.record.name),
                    *(_score(evaluation, name) for name in names),
                    _unread(evaluation),
                ),
                group=heading,
            )
            for run, evaluation in group
        ]
        for (run, _), row in zip(group, mark_best(block, range(1, len(names) + 1)), strict=True):
            rows.append(row)
            if is_whole(run):
                rows += _stated_rows(run, level, names, heading)
    shown = {_published_key(run) for run in runs}
    rows += [
        _stated_row(system, level, names, _PUBLISHED)
        for system in published_systems(f"result.{level}.")
        if system not in shown
    ]
    return Table(
        f"{_LEVELS[level]}: scores in percent with 95 % intervals.",
        (
            Column("Model", "text"),
            *(Column(_title(name)) for name in names),
            Column("Unread"),
        ),
        tuple(rows),
        (
            *_notes(evaluations),
            _UNREAD_NOTE,
            MISSING_NOTE,
            *_never_gold(runs, evaluations),
            *_gain(level),
        ),
    )


def per_label_table(runs: Sequence[Predictions], evaluations: Sequence[Evaluation]) -> Table:
    """Makes Table 11: the F1 of each label.

    Args:
        runs: What was scored.
        evaluations: Their evaluations at turn level, in the same order.

    Returns:
        One row for each label and one column for each run in percent. The best of the runs
        over the most dialogues is marked. A label that never is gold has no F1.
    """
    most = max(evaluations, key=lambda evaluation: evaluation.signature.dialogues)
    ranked = [e.signature.corpus == most.signature.corpus for e in evaluations]
    systems = published_systems("result.per_label_f1.")
    rows = []
    for label in LABELS:
        cells = [_label_score(evaluation, label) for evaluation in evaluations]
        # The models stand side by side here, so the contest is within the row.
        rivals = [Row((cell,)) for cell, rival in zip(cells, ranked, strict=True) if rival]
        marked = iter(mark_best(rivals, [0]))
        cells = [next(marked).cells[0] if r else c for c, r in zip(cells, ranked, strict=True)]
        stated = [published_cell(f"result.per_label_f1.{label}.{s}", 1) for s in systems]
        rows.append(Row((text(short(label)), count(most.support[label]), *cells, *stated)))
    titles = [
        run.record.name if whole else f"{run.record.name} ({len(run.corpus)} dialogues)"
        for run, whole in zip(runs, ranked, strict=True)
    ]
    return Table(
        "F1 of each label in percent with 95 % intervals, turn level (the paper's Table 11).",
        (
            Column("Label", "text"),
            Column("Gold"),
            *map(Column, titles),
            *(Column(f"Published: {SYSTEMS[system]}", "published") for system in systems),
        ),
        tuple(rows),
        (*_notes(evaluations), MISSING_NOTE, UNDEFINED_NOTE),
    )


def outcome_table(runs: Sequence[Predictions]) -> Table:
    """Shows what became of the questions to each model, the four outcomes never merged."""
    kinds = list(runs[0].outcome_counts)
    rows = [
        Row(
            (
                text(run.record.name),
                count(len(run.corpus)),
                count(len(run.masks)),
                *(count(run.outcome_counts[kind]) for kind in kinds),
            )
        )
        for run in runs
    ]
    titles = ("Dialogues", "User turns", *(str(kind) for kind in kinds))
    return Table(
        "Outcomes: an answer that is not ok tags nothing, and is never taken for a none.",
        (Column("Model", "text"), *map(Column, titles)),
        tuple(rows),
    )


def record_table(run: Predictions) -> Table:
    """Shows the record of a run: everything that is needed to trust or to repeat it."""
    record = run.record
    fields = record.model_dump(exclude={"packages", "dialogues", "decoding"})
    packages = ", ".join(f"{name} {version}" for name, version in record.packages.items())
    decoding = ", ".join(f"{name} {value}" for name, value in record.decoding.items())
    values = {
        **{name.replace("_", " "): _plain(value) for name, value in fields.items()},
        "decoding": decoding or MISSING,
        "dialogues": "all" if record.dialogues is None else f"{len(record.dialogues)} chosen",
        "packages": packages or MISSING,
        "identity": record.identity,
    }
    return Table(
        f"Record of the run of {record.name} over {record.corpus}.",
        (Column("Field", "text"), Column("Value", "text")),
        tuple(Row((text(name), text(value))) for name, value in values.items()),
    )


def _score(evaluation: Evaluation, name: str, label: str | None = None) -> Cell:
    if name not in ("exact_match", "jaccard") and not any(evaluation.support.values()):
        return percent(math.nan)
    estimate = evaluation.estimate(name, label)
    if estimate.low is None or estimate.high is None:
        return percent(estimate.value)
    return percent(estimate.value, (estimate.low, estimate.high))


def _label_score(evaluation: Evaluation, label: str) -> Cell:
    if not evaluation.support[label]:
        return percent(math.nan)
    return _score(evaluation, "f1", label)


def _unread(evaluation: Evaluation) -> Cell:
    unread = sum(n for outcome, n in evaluation.outcomes.items() if outcome != "ok")
    return count(unread)


def _published_key(run: Predictions) -> str | None:
    model = load_registry().get(run.record.model)
    return model.published if model else None


def _stated_rows(run: Predictions, level: Level, names: Sequence[str], heading: str) -> list[Row]:
    key = _published_key(run)
    if key is not None:
        return [_stated_row(key, level, names, heading)]
    cells = [reference_cell(run.record.model, level, name) for name in names]
    if all(cell.text == MISSING for cell in cells):
        return []
    title = text(f"{run.record.name}: measured by others on the real test split")
    return [Row((title, *cells, Cell(MISSING)), group=heading, published=True)]


def _stated_row(system: str, level: Level, names: Sequence[str], heading: str) -> Row:
    cells = [published_cell(f"result.{level}.{name}.{system}", 2) for name in names]
    name = SYSTEMS.get(system, system)
    title = name if heading == _PUBLISHED else f"{name}: published"
    return Row((text(title), *cells, Cell(MISSING)), group=heading, published=True)


def _notes(evaluations: Sequence[Evaluation]) -> list[str]:
    unique = {str(e.signature): e.signature for e in evaluations}
    lines = [
        f"Signature for {signature.dialogues:,} dialogues: `{line}`"
        for line, signature in unique.items()
    ]
    return [*lines, f"The first one in words: {next(iter(unique.values())).long()}."]


def _never_gold(runs: Sequence[Predictions], evaluations: Sequence[Evaluation]) -> tuple[str, ...]:
    """Says of the largest set of dialogues what its missing labels do to the scores."""
    run, most = max(zip(runs, evaluations, strict=True), key=lambda pair: len(pair[0].corpus))
    if why := gap(run.corpus, NEEDED[most.counts.level]):
        return (f"{UNDEFINED} {why}: precision, recall and F1 are not defined.",)
    absent = sum(not support for support in most.support.values())
    if not absent or most.signature.zero_division:
        return ()
    return (
        f"{absent} of the {len(most.support)} labels are never gold in {run.corpus.name}: each "
        "counts as 0 in macro scores.",
    )


def _gain(level: Level) -> tuple[str, ...]:
    gain = published(f"result.{level}.micro_recall_gain.cradle-qwen3-32b")
    if gain is None:
        return ()
    return (f"The paper: fine-tuning Qwen3-32B raises micro recall by {gain:.2f} points.",)


def _title(score: str) -> str:
    known = {"exact_match": "Exact match", "jaccard": "Jaccard"}
    return known.get(score) or score.capitalize().replace("_", " ").replace("f1", "F1")


def _plain(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    return MISSING if value is None else str(value)
