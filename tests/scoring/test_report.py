from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import jsonschema
import numpy as np
import pytest
from pydantic import ValidationError

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import BITS, LABELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.report import Report, report, report_schema

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


def test_every_score_in_it_has_an_interval_and_a_signature(run: Predictions) -> None:
    found = report(run, draws=40)
    for level, part in found.levels.items():
        scored = evaluate(run, level=level, draws=40)
        assert part.signature == str(scored.signature)
        for name, number in part.scores.items():
            assert (number.value, number.low, number.high) == tuple(scored.estimate(name))
    assert found.timing is not None
    assert "|p:" in found.timing.signature
    assert set(LABELS) < set(found.timing.onsets)
    assert found.burden.signature == found.levels["turn"].signature


def test_it_holds_no_text_of_a_dialogue(run: Predictions) -> None:
    written = report(run, draws=0).to_json()
    for dialogue in run.corpus:
        for turn in dialogue.turns:
            assert turn.text not in written


def test_where_nothing_can_be_late_there_is_no_timing(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = make_corpus([[("U", AO)], [("U", 0)]])
    found = report(make_predictions(corpus, np.array([AO, 0])), draws=0)
    assert found.timing is None
    assert found.levels["turn"].scores["exact_match"].value == 1


def test_an_unknown_field_is_refused(run: Predictions) -> None:
    read = json.loads(report(run, draws=0).to_json())
    with pytest.raises(ValidationError, match="Extra inputs"):
        Report.model_validate(read | {"rank": 1})
