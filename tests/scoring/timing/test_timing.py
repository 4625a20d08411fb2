"""The frame of a run's timing, against scikit-learn and fractions by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score
from statsmodels.stats.proportion import proportion_confint

from cradle_lib.corpus import Corpus
from cradle_lib.detection.journals.predictions import Predictions
from cradle_lib.labels import LABELS
from cradle_lib.scoring.core.evaluate import evaluate
from cradle_lib.scoring.timing.timing import Timing, timing

from .test_windows import AO, DVP, SHO

GOLD = [[AO, 0, SHO, 0], [0, SHO, 0], [0, AO | DVP, SHO, SHO], [0, 0]]
TAGS = [[0, AO, SHO, SHO], [SHO, SHO, 0], [0, DVP, 0, SHO], [0, AO]]


@pytest.fixture(scope="module")
def found(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> Timing:
    corpus = make_corpus([[("U", mask) for mask in masks] for masks in GOLD])
    return timing(make_predictions(corpus, [mask for masks in TAGS for mask in masks]), draws=50)


def numbers(found: Timing, view: str, scope: str = "any", **where: Any) -> dict[str, float]:
    """The values of a view by their measure."""
    frame = found.to_frame()
    frame = frame[(frame["view"] == view) & (frame["scope"] == scope)]
    for column, content in where.items():
        frame = frame[frame[column] == content]
    return dict(zip(frame["measure"], frame["value"], strict=True))


def bits(masks: list[list[int]], together: bool) -> np.ndarray[Any, Any]:
    units = [np.bitwise_or.reduce(m) for m in masks] if together else np.concatenate(masks)
    return np.array([[unit >> bit & 1 for bit in range(16)] for unit in units])


def test_both_ends_of_a_curve_are_scores_of_scikit_learn(found: Timing) -> None:
    for measure, turns, together in (("either", 0.0, False), ("either_first", math.inf, True)):
        gold, tags = bits(GOLD, together), bits(TAGS, together)
        value = numbers(found, "window", turns=turns)[measure]
        assert value == pytest.approx(f1_score(gold, tags, average="micro"))
        each = f1_score(gold, tags, average=None, zero_division=np.nan)
        for label, support, expected in zip(LABELS, gold.sum(axis=0), each, strict=True):
            value = numbers(found, "window", label, turns=turns)[measure]
            # A label that never is gold has no F1 that says anything.
            assert value == pytest.approx(expected if support else np.nan, nan_ok=True)


def test_onsets_and_delays_are_those_counted_by_hand(found: Timing) -> None:
    # Six onsets: AO one turn late; SHO on time, premature, one turn late; DVP on time; AO never.
    onset = numbers(found, "onset")
    assert onset == pytest.approx(
        {"premature": 1 / 6, "on_time": 2 / 6, "late": 2 / 6, "never": 1 / 6, "median_delay": 1}
    )
    assert numbers(found, "delay", turns=0) == {"detected": pytest.approx(2 / 6)}
    assert numbers(found, "delay", turns=1)["detected"] == pytest.approx(4 / 6)
    # In the two dialogues with both stages the first tag comes one turn before the first confirm,
    # and with it.
    lead = numbers(found, "lead")
    assert lead == {"before": 0.5, "same_turn": 0.5, "after": 0, "never": 0, "median_lead": 0.5}


def test_a_single_label_has_the_interval_of_few_occurrences(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = make_corpus([[("U", mask) for mask in masks] for masks in GOLD])
    run = make_predictions(corpus, [mask for masks in TAGS for mask in masks])
    frame = timing(run, draws=50).to_frame().set_index(["view", "measure", "scope"]).sort_index()
    # SH ongoing: one of three onsets premature, one on time, one late, none never.
    for measure, hits in (("premature", 1), ("on_time", 1), ("late", 1), ("never", 0)):
        [low, high] = frame.loc[("onset", measure, "confirm_SH_ongoing"), ["low", "high"]].tolist()
        assert (low, high) == pytest.approx(proportion_confint(hits, 3, method="wilson"))
    scored = evaluate(run, draws=50)
    narrow = frame[frame["turns"] == 0].loc[("window", "either")]
    for label in ("alert_ongoing", "confirm_SH_ongoing"):
        expected = scored.estimate("f1", label)
        assert narrow.loc[label, ["value", "low", "high"]].tolist() == pytest.approx(expected)


def test_a_row_says_what_its_number_rests_on(found: Timing) -> None:
    frame = found.to_frame()
    support = frame.groupby(["view", "scope"])["support"].unique()
    assert support["onset", "any"].tolist() == support["delay", "any"].tolist() == [6]
    assert support["window", "confirm_SH_ongoing"].tolist() == [3]
    assert support["early", "any"].tolist() == [3]
    assert support["lead", "any"].tolist() == [2]
    assert not frame.duplicated(["view", "measure", "scope", "turns"]).any()
    assert frame["signature"].unique().tolist() == [str(found.signature)]
    assert frame["over"].unique() == [f"tiny ({found.signature.scored.corpus}): "
                                      "4 dialogues, 13 user turns"]  # fmt: skip
    numbers = frame.select_dtypes("number")
    assert [*numbers] == ["dialogues", "turns", "value", "low", "high", "support"]
    assert (frame["low"] <= frame["high"])[frame["low"].notna()].all()
    assert set(frame[frame["unit"] == "share"]["value"].dropna().between(0, 1)) == {True}


def test_what_is_nowhere_gold_has_no_number_and_a_note(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = make_corpus([[("U", SHO), ("U", 0)], [("U", 0), ("U", 0)]])
    found = timing(make_predictions(corpus, [SHO, AO, 0, 0]), draws=0)
    frame = found.to_frame()
    alerts = frame[(frame["scope"] == "alert") | (frame["view"] == "lead")]
    assert (alerts["support"] == 0).all()
    assert alerts["value"].isna().all()
    assert frame[["low", "high"]].isna().all(axis=None)
    assert frame[frame["scope"] == "any"].set_index("view").loc["onset", "value"].notna().any()
    assert any("no label of this stage is gold" in note for note in found.notes)
    assert isinstance(pd.concat([frame, frame])["value"].sum(), float)
