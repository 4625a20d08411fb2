from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from pydantic import ValidationError

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import BITS, LABELS
from cradle_lib.scoring.core.conventions import Conventions
from cradle_lib.scoring.core.evaluate import evaluate
from cradle_lib.scoring.core.report import Number, Report, report, report_schema
from cradle_lib.scoring.timing.timing import timing

AO, SHO = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"]


@pytest.fixture(scope="module")
def run(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> Predictions:
    corpus = make_corpus([[("U", AO), ("L", 0), ("U", SHO)], [("U", 0)], [("U", AO), ("U", 0)]])
    return make_predictions(corpus, [AO, 0, SHO, 0, AO])


def test_a_report_obeys_its_schema_and_survives_a_round_trip(
    run: Predictions, tmp_path: Path
) -> None:
    found = report(run, draws=40)
    found.save(tmp_path / "report.json")
    read = json.loads((tmp_path / "report.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(report_schema())
    jsonschema.validate(read, report_schema())
    assert Report.model_validate(read) == found
    assert [path.name for path in tmp_path.iterdir()] == ["report.json"]


def test_its_parts_have_the_scores_intervals_and_signatures_of_each_measure(
    run: Predictions,
) -> None:
    found = report(run, draws=40)
    for level, part in found.levels.items():
        scored = evaluate(run, level=level, draws=40)
        assert part.signature == str(scored.signature)
        for name, number in part.scores.items():
            assert (number.value, number.low, number.high) == tuple(scored.estimate(name))
    assert "|p:" in found.timing.signature
    assert set(LABELS) < set(found.timing.onsets)
    assert found.burden.signature == found.levels["turn"].signature == found.errors.signature
    # Both user turns without a gold label, the third and the fifth, were flagged.
    flagged = found.errors.flagged_negatives
    assert flagged.value == 1.0


def test_the_curves_of_delay_are_those_of_timing(run: Predictions) -> None:
    found = report(run, draws=40).timing
    timed = timing(run, draws=40)
    for name, whole in (("detected", timed.detected), ("waiting", timed.waiting)):
        part = getattr(found, name)
        assert list(part) == ["any", "alert", "confirm"]
        values = [[number.value for number in part[scope]] for scope in part]
        assert values == whole.value.tolist()


def test_endless_is_not_undefined(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = make_corpus([[("U", AO), ("U", 0)], [("U", 0), ("U", 0)]])
    made = report(make_predictions(corpus, [0, 0, SHO, 0]), draws=0)
    found = Report.model_validate_json(made.to_json())
    # The alert is never tagged; there is no past alert to wait for.
    assert found.timing.onsets["alert_ongoing"].median_delay.value == "inf"
    assert found.timing.onsets["alert_past"].median_delay.value is None
    assert found.burden.estimates["needed_to_evaluate"].value == "inf"
    with pytest.raises(ValidationError):
        Number(value=math.inf, low=None, high=None)


def test_conventions_reach_every_part(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    # An alert on a listener's row, which no model is asked about.
    corpus = make_corpus([[("U", 0), ("L", AO), ("U", 0)], [("U", SHO), ("U", 0)]])
    run = make_predictions(corpus, [0, 0, SHO, 0])
    usual, counted = (
        report(run, draws=0, conventions=c) for c in (None, Conventions(orphans="count"))
    )
    assert (usual.errors.false_negatives, counted.errors.false_negatives) == (0, 1)
    assert usual.errors.escalation["alert_only"]["neither"] == 0
    assert counted.errors.escalation["alert_only"]["neither"] == 1
    assert next(iter(usual.sensitivity.variants)) == "Default"
    assert counted.sensitivity.signature == counted.levels["turn"].signature
    own = counted.sensitivity.variants["As in this report"]["M"]["micro_f1"]
    assert own == counted.levels["turn"].scores["micro_f1"].value != 1
    # An answer that was not read leaves its turn out.
    left_out = make_predictions(corpus, [0, 0, 0, 0], "oouo")
    found = report(left_out, draws=0, conventions=Conventions(unparsed="exclude"))
    assert found.errors.false_negatives == 0


def test_it_holds_no_text_of_a_dialogue(run: Predictions) -> None:
    written = report(run, draws=0).to_json()
    for dialogue in run.corpus:
        for turn in dialogue.turns:
            assert turn.text not in written


def test_where_nothing_can_be_late_only_the_speed_is_undefined(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = make_corpus([[("U", AO)], [("U", 0)]])
    made = report(make_predictions(corpus, np.array([AO, 0])), draws=0).to_json()
    found = Report.model_validate_json(made)
    assert found.timing.settings["p"] is None
    assert "|p:none|" in found.timing.signature
    assert found.timing.early["latency_f1"]["any"].value is None
    assert found.timing.onsets["any"].on_time.value == 1
    # lc_2(1) = 1 - 1/(1 + e^-1), over two dialogues of which one is positive.
    assert found.timing.early["erde_2"]["any"].value == pytest.approx(0.26894 / 2, abs=1e-5)


def test_an_unknown_field_is_refused(run: Predictions) -> None:
    read = json.loads(report(run, draws=0).to_json())
    with pytest.raises(ValidationError, match="Extra inputs"):
        Report.model_validate(read | {"rank": 1})
