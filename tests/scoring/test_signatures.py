"""The frame of every analysis has its signature and numeric columns."""

from __future__ import annotations

from collections.abc import Callable

import pandas as pd
import pytest

import cradle_lib
from cradle_lib import scoring
from cradle_lib.corpus import load_corpus
from cradle_lib.detection.runs.find_runs import stored_runs
from cradle_lib.detection.runs.predictions import Predictions

Analysis = Callable[[list[Predictions]], pd.DataFrame]
DRAWS = 20
ANALYSES: dict[str, Analysis] = {
    "evaluate": lambda runs: cradle_lib.evaluate(runs[0], draws=DRAWS).to_frame(),
    "compare": lambda runs: compared(runs).to_frame(),
    "label_changes": lambda runs: cradle_lib.label_changes(runs[0], runs[1], draws=DRAWS),
    "timing": lambda runs: cradle_lib.timing(runs[0], draws=DRAWS),
    "alarm_burden": lambda runs: cradle_lib.alarm_burden(runs[0], draws=DRAWS),
    "projected_precision": lambda runs: scoring.projected_precision(runs[0], draws=DRAWS),
    "confusion_frame": lambda runs: cradle_lib.confusion_frame(runs[0]),
    "label_pairs": lambda runs: scoring.label_pairs(runs[0]),
    "error_counts": lambda runs: scoring.error_counts(runs[0]),
    "stage_orders": lambda runs: cradle_lib.stage_orders(runs[0]),
    "run_spread": lambda runs: scoring.run_spread({"one": runs[:1]}, draws=DRAWS),
    "sensitivity": lambda runs: cradle_lib.sensitivity(runs),
    "subgroups": lambda runs: cradle_lib.subgroups(runs[0], "length", draws=DRAWS),
    "thresholds": lambda runs: cradle_lib.thresholds(runs[-1:]),
    "threshold_scores": lambda runs: scoring.threshold_scores(runs[-1:], draws=DRAWS),
    "reliability": lambda runs: scoring.reliability(runs[-1:], draws=DRAWS),
}


def compared(runs: list[Predictions]) -> cradle_lib.scoring.compare.Comparison:
    return cradle_lib.compare(runs[:2], permutations=DRAWS)


@pytest.fixture(scope="module")
def runs() -> list[Predictions]:
    """Three shipped runs; the last one has stored probabilities."""
    chosen = ["smollm2-135m-constrained", "smollm2-135m-probe", "smollm2-135m-tuned-constrained"]
    return stored_runs(load_corpus("surrogate"), chosen)


@pytest.mark.parametrize("name", ANALYSES)
def test_the_frame_of_an_analysis_has_its_signature(name: str, runs: list[Predictions]) -> None:
    frame = ANALYSES[name](runs)
    signature = frame.attrs["signature"]
    lines = [signature] if isinstance(signature, str) else signature
    assert lines
    for line in lines:
        assert line.startswith("cradle|lvl:")
        assert f"|corpus:{runs[0].corpus.fingerprint}|" in line
    if "signature" in frame:
        assert set(frame["signature"]) == set(lines)
    numbers = {"value", "low", "high"} & set(frame.columns)
    assert all(pd.api.types.is_numeric_dtype(frame[column]) for column in numbers)
    # Slices keep the signature.
    assert frame[frame.index < 1].attrs["signature"] == signature
