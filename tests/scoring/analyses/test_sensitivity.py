"""Scores under every convention, compared with evaluate, scikit-learn and worked counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score

from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.scoring.analyses.sensitivity import VARIANTS, sensitivity
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.scores import OVERALL

from ..made_runs import AO, DVP, SHO, make_corpus, make_predictions


@pytest.fixture(scope="module")
def runs() -> list[Predictions]:
    """Four runs over thirty dialogues with an orphan, a repeated label and a rare label."""
    quirky = [("U", AO), ("L", SHO), ("U", AO), ("U", SHO), ("U", 0)]
    corpus = make_corpus([quirky, [("U", DVP), ("U", 0)], *[[("U", AO), ("U", 0)]] * 28])
    chance = np.random.default_rng(3)
    size = len(corpus.gold)
    outcomes = "".join("u" if i % 9 == 8 else "o" for i in range(size))
    read = np.array([o == "o" for o in outcomes])
    found = np.where(chance.random(size) < 0.6, corpus.gold, 0) * read
    loud = (corpus.gold | np.where(chance.random(size) < 0.5, AO, 0)) * read
    mute = make_predictions(corpus, [0] * size, "u" * size, name="mute")
    named = {"found": found, "loud": loud, "silent": 0 * found}
    return [make_predictions(corpus, m, outcomes, name=n) for n, m in named.items()] + [mute]


def test_every_variant_equals_evaluate_with_its_conventions(runs: list[Predictions]) -> None:
    frame = sensitivity(runs)
    values = frame.set_index(["convention", "score", "system"])["value"]
    default = values["Default"]
    for variant in VARIANTS:
        if variant.first or variant.frequent:
            continue
        # The last run has only unusable answers; excluding them leaves nothing to score.
        for run in runs[:-1]:
            scored = evaluate(run, conventions=variant.conventions, draws=0)
            for score in OVERALL:
                place = (score, run.record.name)
                # A score has rows only if the variant changes it for some run.
                value = values.get((variant.name, *place), default[place])
                assert value == pytest.approx(float(scored.estimate(score).value))
    before = [default[place] for place in zip(frame["score"], frame["system"], strict=True)]
    assert frame["change"].to_numpy() == pytest.approx(frame["value"] - before, nan_ok=True)
    changed = frame[frame["change"] != 0]["convention"].unique().tolist()
    assert changed == [variant.name for variant in VARIANTS[1:]]
    assert frame.attrs["signature"] == str(evaluate(runs[0], draws=0).signature)
    # Without unusable answers, conventions about them change nothing.
    usable = [replace(run, outcomes=np.zeros_like(run.outcomes)) for run in runs]
    assert not sensitivity(usable)["convention"].str.startswith("Unusable").any()


def test_pairs_of_systems_that_change_order_are_counted_once(runs: list[Predictions]) -> None:
    frame = sensitivity(runs)
    for (_, score), rows in frame.groupby(["convention", "score"]):
        after, change = rows["value"].tolist(), rows["change"].tolist()
        before = [value - moved for value, moved in zip(after, change, strict=True)]
        changed_order = sum(
            (before[a] - before[b]) * (after[a] - after[b]) < -1e-12
            for a in range(len(runs))
            for b in range(a)
        )
        assert set(rows["turned_round"]) == {changed_order}, score


def test_first_and_frequent_labels_equal_a_count_by_hand(runs: list[Predictions]) -> None:
    corpus = runs[0].corpus
    run = make_predictions(corpus, [AO, AO, SHO, SHO, DVP, 0, *[0, AO] * 28])
    frame = sensitivity([run])
    values = frame.set_index(["convention", "score"])["value"]
    # Without repeats, 3 of 31 gold labels are found, those of the first two dialogues, and 28
    # alerts are false positives. Repeats add one true positive and one false positive.
    once = values["A label counts once per dialogue"]
    assert (once["micro_recall"], once["micro_precision"]) == pytest.approx((3 / 31, 3 / 31))
    plain = values["Default"]
    assert (plain["micro_recall"], plain["micro_precision"]) == pytest.approx((4 / 32, 4 / 33))
    # Only alert_ongoing occurs twenty times.
    truth, guess = ((m & AO) != 0 for m in (corpus.gold, run.masks))
    often = values["Macro scores use labels with 20+ gold labels", "macro_f1"]
    assert often == pytest.approx(f1_score(truth, guess))
