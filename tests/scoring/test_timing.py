"""The frame of a run's timing, against scikit-learn and fractions by hand."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import f1_score

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import CONFIRM_MASK
from cradle_lib.scoring.timing import timing

from .test_windows import AO, DVP, SHO

GOLD = [[AO, 0, SHO, 0], [0, SHO, 0], [0, AO | DVP, SHO, SHO], [0, 0]]
TAGS = [[0, AO, SHO, SHO], [SHO, SHO, 0], [0, DVP, 0, SHO], [0, AO]]


@pytest.fixture(scope="module")
def frame(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> pd.DataFrame:
    corpus = make_corpus([[("U", mask) for mask in masks] for masks in GOLD])
    return timing(make_predictions(corpus, [mask for masks in TAGS for mask in masks]), draws=50)


def numbers(frame: pd.DataFrame, view: str, scope: str = "any", **where: Any) -> dict[str, float]:
    """The values of a view by their measure."""
    frame = frame[(frame["view"] == view) & (frame["scope"] == scope)]
    for column, content in where.items():
        frame = frame[frame[column] == content]
    return dict(zip(frame["measure"], frame["value"], strict=True))


def bits(masks: list[list[int]], together: bool) -> np.ndarray[Any, Any]:
    units = [np.bitwise_or.reduce(m) for m in masks] if together else np.concatenate(masks)
    return np.array([[unit >> bit & 1 for bit in range(16)] for unit in units])


def test_both_ends_of_a_curve_are_scores_of_scikit_learn(frame: pd.DataFrame) -> None:
    for measure, turns, together in (("either", 0.0, False), ("either_first", math.inf, True)):
        gold, predicted = bits(GOLD, together), bits(TAGS, together)
        confirms = [bool(CONFIRM_MASK >> bit & 1) for bit in range(16)]
        alerts = [not confirm for confirm in confirms]
        for scope, labels in (("any", [True] * 16), ("alert", alerts), ("confirm", confirms)):
            value = numbers(frame, "window", scope, turns=turns)[measure]
            expected = f1_score(gold[:, labels], predicted[:, labels], average="micro")
            assert value == pytest.approx(expected)


def test_onsets_and_delays_are_those_counted_by_hand(frame: pd.DataFrame) -> None:
    # Six onsets: AO one turn late; SHO on time, premature, one turn late; DVP on time; AO never.
    onset = numbers(frame, "onset")
    assert onset == pytest.approx(
        {"premature": 1 / 6, "on_time": 2 / 6, "late": 2 / 6, "never": 1 / 6, "median_delay": 1}
    )
    assert numbers(frame, "delay", turns=0) == {"detected": pytest.approx(2 / 6)}
    assert numbers(frame, "delay", turns=1)["detected"] == pytest.approx(4 / 6)


def test_a_row_says_what_its_number_rests_on(frame: pd.DataFrame) -> None:
    support = frame.groupby(["view", "scope"])["support"].unique()
    assert support["onset", "any"].tolist() == support["delay", "any"].tolist() == [6]
    assert support["onset", "alert"].tolist() == [2]
    assert support["window", "any"].tolist() == support["window", "confirm"].tolist() == [3]
    assert support["window", "alert"].tolist() == [2]
    assert not frame.duplicated(["view", "measure", "scope", "turns"]).any()
    [signature] = frame["signature"].unique()
    assert "|win:0,1,2,3,4,5,inf|v" in signature
    corpus = signature.split("|corpus:")[1].split("|")[0]
    assert frame["over"].unique() == [f"tiny ({corpus}): 4 dialogues, 13 user turns"]
    numbers = frame.select_dtypes("number")
    assert [*numbers] == ["dialogues", "turns", "value", "low", "high", "support"]
    assert (frame["low"] <= frame["high"])[frame["low"].notna()].all()
    assert set(frame[frame["unit"] == "share"]["value"].dropna().between(0, 1)) == {True}


def test_what_is_nowhere_gold_has_no_number(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> None:
    corpus = make_corpus([[("U", SHO), ("U", 0)], [("U", 0), ("U", 0)]])
    frame = timing(make_predictions(corpus, [SHO, AO, 0, 0]), draws=0)
    alerts = frame[frame["scope"] == "alert"]
    assert (alerts["support"] == 0).all()
    assert alerts["value"].isna().all()
    assert frame[["low", "high"]].isna().all(axis=None)
    assert frame[frame["scope"] == "any"].set_index("view").loc["onset", "value"].notna().any()
    assert isinstance(pd.concat([frame, frame])["value"].sum(), float)
