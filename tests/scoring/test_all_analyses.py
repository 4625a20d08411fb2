"""All analyses: their frames have signatures, and need gold labels.

Without gold labels no score is defined, and unlabelled dialogues change no score.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import cradle_lib as cradle
from cradle_lib.corpus import Corpus, Dialogue
from cradle_lib.detection import Predictions
from cradle_lib.scoring import (
    error_counts,
    label_pairs,
    projected_precision,
    rank_ranges,
    reliability,
    run_spread,
    threshold_scores,
)
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.output import predicted_rates

from .made_runs import AO, SHO, make_corpus, make_predictions, noisy_run

OPTIONS: dict[str, Any] = {"draws": 40}
META = ("timing", "scenario")
# Every analysis of runs, as a frame.
ANALYSES: dict[str, Callable[[Predictions], pd.DataFrame]] = {
    **{
        f"evaluate {level}": lambda run, level=level: cradle.evaluate(
            run, level=level, **OPTIONS
        ).to_frame()
        for level in LEVELS
    },
    **{
        f"subgroups {by}": lambda run, by=by: cradle.subgroups(run, by, **OPTIONS)
        for by in ("length", "position", "stage")
    },
    "alarm_burden": lambda run: cradle.alarm_burden(run, **OPTIONS),
    "projected_precision": lambda run: projected_precision(run, **OPTIONS),
    "timing": lambda run: cradle.timing(run, **OPTIONS),
    "confusion": cradle.confusion_frame,
    "confusion of all": lambda run: cradle.confusion_frame(run, pairing="all"),
    "error_counts": error_counts,
    "label_pairs": label_pairs,
    "stage_orders": cradle.stage_orders,
    "sensitivity": lambda run: cradle.sensitivity([run]),
    "label_changes": lambda run: cradle.label_changes(run, silent(run), **OPTIONS),
    "compare": lambda run: cradle.compare([run, silent(run)], permutations=20).to_frame(),
    "run_spread": lambda run: run_spread({"system": [run, silent(run)]}, **OPTIONS),
    "thresholds": lambda run: cradle.thresholds([run]),
    "threshold_scores": lambda run: threshold_scores([run], **OPTIONS),
    "reliability": lambda run: reliability([run], **OPTIONS),
    "rank_ranges": lambda run: rank_ranges(
        [cradle.evaluate(each, **OPTIONS) for each in (run, silent(run))]
    ),
    "error_cases": lambda run: cradle.error_cases([run, silent(run)]),
}
UNSIGNED = ("rank_ranges", "error_cases")
# Columns that count something else than gold labels, or describe the run.
ABOUT = {"dialogues", "unusable", "tags", "units", "support", "runs", "turns", "discordant"}


def silent(run: Predictions) -> Predictions:
    record = run.record.model_copy(update={"name": "Silent", "model": "silent"})
    return replace(run, record=record, masks=np.zeros_like(run.masks))


def with_choices(run: Predictions) -> Predictions:
    """Adds the log-probabilities of constrained decoding, for answers of ``none``."""
    start = {"none": -0.1, "alert": -3.0, "confirm": -4.0}
    choices = tuple([start] if not mask else None for mask in run.masks)
    return replace(run, choices=choices, answers=("none",) * len(run.masks))


def unlabelled(dialogue: Dialogue) -> Dialogue:
    return replace(dialogue.relabelled([0] * len(dialogue.turns)), labelled=False)


@pytest.fixture(scope="module")
def run() -> Predictions:
    return with_choices(noisy_run())


@pytest.fixture(scope="module")
def more(run: Predictions) -> Predictions:
    """The same run with as many dialogues without gold labels, among the others."""
    corpus = run.corpus
    dialogues = [
        each
        for n, own in enumerate(corpus)
        for each in (own, replace(unlabelled(own), index=len(corpus) + n))
    ]
    rows = np.arange(len(run.masks)).reshape(len(corpus), -1).repeat(2, axis=0).ravel()
    return replace(
        run,
        corpus=Corpus("more", tuple(dialogues)),
        masks=run.masks[rows],
        outcomes=run.outcomes[rows],
        answers=tuple(run.answers[row] for row in rows),
        choices=tuple(run.choices[row] for row in rows),
        of_turns=len(rows),
    )


@pytest.mark.parametrize("name", [name for name in ANALYSES if name not in UNSIGNED])
def test_the_frame_of_an_analysis_has_its_signature(name: str, run: Predictions) -> None:
    frame = ANALYSES[name](run)
    signature = frame.attrs["signature"]
    lines = [signature] if isinstance(signature, str) else signature
    assert lines
    for line in lines:
        assert line.startswith("cradle|lvl:")
        assert f"|corpus:{run.corpus.fingerprint}|" in line
    if "signature" in frame:
        assert set(frame["signature"]) == set(lines)
    numbers = {"value", "low", "high"} & set(frame.columns)
    assert all(pd.api.types.is_numeric_dtype(frame[column]) for column in numbers)
    # Slices keep the signature.
    assert frame[frame.index < 1].attrs["signature"] == signature


@pytest.mark.parametrize("name", ANALYSES)
def test_dialogues_without_gold_labels_change_no_result(
    name: str, run: Predictions, more: Predictions
) -> None:
    expected, found = (
        ANALYSES[name](each).drop(columns="coverage", errors="ignore") for each in (run, more)
    )
    assert len(expected)
    pd.testing.assert_frame_equal(found, expected)


@pytest.mark.parametrize("name", ANALYSES)
def test_without_any_gold_labels_no_number_is_defined(name: str, run: Predictions) -> None:
    corpus = replace(run.corpus, dialogues=tuple(map(unlabelled, run.corpus)))
    found = ANALYSES[name](replace(run, corpus=corpus))
    numbers = found.drop(columns=ABOUT, errors="ignore").select_dtypes("number")
    # A count of pairs with gold labels, or the share of turns to project to.
    zero = {"count", "value"} if name in ("confusion", "confusion of all", "stage_orders") else ()
    for column in numbers.columns.difference(["prevalence", "turned_round"]):
        assert numbers[column].fillna(0).eq(0).all()
        assert column in {*zero, "tp", "fp", "fn"} or numbers[column].isna().all(), column


def test_a_corpus_that_says_none_everywhere_has_false_alarms_and_no_score() -> None:
    corpus = make_corpus([[("U", 0), ("U", 0)], [("U", 0)]])
    run = make_predictions(corpus, [AO, 0, 0])
    for level in LEVELS:
        found = cradle.evaluate(run, level=level, **OPTIONS)
        assert found.to_frame()[["value", "low", "high"]].isna().all(axis=None)
        assert np.isnan(found.estimate("exact_match").value)
        assert "No user turn of tiny has a gold" in str(found.undefined_because)
        assert "micro F1 n/a" in repr(found)
    burden = cradle.alarm_burden(run, draws=0).set_index("measure")["value"]
    assert burden["flagged_per_100"] == pytest.approx(100 / 3)
    assert burden["quiet_flagged"] == 0.5
    bare = replace(run, corpus=replace(corpus, dialogues=tuple(map(unlabelled, corpus))))
    assert cradle.alarm_burden(bare, draws=0)["value"].isna().all()
    # Predictions are counted in both.
    assert predicted_rates(bare).equals(predicted_rates(run))


def test_a_level_without_gold_labels_has_no_score() -> None:
    run = make_predictions(make_corpus([[("U", AO)], [("U", 0)]]), [AO, SHO])
    turn, confirm = (cradle.evaluate(run, level=level, draws=0) for level in ("turn", "confirm"))
    assert turn.estimate("jaccard").value == 0.5
    assert np.isnan(confirm.estimate("jaccard").value)
    assert "gold confirm: no score is defined" in confirm.notes[1]


def test_unlabelled_dialogues_are_named(more: Predictions) -> None:
    sentence = "60 of the 120 dialogues have no gold labels and no scores."
    assert cradle.evaluate(more, draws=0).notes[1] == sentence
    frame = more.to_frame()
    assert frame["gold"].isna().sum() == len(frame) / 2
    assert (
        more.corpus.fingerprint
        != replace(
            more.corpus,
            dialogues=tuple(d.relabelled([t.mask for t in d.turns]) for d in more.corpus),
        ).fingerprint
    )
