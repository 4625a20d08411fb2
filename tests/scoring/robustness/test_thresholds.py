"""Thresholds on stored log-probabilities, against scikit-learn and a loop over turns."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import precision_score, recall_score

from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import ALERT_MASK, BITS, CONFIRM_MASK
from cradle_lib.record import Record
from cradle_lib.scoring.robustness.thresholds import WANTED, log_odds, threshold_curve, thresholds

GOLD = [0, BITS["alert_ongoing"], BITS["confirm_SH_past"], 3]


def made(rows: list[list[tuple[int, dict[str, float] | None]]]) -> Predictions:
    """A run over dialogues of (gold mask, first fork) turns."""
    corpus = Corpus(
        "tiny",
        tuple(
            Dialogue(i, tuple(Turn(j, j, "User", "hm", gold) for j, (gold, _) in enumerate(turns)))
            for i, turns in enumerate(rows)
        ),
    )
    forks = [fork for turns in rows for _, fork in turns]
    record = Record.create(
        model="m", name="M", group="embedded", engine="wave", prompt="turn",
        prompt_hash="0" * 16, decoding={"mode": "constrained"}, corpus="tiny",
        corpus_fingerprint=corpus.fingerprint,
    )  # fmt: skip
    size = len(forks)
    return Predictions(
        record, corpus, np.zeros(size, np.uint16), np.zeros(size, np.uint8), ("",) * size, size,
        tuple(None if fork is None else [fork] for fork in forks),
    )  # fmt: skip


def fork(none: float, alert: float, confirm: float) -> dict[str, float]:
    return {"none": math.log(none), "alert": math.log(alert), "confirm": math.log(confirm)}


def test_odds_are_those_of_probabilities() -> None:
    # The rest of the vocabulary takes 0.2 and is no part of the choice.
    some = fork(0.5, 0.2, 0.1)
    assert log_odds(some, "any") == pytest.approx(math.log(0.3 / 0.5))
    assert log_odds(some, "alert") == pytest.approx(math.log(0.2 / 0.6))
    assert log_odds(some, "confirm") == pytest.approx(math.log(0.1 / 0.7))


def test_a_tokenizer_that_cuts_words_elsewhere_gives_the_same_odds() -> None:
    cut = {"n": math.log(0.5), " al": math.log(0.2), "con": math.log(0.1)}
    for wanted in WANTED:
        assert log_odds(cut, wanted) == pytest.approx(log_odds(fork(0.5, 0.2, 0.1), wanted))
    assert log_odds({"none": -1.0}, "any") == -math.inf
    # Too unlikely for a float to hold the probability itself.
    assert log_odds({"none": -2000.0, "alert": -2001.0}, "any") == pytest.approx(-1)


def test_a_worked_curve() -> None:
    # Odds for a label: 3, 1, 1/3, 1/9; the second and the fourth turn have one.
    forks = [
        fork(0.25, 0.5, 0.25),
        fork(0.5, 0.3, 0.2),
        fork(0.75, 0.2, 0.05),
        fork(0.9, 0.05, 0.05),
    ]
    run = made([list(zip([0, 1, 0, 2], forks, strict=True)), [(1, None)]])
    curve = threshold_curve(run, draws=0)
    assert (curve.turns, curve.positives) == (4, 2)
    assert curve.thresholds == pytest.approx(np.log([1 / 9, 1 / 3, 1, 3]), abs=1e-12)
    # Above ln(1/9): the first three, one of them positive. Above ln(1/3): two, one of them.
    assert curve.recall.value == pytest.approx([1 / 2, 1 / 2, 0, 0])
    assert curve.precision.value == pytest.approx([1 / 3, 1 / 2, 0, np.nan], nan_ok=True)
    assert curve.flagged.value == pytest.approx([1, 0.5, 0.5, 0])
    assert curve.thresholds[curve.even] == 0


def test_odds_that_are_all_infinite_leave_one_threshold() -> None:
    curve = threshold_curve(made([[(1, {"none": -1.0}), (0, {"none": -0.5})]]), draws=0)
    assert curve.thresholds.tolist() == [0]
    assert curve.recall.value.tolist() == [0]


def test_a_run_without_stored_choices_is_refused() -> None:
    run = made([[(1, None), (0, None)]])
    for empty in (run, replace(run, choices=())):
        with pytest.raises(ScoringError, match="M stored no log-probabilities"):
            threshold_curve(empty, draws=0)


shares = st.floats(0.01, 1.0)
turns = st.tuples(
    st.sampled_from(GOLD), st.one_of(st.none(), st.builds(fork, shares, shares, shares))
)
dialogues = st.lists(st.lists(turns, min_size=1, max_size=6), min_size=1, max_size=5)


@settings(deadline=None, max_examples=60)
@given(dialogues, st.sampled_from(WANTED))
def test_every_point_of_the_curve_is_scikit_learns(
    rows: list[list[tuple[int, dict[str, float] | None]]], wanted: str
) -> None:
    stored = [(gold, f) for row in rows for gold, f in row if f is not None]
    if not stored:
        return
    mask = {"any": ALERT_MASK | CONFIRM_MASK, "alert": ALERT_MASK, "confirm": CONFIRM_MASK}[wanted]
    curve = threshold_curve(made(rows), wanted, draws=3)  # type: ignore[arg-type]
    positive = np.array([bool(gold & mask) for gold, _ in stored])
    odds = np.array([log_odds(f, wanted) for _, f in stored])  # type: ignore[arg-type]
    assert 0 in curve.thresholds
    for place, threshold in enumerate(curve.thresholds):
        flagged = odds > threshold
        scores = (recall_score, curve.recall), (precision_score, curve.precision)
        for oracle, found in scores:
            expected = oracle(positive, flagged, zero_division=np.nan)
            assert found.value[place] == pytest.approx(expected, nan_ok=True)
        rest = flagged[~positive]
        expected = rest.mean() if len(rest) else np.nan
        assert curve.flagged.value[place] == pytest.approx(expected, nan_ok=True)
    assert (np.diff(curve.thresholds) > 0).all()
    # One dialogue has no spread, and so no interval.
    assert curve.recall.low.shape == curve.thresholds.shape
    assert len(rows) > 1 or np.isnan(curve.recall.low).all()


def test_the_frame_holds_the_same_points_for_each_kind_of_label() -> None:
    forks = [fork(0.25, 0.5, 0.25), fork(0.5, 0.3, 0.2), fork(0.75, 0.2, 0.05)]
    run = made([list(zip([0, 1, 2], forks, strict=True)), [(1, None)]])
    silent = replace(run, choices=())
    frame = thresholds([silent, run], draws=20)
    assert set(frame["system"]) == {"M"}
    assert len(frame) == 3 * sum(
        len(threshold_curve(run, wanted, draws=0).thresholds) for wanted in WANTED
    )
    counts = frame[["wanted", "positives", "turns", "of_turns"]].drop_duplicates()
    assert counts.to_numpy().tolist() == [
        ["any label", 2, 3, 4], ["an alert", 2, 3, 4], ["a confirm", 0, 3, 4]
    ]  # fmt: skip
    # Odds for a label of 3, 1 and 1/3: at even odds the first turn alone is flagged, which is the
    # only one without a label.
    even = frame[(frame["wanted"] == "any label") & (frame["threshold"] == 0)]
    assert dict(zip(even["measure"], even["value"], strict=True)) == {
        "recall": 0, "precision": 0, "flagged": 1
    }  # fmt: skip
    # There is no confirm to find.
    confirms = frame[frame["wanted"] == "a confirm"].set_index("measure")["value"]
    assert confirms["recall"].isna().all()
    assert confirms["flagged"].between(0, 1).all()


def test_runs_without_stored_choices_give_a_frame_without_rows() -> None:
    frame = thresholds([made([[(1, None)]])], draws=0)
    assert frame.empty
    full = thresholds([made([[(1, fork(0.5, 0.3, 0.2))]])], draws=0)
    assert frame.columns.tolist() == full.columns.tolist()
    assert full[["low", "high"]].isna().all(axis=None)
