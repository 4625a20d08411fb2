from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from typing import Any

import jsonschema
import pytest
from pydantic import BaseModel, ValidationError

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import BITS
from cradle_lib.scoring.core.conventions import LEVELS, Conventions
from cradle_lib.scoring.core.evaluate import evaluate
from cradle_lib.scoring.core.report import Report, SensitivityRow, report, report_schema
from cradle_lib.scoring.core.scores import OVERALL
from cradle_lib.scoring.timing.timing import timing

AO, SHO = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"]


@pytest.fixture(scope="module")
def run(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> Predictions:
    corpus = make_corpus([[("U", AO), ("L", 0), ("U", SHO)], [("U", 0)], [("U", AO), ("U", 0)]])
    return make_predictions(corpus, [AO, 0, SHO, 0, AO])


def test_a_report_obeys_its_schema_and_survives_a_round_trip(run: Predictions) -> None:
    found = report(run, draws=40)
    read = json.loads(found.to_json())
    jsonschema.Draft202012Validator.check_schema(report_schema())
    jsonschema.validate(read, report_schema())
    assert Report.model_validate(read) == found


def rows(table: Sequence[BaseModel], **wanted: object) -> list[dict[str, Any]]:
    """The rows with these values."""
    found = [row.model_dump() for row in table]
    return [row for row in found if all(row[name] == value for name, value in wanted.items())]


def test_its_tables_are_the_frames_of_each_analysis(run: Predictions) -> None:
    found = report(run, draws=40)
    for level in LEVELS:
        scored = evaluate(run, level=level, draws=40)
        own = rows(found.scores, level=level, label=None)
        assert [row["score"] for row in own] == list(OVERALL)
        for row in own:
            assert row["signature"] == str(scored.signature)
            estimate = (row["value"], row["low"], row["high"])
            own_estimate = scored.estimate(row["score"])
            assert estimate == tuple(None if math.isnan(x) else x for x in own_estimate)
    assert {"|win:" in row.signature for row in found.timing} == {True}
    assert {row.scope for row in found.timing} == {"any", "alert", "confirm"}
    assert {row.signature for row in found.alarms} == {found.scores[0].signature}
    timed = timing(run, draws=40)
    values = [row["value"] for row in rows(found.timing, view="delay", measure="detected")]
    expected = timed[timed["measure"] == "detected"]["value"]
    assert values == [None if math.isnan(value) else value for value in expected]
    # Both user turns without a gold label, the third and the fifth, were flagged.
    [flagged] = rows(found.alarms, measure="flagged_per_100")
    assert (flagged["value"], flagged["count"], flagged["of"]) == (100, 2, 2)


def test_endless_is_not_undefined(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = make_corpus([[("U", AO), ("U", 0)], [("U", 0), ("U", 0)]])
    made = report(make_predictions(corpus, [0, 0, SHO, 0]), draws=0)
    found = Report.model_validate_json(made.to_json())
    # The alert is never tagged; there is no confirm to wait for.
    delays = {row.scope: row.value for row in found.timing if row.measure == "median_delay"}
    assert (delays["alert"], delays["confirm"]) == ("inf", None)
    [needed] = rows(found.alarms, measure="needed_to_evaluate")
    assert needed["value"] == "inf"
    with pytest.raises(ValidationError):
        SensitivityRow(convention="c", score="s", value=math.inf, change=0.0)


def test_conventions_reach_every_part(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    # An alert on a listener's row, which no model is asked about.
    corpus = make_corpus([[("U", 0), ("L", AO), ("U", 0)], [("U", SHO), ("U", 0)]])
    run = make_predictions(corpus, [0, 0, SHO, 0])
    usual, counted = (
        report(run, draws=0, conventions=c) for c in (None, Conventions(orphans="count"))
    )
    missed = [rows(found.errors, category="missed_alert") for found in (usual, counted)]
    assert [[row["count"] for row in each] for each in missed] == [[], [1]]
    orders = [
        rows(found.stage_orders, gold="alert_only", tagged="neither") for found in (usual, counted)
    ]
    assert [each[0]["value"] for each in orders] == [0, 1]
    assert usual.sensitivity[0].convention == "Default"
    [own] = rows(counted.sensitivity, convention="As in this report", score="micro_f1")
    [score] = rows(counted.scores, level="turn", score="micro_f1")
    assert own["value"] == score["value"] != 1
    # An answer that was not read leaves its turn out.
    left_out = make_predictions(corpus, [0, 0, 0, 0], "oouo")
    found = report(left_out, draws=0, conventions=Conventions(unparsed="exclude"))
    assert {row.category for row in found.errors} == {None}


def test_it_holds_no_text_of_a_dialogue(run: Predictions) -> None:
    written = report(run, draws=0).to_json()
    for dialogue in run.corpus:
        for turn in dialogue.turns:
            assert turn.text not in written


def test_an_unknown_field_is_refused(run: Predictions) -> None:
    read = json.loads(report(run, draws=0).to_json())
    with pytest.raises(ValidationError, match="Extra inputs"):
        Report.model_validate(read | {"rank": 1})
