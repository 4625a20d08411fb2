"""The report of one run: every analysis as a table, as JSON with a schema.

The tables are the data frames of the analyses, row by row, with their columns. The schema is that
of :class:`Report`; ``report_schema()`` gives it. A report holds no text of any dialogue and no
answer, so that it may be published where a corpus may not.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

import pandas as pd
from pydantic import BaseModel, ConfigDict, Field

from cradle_lib.formatting import slug
from cradle_lib.record import Record
from cradle_lib.scoring.core.conventions import LEVELS, Conventions, Level
from cradle_lib.scoring.core.evaluate import Evaluation, evaluate
from cradle_lib.scoring.errors.stage_orders import stage_orders
from cradle_lib.scoring.errors.taxonomy import Category, pair_counts
from cradle_lib.scoring.robustness.sensitivity import VARIANTS, Variant, sensitivity
from cradle_lib.scoring.robustness.subgroups import By, subgroups
from cradle_lib.scoring.timing.alarm_burden import alarm_burden
from cradle_lib.scoring.timing.timing import timing
from cradle_lib.statistics.bootstrap import DRAWS

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

FORMAT: Final = "cradle-report/2"
# What has no end, such as the delay of what is never tagged, is not what is undefined.
Value = Annotated[float, Field(allow_inf_nan=False)] | Literal["inf", "-inf"] | None


class _Row(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class _Estimate(_Row):
    """A number with its 95 % interval; ``None`` for what is undefined or was not computed."""

    value: Value
    low: Value
    high: Value
    signature: str


class ScoreRow(_Estimate):
    """A score at one level; see :meth:`.Evaluation.to_frame`."""

    level: Level
    unusable: int
    label: str | None
    score: str
    support: int | None
    tp: int | None
    fp: int | None
    fn: int | None


class TimingRow(_Estimate):
    """A number about timing; see :func:`.timing`."""

    view: str
    measure: str
    scope: str
    turns: Value
    unit: str
    support: int


class AlarmRow(_Estimate):
    """A metric of the alarm burden; see :func:`.alarm_burden`."""

    measure: str
    unit: str
    count: int
    of: int


class ErrorRow(_Row):
    """How often a gold label met a tag, at turn level; see :func:`.pair_counts`."""

    gold: str
    tagged: str
    category: Category | None
    count: int


class OrderRow(_Row):
    """Dialogues by the order of their stages; see :func:`.stage_orders`."""

    gold: str
    tagged: str
    dialogues: int
    value: int


class SubgroupRow(_Estimate):
    """A turn-level score of a part of the corpus; see :func:`.subgroups`."""

    by: By
    part: str
    dialogues: int
    units: int
    support: int
    score: str


class SensitivityRow(_Row):
    """A turn-level score under another convention; see :func:`.sensitivity`."""

    convention: str
    score: str
    value: Value
    change: Value


class Report(_Row):
    """Everything that is known about one run's tags.

    Attributes:
        format: Name and version of this format.
        record: The record of the run.
        corpus: Name of the corpus, or of the part of it that was scored.
        over: Over which dialogues the run was, as a heading.
        dialogues: How many these are.
        synthetic: Whether it is the project's own surrogate, on which a score says nothing
            about a model.
        turns: User turns that were scored.
        of_turns: User turns of the whole corpus.
        outcomes: How many answers were ``ok``, ``unparsed``, ``refused`` and ``failed``.
        cleaned: How many of the ``ok`` answers were not written as the prompt asks; 0 in reports of
            older versions.
        scores: Scores at all levels.
        timing: When, not only what.
        alarms: Alarm burden.
        errors: Pairs of gold label and tag.
        stage_orders: Alert before confirm, or not.
        subgroups: Scores of parts of the corpus.
        sensitivity: Scores under other conventions; where the report's own are not the defaults,
            they come first.
    """

    format: Literal["cradle-report/2"]
    record: Record
    corpus: str
    over: str
    dialogues: int
    synthetic: bool
    turns: int
    of_turns: int
    outcomes: dict[str, int]
    cleaned: int = 0
    scores: list[ScoreRow]
    timing: list[TimingRow]
    alarms: list[AlarmRow]
    errors: list[ErrorRow]
    stage_orders: list[OrderRow]
    subgroups: list[SubgroupRow]
    sensitivity: list[SensitivityRow]

    def to_json(self) -> str:
        """Writes strict JSON, with the keys in the order of the schema."""
        return json.dumps(self.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"


def json_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Makes a frame of numbers, texts and categories ready for strict JSON, row by row.

    ``None`` stands for what is missing or undefined, ``"inf"`` and ``"-inf"`` for what has no end.
    """
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [
        {
            str(name): str(value) if isinstance(value, float) and math.isinf(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def level_scores(results: Mapping[Level, Evaluation]) -> dict[str, dict[str, Any]]:
    """Makes a run's evaluations at each level ready for strict JSON."""
    return {
        level: {
            "signature": str(found.signature),
            "turns": found.turns,
            "of_turns": found.of_turns,
            "outcomes": found.outcomes,
            "cleaned": found.cleaned,
            "scores": json_rows(found.to_frame()),
        }
        for level, found in results.items()
    }


def report(
    predictions: Predictions,
    *,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Report:
    """Scores a run in every way there is; options as for :func:`.evaluate`.

    Raises:
        ScoringError: If the conventions leave nothing to score.
    """
    run, chosen = predictions, conventions or Conventions()
    options: dict[str, Any] = {"conventions": chosen, "draws": draws, "seed": seed}
    own = () if chosen == Conventions() else (Variant("As in this report", chosen),)
    scored = [evaluate(run, level=level, **options) for level in LEVELS]
    tables = {
        "scores": pd.concat([each.to_frame() for each in scored]),
        "timing": timing(run, **options),
        "alarms": alarm_burden(run, **options),
        "errors": pair_counts(run, chosen),
        "stage_orders": stage_orders(run, chosen),
        "subgroups": pd.concat([subgroups(run, by, **options) for by in get_args(By)]),
        "sensitivity": sensitivity([run], variants=(*own, *VARIANTS)),
    }
    columns = {
        name: list(get_args(Report.model_fields[name].annotation)[0].model_fields)
        for name in tables
    }
    return Report.model_validate(
        {
            "format": FORMAT,
            "record": run.record.model_dump(),
            "corpus": run.corpus.name,
            "over": run.over,
            "dialogues": len(run.corpus),
            "synthetic": run.corpus.synthetic,
            "turns": scored[0].turns,
            "of_turns": scored[0].of_turns,
            "outcomes": scored[0].outcomes,
            "cleaned": scored[0].cleaned,
            **{name: json_rows(table[columns[name]]) for name, table in tables.items()},
        }
    )


def report_schema() -> dict[str, Any]:
    """Gives the JSON Schema of a report."""
    return Report.model_json_schema()


def report_files(
    runs: Sequence[Predictions], *, draws: int = DRAWS, seed: int = 0
) -> list[tuple[str, str, str]]:
    """Writes the report of each run as a file, and their schema as the last one.

    Args:
        runs: Runs, each scored as by :func:`report`.
        draws: Bootstrap draws of dialogues behind each interval.
        seed: Seed of the draws.

    Returns:
        What each file is about, its name and its content; empty without a run.
    """
    files = []
    for run in runs:
        name = slug(f"{run.record.model} {run.corpus.name}")
        about = f"Everything about {run.record.name} over {run.corpus.name}."
        files.append((about, f"{name}.json", report(run, draws=draws, seed=seed).to_json()))
    if files:
        schema = json.dumps(report_schema(), indent=1)
        files.append(("The schema of these reports.", "report.schema.json", schema))
    return files
