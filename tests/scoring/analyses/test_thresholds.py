"""Thresholds and calibration of stored probabilities, compared with scikit-learn."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.calibration import calibration_curve
from sklearn.metrics import (
    average_precision_score,
    brier_score_loss,
    f1_score,
    precision_score,
    recall_score,
    roc_auc_score,
)

from cradle_lib.detection import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS, parse
from cradle_lib.scoring.analyses.alarm_burden import projected_precision
from cradle_lib.scoring.analyses.label_probabilities import probability, slot_probabilities
from cradle_lib.scoring.analyses.thresholds import (
    chosen_thresholds,
    reliability,
    threshold_scores,
    thresholds,
)
from cradle_lib.scoring.conventions import STAGES

from ..made_runs import make_corpus, make_predictions

Stored = tuple[list[dict[str, float]], str]
GOLD = [0, BITS["alert_ongoing"], BITS["confirm_SH_past"], 3]


def made(rows: list[list[tuple[int, Stored | None]]], name: str = "tiny") -> Predictions:
    """Makes a run from turns of (gold mask, forks and answer)."""
    corpus = replace(make_corpus([[("U", gold) for gold, _ in turns] for turns in rows]), name=name)
    stored = [answer or (None, "none") for turns in rows for _, answer in turns]
    run = make_predictions(corpus, [parse(answer) for _, answer in stored])
    forks, answers = zip(*stored, strict=True)
    return replace(run, answers=answers, choices=forks)


def silent(none: float, alert: float, confirm: float) -> Stored:
    """Makes an answer ``none`` with the probabilities of the three branches."""
    shares = {"none": none, "alert": alert, "confirm": confirm}
    return [{branch: math.log(share) for branch, share in shares.items()}], "none"


def alert(none: float, ongoing: float, end: float) -> Stored:
    """Makes an answer ``alert_ongoing``."""
    forks = [
        {"none": none, "alert": 0.8 * (1 - none), "confirm": 0.2 * (1 - none)},
        {"ongo": ongoing, "past": 1 - ongoing},
        {"<end>": end, ";": 1 - end},
    ]
    return [{b: math.log(p) for b, p in f.items()} for f in forks], "alert_ongoing"


shares = st.floats(0.01, 1.0)
answers = st.one_of(
    st.none(),
    st.builds(silent, shares, shares, shares),
    st.builds(alert, *[st.floats(0.05, 0.95)] * 3),
)
dialogues = st.lists(
    st.lists(st.tuples(st.sampled_from(GOLD), answers), min_size=1, max_size=5),
    min_size=1,
    max_size=3,
)
Rows = list[list[tuple[int, Stored | None]]]


def arrays(rows: Rows, wanted: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Returns for each turn with forks: positive in gold, predicted, and its probability."""
    mask = (STAGES | BITS)[wanted]
    kept = [(gold, each) for row in rows for gold, each in row if each is not None]
    read = [slot_probabilities(*each) for _, each in kept]
    chances = [probability(place, mask) for place in read if place is not None]
    assert len(chances) == len(kept)
    positive = [bool(gold & mask) for gold, _ in kept]
    predicted = [bool(parse(each[1]) & mask) for _, each in kept]
    return np.array(positive), np.array(predicted), np.array(chances)


@settings(deadline=None, max_examples=10)
@given(dialogues)
def test_every_point_of_a_curve_equals_scikit_learns(rows: Rows) -> None:
    run = made(rows)
    curves, chosen = thresholds([run]), chosen_thresholds([run], recalls=(0.5,), draws=0)
    for wanted in STAGES:
        positive, predicted, chances = arrays(rows, wanted)
        curve, points = (frame[frame["wanted"] == wanted] for frame in (curves, chosen))
        assert curve["threshold"].tolist() == sorted(set(chances))
        for point in curve.itertuples():
            flagged = chances >= point.threshold
            recall = recall_score(positive, flagged, zero_division=np.nan)
            assert point.recall == pytest.approx(recall, nan_ok=True)
            rest = flagged[~positive].mean() if (~positive).any() else np.nan
            assert point.flagged == pytest.approx(rest, nan_ok=True)
        for name, part in points.groupby("point"):
            [threshold] = part["threshold"].unique()
            if name == "recall of 50 %":
                assert threshold == curve.loc[curve["recall"] >= 0.5, "threshold"].max()
            flagged = predicted if math.isnan(threshold) else chances >= threshold
            found = part.set_index("measure")["value"]
            for name, oracle in (
                ("recall", recall_score), ("precision", precision_score), ("f1", f1_score)
            ):  # fmt: skip
                expected = oracle(positive, flagged, zero_division=np.nan)
                assert found[name] == pytest.approx(expected, nan_ok=True)


@settings(deadline=None, max_examples=10)
@given(dialogues, st.sampled_from([*STAGES, "alert_ongoing", "confirm_SH_past"]))
def test_areas_and_brier_scores_equal_scikit_learns(rows: Rows, wanted: str) -> None:
    # A label that occurs has at least 20 positive turns.
    rows = rows * 20
    positive, _, chances = arrays(rows, wanted)
    frame = threshold_scores([made(rows)], draws=2)
    if wanted not in STAGES and not positive.any():
        assert wanted not in set(frame["wanted"])
        return
    if not len(positive):
        assert frame.empty
        return
    found = frame[frame["wanted"] == wanted].set_index("measure")["value"]
    both = 0 < positive.sum() < len(positive)
    expected = {
        "roc_area": roc_auc_score(positive, chances) if both else np.nan,
        "pr_area": average_precision_score(positive, chances) if positive.any() else np.nan,
        "brier": brier_score_loss(positive, np.clip(chances, 0, 1)),
        "brier_of_prevalence": brier_score_loss(positive, np.full(len(positive), positive.mean())),
    }
    if not both:
        expected["pr_area"] = np.nan
    assert found[[*expected]].to_dict() == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize(("times", "shown"), [(19, False), (20, True)])
def test_a_label_needs_20_positive_turns_for_scores(times: int, shown: bool) -> None:
    rows = [[(BITS["alert_past"], silent(0.5, 0.3, 0.2)), (0, silent(0.9, 0.05, 0.05))]] * times
    found = set(threshold_scores([made(rows)], draws=0)["wanted"])
    assert found == {*STAGES, *(["alert_past"] if shown else [])}


def sample(seed: int, size: int = 25, name: str = "tiny") -> tuple[Rows, Predictions]:
    generator = np.random.default_rng(seed)
    rows: Rows = []
    for _ in range(size):
        turns: list[tuple[int, Stored | None]] = []
        for _ in range(4):
            gold = int(generator.choice(GOLD, p=[0.6, 0.2, 0.1, 0.1]))
            odds = generator.beta(4, 3) if gold else generator.beta(2, 4)
            turns.append((gold, silent(1 - odds, odds * 0.7, odds * 0.3)))
        rows.append(turns)
    return rows, made(rows, name)


def test_calibration_bins_equal_those_of_scikit_learn() -> None:
    rows, run = sample(2, size=60)
    frame = reliability([run], draws=50)
    for wanted in STAGES:
        positive, _, chances = arrays(rows, wanted)
        share, mean = calibration_curve(positive, chances, n_bins=10, strategy="quantile")
        part = frame[frame["wanted"] == wanted]
        assert part["value"].tolist() == pytest.approx(share.tolist())
        assert part["chance"].tolist() == pytest.approx(mean.tolist())
        assert part["size"].sum() == len(positive)
        # A bin without positive turns has no interval.
        assert ((part["low"] <= part["value"]) | (part["value"] == 0)).all()


def test_a_threshold_is_chosen_on_dev_and_scored_on_test() -> None:
    rows, run = sample(4)
    others, dev = sample(5, name="dev")
    found = chosen_thresholds([run], [dev], draws=20)
    for wanted in STAGES:
        part = found[(found["wanted"] == wanted) & (found["point"] == "highest F1 on dev")]
        [threshold] = part["threshold"].unique()
        positive, _, chances = arrays(others, wanted)
        best = max(f1_score(positive, chances >= step) for step in chances)
        assert f1_score(positive, chances >= threshold) == pytest.approx(best)
        positive, _, chances = arrays(rows, wanted)
        own = f1_score(positive, chances >= threshold)
        assert part.set_index("measure").loc["f1", "value"] == pytest.approx(own)
    assert "highest F1 on dev" not in set(chosen_thresholds([run], draws=0)["point"])
    with pytest.raises(ScoringError, match="Choose a threshold on other dialogues"):
        chosen_thresholds([run], [run], draws=0)


def test_near_recalls_have_a_threshold_each() -> None:
    recalls = (0.9, 0.904, 0.07)
    found = chosen_thresholds([sample(4)[1]], recalls=recalls, draws=0)
    points = {"recall of 90 %", "recall of 90.4 %", "recall of 7 %", "model's own predictions"}
    assert set(found["point"]) == points


def test_the_precision_of_own_predictions_has_one_interval() -> None:
    _, run = sample(4)
    masks = np.where(np.arange(len(run.masks)) % 2, run.corpus.gold | 1, 0).astype(np.uint16)
    run = replace(run, masks=masks)
    own = chosen_thresholds([run], draws=20)
    own = own.query("threshold.isna() and wanted == 'any' and measure == 'precision'")
    projected = projected_precision(run, draws=20).query("observed")
    for end in ("value", "low", "high"):
        assert own[end].item() == pytest.approx(projected[end].item())


def test_turns_without_usable_choices_are_left_out() -> None:
    wrong = ([{"none": -1.0, "alert": -2.0}], "alert_past")
    run = made(
        [[(1, silent(0.5, 0.3, 0.2)), (2, None), (2, wrong)], [(0, silent(0.9, 0.05, 0.05))]]
    )
    counts = thresholds([replace(run, choices=()), run])
    counts = counts[["wanted", "positives", "turns"]].drop_duplicates()
    assert counts.to_numpy().tolist() == [["any", 1, 2], ["alert", 1, 2], ["confirm", 0, 2]]
    for verb in (thresholds, chosen_thresholds, threshold_scores, reliability):
        empty, full = verb([made([[(1, None)]])]), verb([run])
        assert empty.empty
        assert empty.columns.tolist() == full.columns.tolist()
