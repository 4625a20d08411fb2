from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings

from cradle_lib.corpus import Corpus
from cradle_lib.corpus.load import load_corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.detection.runs import stored_runs
from cradle_lib.scoring.alarm_burden import alarm_burden, burden_rows, projected_precision
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.scoring.thresholds import thresholds

from .test_windows import AO, DVP, SHO, dialogues, rows_of

MakeCorpus = Callable[..., Corpus]
MakePredictions = Callable[..., Predictions]


def brute(turns: list[tuple[int, int]]) -> dict[str, int]:
    found = Counter({"dialogues": 1, "turns": len(turns)})
    seen = 0
    for gold, tags in turns:
        found["tags"] += tags.bit_count()
        found["correct_tags"] += (tags & gold).bit_count()
        found["false_tags"] += (tags & ~gold).bit_count()
        found["negative_turns"] += not gold
        found["flagged_turns"] += bool(tags) and not gold
        found["gold_turns"] += bool(gold)
        found["flagged_gold"] += bool(gold) and bool(tags)
        found["alarms"] += (tags & ~seen).bit_count()
        found["repeats"] += (tags & seen & ~gold).bit_count()
        seen |= tags
    found["quiet_dialogues"] = int(not any(gold for gold, _ in turns))
    found["flagged_dialogues"] = int(bool(found["quiet_dialogues"] and seen))
    return found


@settings(deadline=None, max_examples=100)
@given(dialogues)
def test_tallies_are_those_of_a_loop(turns: list[list[tuple[int, int]]]) -> None:
    found = burden_rows(rows_of(turns), len(turns))
    for row, dialogue in zip(found.to_dict("records"), turns, strict=True):
        assert row == brute(dialogue)


@pytest.fixture
def corpus(make_corpus: MakeCorpus) -> Corpus:
    return make_corpus(
        [
            [("U", AO), ("L", 0), ("U", 0), ("U", SHO), ("U", 0)],
            [("U", 0), ("U", 0)],
            [("U", 0), ("U", 0)],
        ]
    )


def test_a_worked_burden(corpus: Corpus, make_predictions: MakePredictions) -> None:
    run = make_predictions(corpus, [AO, AO | DVP, SHO, SHO, 0, AO, 0, 0])
    found = alarm_burden(run, draws=200)
    # Six of eight user turns have no gold label. Tags: AO (right), AO and DVP (wrong), SHO
    # (the wrong turn), SHO (right), AO in a quiet dialogue: six, two of them right.
    assert dict(zip(found["measure"], found["value"], strict=True)) == pytest.approx(
        {
            "false_tags_per_dialogue": 4 / 3,
            "flagged_per_100": 100 * 3 / 6,
            "gold_flagged": 2 / 2,
            "quiet_flagged": 1 / 2,
            "needed_to_evaluate": 6 / 2,
            # Alarms: AO, DVP and SHO in the first dialogue, AO in the second.
            "repeats_per_alarm": 2 / 4,
        }
    )
    assert found[["low", "high"]].notna().any(axis=None)
    assert not (found["low"] > found["value"]).any()
    assert not (found["high"] < found["value"]).any()
    assert found["signature"].str.contains("boot:200@0", regex=False).all()


def test_silence_has_no_alarms_to_evaluate(
    corpus: Corpus, make_predictions: MakePredictions
) -> None:
    silent = alarm_burden(make_predictions(corpus, [0] * 8), draws=0).set_index("measure")
    assert math.isnan(silent.loc["needed_to_evaluate", "value"])
    wrong = alarm_burden(make_predictions(corpus, [DVP] + [0] * 7), draws=0).set_index("measure")
    assert wrong.loc["needed_to_evaluate", "value"] == math.inf


def test_an_excluded_answer_takes_its_turn_out_of_the_alarms(
    corpus: Corpus, make_predictions: MakePredictions
) -> None:
    # The unusable answer is that of a turn without a gold label, the second one.
    run = make_predictions(corpus, [0] * 8, outcomes="ouoooooo")
    turns = [
        alarm_burden(run, draws=0, conventions=conventions).set_index("measure")["of"]
        for conventions in (None, Conventions(unparsed="exclude"))
    ]
    assert [of["flagged_per_100"] for of in turns] == [6, 5]


def test_each_ratio_of_the_frame_is_that_of_its_counts(
    corpus: Corpus, make_predictions: MakePredictions
) -> None:
    frame = alarm_burden(make_predictions(corpus, [AO, AO | DVP, SHO, SHO, 0, AO, 0, 0]))
    counts = dict(zip(frame["measure"], zip(frame["count"], frame["of"], strict=True), strict=True))
    # The counts of the worked example above.
    assert counts == {
        "false_tags_per_dialogue": (4, 3),
        "flagged_per_100": (3, 6),
        "gold_flagged": (2, 2),
        "quiet_flagged": (1, 2),
        "needed_to_evaluate": (6, 2),
        "repeats_per_alarm": (2, 4),
    }
    scales = {"flagged_per_100": 100}
    scale = frame["measure"].map(scales).fillna(1)
    assert frame["value"].tolist() == pytest.approx(scale * frame["count"] / frame["of"])
    # A draw without the one dialogue that has gold labels leaves that share undefined.
    bounded = frame[frame["measure"] != "gold_flagged"]
    assert bounded["low"].le(bounded["value"]).all()
    assert set(frame["over"]) == {f"tiny ({corpus.fingerprint}): 3 dialogues, 8 user turns"}
    silent = alarm_burden(make_predictions(corpus, [0] * 8), draws=0)
    undefined = silent["measure"].isin(["needed_to_evaluate", "repeats_per_alarm"])
    assert silent["value"].isna().tolist() == undefined.tolist()
    assert silent[["low", "high"]].isna().all(axis=None)
    assert silent["low"].dtype == float


def test_a_prevalence_below_one_percent_has_a_value_and_no_interval(
    make_corpus: Callable[..., Corpus], make_predictions: MakePredictions
) -> None:
    corpus = make_corpus([[("U", AO), ("U", 0), ("U", 0)]] * 8)
    run = make_predictions(corpus, [AO, 0, AO, 0, 0, 0] * 4)
    frame = projected_precision(run, [0.01, 0.001], draws=50)
    assert frame["value"].notna().all()
    assert frame["low"].notna().tolist() == [True, True, False]


def test_a_projected_precision_is_bayes_rule_on_the_counts(
    corpus: Corpus, make_predictions: MakePredictions
) -> None:
    run = make_predictions(corpus, [AO, AO | DVP, 0, 0, 0, AO, 0, 0])
    # By hand: 1 of 2 turns with gold and 2 of 6 without it are flagged.
    frame = projected_precision(run, [0.01], draws=0)
    assert frame["prevalence"].tolist() == [2 / 8, 0.01]
    assert frame["observed"].tolist() == [True, False]
    # At the corpus' own prevalence it is the precision of flags: 1 of 3.
    rare = Fraction(1, 2) * Fraction(1, 100)
    expected = [Fraction(1, 3), rare / (rare + Fraction(2, 6) * Fraction(99, 100))]
    assert frame["value"].tolist() == pytest.approx([float(share) for share in expected])
    silent = projected_precision(make_predictions(corpus, [0] * 8), draws=0)
    assert silent["value"].isna().all()


def test_precision_here_has_the_interval_of_the_page_of_thresholds() -> None:
    """The value at the corpus' own prevalence is a precision: both vary over the same draws."""
    run = next(
        run
        for run in stored_runs(load_corpus("surrogate", "test"))
        if run.record.model == "smollm2-135m-tuned-constrained"
    )
    here = projected_precision(run, draws=500).query("observed").iloc[0]
    curves = thresholds([run], draws=500)
    own = curves.query("measure == 'precision' and wanted == 'any' and threshold.isna()").iloc[0]
    assert [*here[["value", "low", "high"]]] == pytest.approx([*own[["value", "low", "high"]]])
    # An interval by hand: dialogues drawn with replacement.
    places = run.corpus.dialogue_of
    flagged = np.bincount(places, run.masks > 0, len(run.corpus))
    right = np.bincount(places, (run.masks > 0) & (run.corpus.gold > 0), len(run.corpus))
    chance = np.random.default_rng(7)
    drawn = chance.integers(len(run.corpus), size=(2000, len(run.corpus)))
    shares = right[drawn].sum(axis=1) / flagged[drawn].sum(axis=1)
    assert [here["low"], here["high"]] == pytest.approx(
        [*np.percentile(shares, [2.5, 97.5])], abs=0.01
    )
    assert here["value"] == pytest.approx(right.sum() / flagged.sum())
