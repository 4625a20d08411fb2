"""The report of one run: its scores, each part with a signature, as JSON with a schema.

The schema is that of :class:`Report`; ``report_schema()`` gives it. Scores have intervals, except
those under other conventions; counts have none. A report holds no text of any dialogue and no
answer, so that it may be published where a corpus may not.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal, get_args

from pydantic import BaseModel, ConfigDict, Field

from cradle_lib.files import replacing
from cradle_lib.record import Record
from cradle_lib.scoring.core.conventions import LEVELS, Conventions, Level
from cradle_lib.scoring.core.evaluate import evaluate
from cradle_lib.scoring.errors.categories import analyse
from cradle_lib.scoring.errors.escalation import ORDERS, escalation
from cradle_lib.scoring.resampling.bootstrap import json_estimate
from cradle_lib.scoring.resampling.intervals import DRAWS
from cradle_lib.scoring.robustness.sensitivity import VARIANTS, Variant, sensitivity
from cradle_lib.scoring.robustness.subgroups import By, cohorts
from cradle_lib.scoring.timing.alarm_burden import burden
from cradle_lib.scoring.timing.occurrences import scored_rows
from cradle_lib.scoring.timing.timing import timing

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

FORMAT: Final = "cradle-report/1"


class _Strict(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


# What has no end, such as the delay of what is never tagged, is not what is undefined.
Value = Annotated[float, Field(allow_inf_nan=False)] | Literal["inf", "-inf"] | None


class Number(_Strict):
    """A score with its 95 % interval; ``None`` for what is undefined or was not computed."""

    value: Value
    low: Value
    high: Value


class LabelPart(_Strict):
    """One label at one level."""

    support: int
    tp: int
    fp: int
    fn: int
    precision: Number
    recall: Number
    f1: Number


class LevelPart(_Strict):
    """All scores at one level, values from 0 to 1."""

    signature: str
    settings: dict[str, Any]
    turns: int
    of_turns: int
    outcomes: dict[str, int]
    scores: dict[str, Number]
    labels: dict[str, LabelPart]


class OnsetPart(_Strict):
    """What became of the onsets within one scope; delays in user turns."""

    onsets: int
    premature: Number
    on_time: Number
    late: Number
    never: Number
    median_delay: Number


class LeadPart(_Strict):
    """When the first tag came, against the first gold confirm; in user turns."""

    dialogues: int
    before: Number
    same_turn: Number
    after: Number
    never: Number
    median: Number


class TimingPart(_Strict):
    """When, not only what; curves by name, width in user turns, and scope.

    ``detected`` (tagged at most so late) and ``waiting`` (still without a tag) are shares of the
    onsets by scope, after 0, 1, 2, ... user turns.
    """

    signature: str
    settings: dict[str, Any]
    curves: dict[str, dict[str, dict[str, Number]]]
    onsets: dict[str, OnsetPart]
    detected: dict[str, list[Number]]
    waiting: dict[str, list[Number]]
    lead: LeadPart
    early: dict[str, dict[str, Number]]


class BurdenPart(_Strict):
    """Alarm burden."""

    signature: str
    estimates: dict[str, Number]
    tallies: dict[str, int]


class ErrorPart(_Strict):
    """Errors at turn level; escalation is gold order by tagged order."""

    signature: str
    categories: dict[str, int]
    false_positives: int
    false_negatives: int
    false_positives_of: dict[str, int]
    false_negatives_of: dict[str, int]
    flagged_negatives: Number
    alert_to_none: int
    alert_to_confirm: int
    confirmed_alerts: dict[str, int]
    temporal_swaps: dict[str, int]
    wrong_types: dict[str, int]
    escalation: dict[str, dict[str, int]]


class CohortPart(_Strict):
    """One part of the corpus."""

    dialogues: int
    units: int
    support: int
    scores: dict[str, Number]


class CohortsPart(_Strict):
    """The parts of the corpus by one division; none if the corpus does not know."""

    signature: str
    cohorts: dict[str, CohortPart]


class SensitivityPart(_Strict):
    """The scores under every variant of what the paper leaves open, without intervals."""

    signature: str
    variants: dict[str, dict[str, dict[str, float | None]]]


class Report(_Strict):
    """Everything that is known about one run's tags.

    Attributes:
        format: Name and version of this format.
        record: The record of the run.
        corpus: Name of the corpus, or of the part of it that was scored.
        synthetic: Whether it is the project's own surrogate, on which a score says nothing
            about a model.
        levels: Scores by level.
        timing: When, not only what.
        burden: Alarm burden.
        errors: Errors at turn level.
        cohorts: Turn-level scores of parts of the corpus.
        sensitivity: Turn-level scores under other conventions; where the report's own are not
            the defaults, they come first.
    """

    format: Literal["cradle-report/1"]
    record: Record
    corpus: str
    synthetic: bool
    levels: dict[Level, LevelPart]
    timing: TimingPart
    burden: BurdenPart
    errors: ErrorPart
    cohorts: dict[By, CohortsPart]
    sensitivity: SensitivityPart

    def to_json(self) -> str:
        """Writes strict JSON, with the keys in the order of the schema."""
        return json.dumps(self.model_dump(mode="json"), indent=1, allow_nan=False) + "\n"

    def save(self, path: Path) -> None:
        """Writes the JSON to a file, whole or not at all."""
        with replacing(path) as part:
            part.write_text(self.to_json(), encoding="utf-8")


def report(
    predictions: Predictions,
    *,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Report:
    """Scores a run in every way there is.

    Args:
        predictions: What the run says about every user turn of its corpus.
        conventions: What the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        The report.

    Raises:
        ScoringError: If the conventions leave nothing to score.
    """
    run, corpus = predictions, predictions.corpus
    options: dict[str, Any] = {"conventions": conventions, "draws": draws, "seed": seed}
    chosen = conventions or Conventions()
    rows = scored_rows(run, chosen)
    matrix = escalation(rows.gold, rows.predicted, rows.dialogue_of, len(corpus)).tolist()
    orders = {
        gold: dict(zip(ORDERS, row, strict=True)) for gold, row in zip(ORDERS, matrix, strict=True)
    }
    alarms = burden(run, **options)
    flagged = alarms.estimates["flagged_per_100"].divided(100)
    own = () if chosen == Conventions() else (Variant("As in this report", chosen),)
    return Report.model_validate(
        {
            "format": FORMAT,
            "record": run.record.model_dump(),
            "corpus": corpus.name,
            "synthetic": corpus.synthetic,
            "levels": {level: evaluate(run, level=level, **options).as_dict() for level in LEVELS},
            "timing": timing(run, **options).as_dict(),
            "burden": alarms.as_dict(),
            "errors": analyse(run, conventions=chosen).as_dict()
            | {
                "signature": str(alarms.signature),
                "flagged_negatives": json_estimate(flagged),
                "escalation": orders,
            },
            "cohorts": {by: cohorts(run, by, **options).as_dict() for by in get_args(By)},
            "sensitivity": sensitivity([run], variants=(*own, *VARIANTS)).as_dict(),
        }
    )


def report_schema() -> dict[str, Any]:
    """Gives the JSON Schema of a report."""
    return Report.model_json_schema()
