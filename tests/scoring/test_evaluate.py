from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from sklearn.metrics import f1_score, precision_score

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS, LABELS
from cradle_lib.scoring.conventions import LEVELS, Conventions, Level, Orphans
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.scores import OVERALL, PER_LABEL
from cradle_lib.scoring.signature import Signature
from cradle_lib.version import library_version

MakeCorpus = Callable[[Sequence[Sequence[tuple[str, int]]]], Corpus]
MakePredictions = Callable[..., Predictions]

A, SH, DV = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"], BITS["confirm_DV_past"]

# d0000: a hit and a miss; d0001: a label on a Listener row and a false alarm; d0002: nothing.
DIALOGUES = [
    [("U", A), ("L", 0), ("U", SH)],
    [("U", 0), ("L", DV), ("U", 0)],
    [("L", 0), ("U", 0)],
]
TAGS = [A, 0, 0, SH, 0]


@pytest.fixture
def run(make_corpus: MakeCorpus, make_predictions: MakePredictions) -> Predictions:
    return make_predictions(make_corpus(DIALOGUES), TAGS)


def test_scores_are_scikit_learns_and_stand_beside_their_intervals(run: Predictions) -> None:
    truth, guess = (
        (np.array(m)[:, None] >> np.arange(16)) & 1 for m in (run.corpus.gold, run.masks)
    )
    result = evaluate(run, draws=500)
    assert result.estimate("micro_f1").value == f1_score(truth, guess, average="micro")
    assert result.estimate("macro_precision").value == precision_score(
        truth, guess, average="macro", zero_division=0.0
    )
    assert result.estimate("f1", "alert_ongoing").value == 1
    for name in OVERALL:
        value, low, high = result.estimate(name)
        assert low <= value <= high
    assert result.tallies["confirm_SH_ongoing"] == (0, 1, 1)
    assert result.support == {
        label: (label in ("alert_ongoing", LABELS[6])) * 1 for label in LABELS
    }


def test_an_evaluation_is_a_frame_of_its_scores(run: Predictions) -> None:
    result = evaluate(run, draws=200)
    frame = result.to_frame()
    names = ["system", "level", "over", "dialogues", "unusable", "tags", "label", "score"]
    assert list(frame.columns) == [
        *names, *("value", "low", "high"), *("support", "tp", "fp", "fn"), "signature"
    ]  # fmt: skip
    assert len(frame) == len(OVERALL) + 16 * len(PER_LABEL)
    overall = frame[frame["label"].isna()].set_index("score")
    truth, guess = (
        (np.array(m)[:, None] >> np.arange(16)) & 1 for m in (run.corpus.gold, run.masks)
    )
    assert overall.loc["micro_f1", "value"] == f1_score(truth, guess, average="micro")
    assert (overall["low"] <= overall["value"]).all()
    assert (overall["value"] <= overall["high"]).all()
    assert overall["support"].isna().all()
    harm = frame[(frame["label"] == "confirm_SH_ongoing") & (frame["score"] == "f1")].iloc[0]
    assert harm[["support", "tp", "fp", "fn", "value"]].tolist() == [1, 0, 1, 1, 0.0]
    assert frame.dtypes[["value", "low", "high"]].tolist() == [float] * 3
    assert frame.attrs["signature"] == str(result.signature)
    assert set(frame["signature"]) == {str(result.signature)}
    assert set(frame["over"]) == {f"tiny ({run.corpus.fingerprint}): 3 dialogues, 5 user turns"}
    without = evaluate(run, draws=0).to_frame()
    assert without[["low", "high"]].isna().all(axis=None)


def test_an_evaluation_prints_one_line(run: Predictions) -> None:
    found = evaluate(run, level="dialogue", draws=0)
    shown = repr(found)
    assert "\n" not in shown
    assert f"{found.over}, dialogue level" in shown
    assert f"{100 * found.estimate('micro_f1').value:.2f} %" in shown


def test_a_frame_has_no_f1_of_what_is_never_gold(run: Predictions) -> None:
    frame = evaluate(run, level="turn", draws=20).to_frame()
    of_labels = frame[frame["label"].notna()]
    never = of_labels[~of_labels["label"].isin(["alert_ongoing", "confirm_SH_ongoing"])]
    assert never[["value", "low", "high"]].isna().all(axis=None)
    assert frame.drop(index=never.index)["value"].notna().all()
    assert "14 of the 16 labels are never gold here" in evaluate(run, draws=0).notes[-1]


def test_without_gold_only_scores_of_whole_units_mean_something(
    make_corpus: MakeCorpus, make_predictions: MakePredictions
) -> None:
    corpus = make_corpus([[("U", 0), ("U", A)], [("U", 0)]])
    result = evaluate(make_predictions(corpus, [0, A, SH]), level="confirm", draws=0)
    frame = result.to_frame().set_index("score")
    # Confirms: both dialogues have none in gold, and one of them has one tagged.
    assert frame["value"].dropna().to_dict() == {"exact_match": 0.5, "jaccard": 0.5}
    assert "No user turn of tiny has a gold confirm: precision" in result.notes[-1]


def test_unusable_answers_stand_beside_every_score(
    make_corpus: MakeCorpus, make_predictions: MakePredictions
) -> None:
    corpus = make_corpus([[("U", 0), ("U", 0), ("U", 0), ("U", SH)]])
    frame = evaluate(make_predictions(corpus, [0, 0, 0, SH], "ourf"), draws=0).to_frame()
    assert set(frame["unusable"]) == {3}


@pytest.mark.parametrize("level", LEVELS)
def test_the_signature_names_the_settings(run: Predictions, level: Level) -> None:
    chosen = Conventions(
        empty_jaccard=0.5,
        zero_division=1.0,
        orphans="count",
        unparsed="exclude",
        macro_f1="harmonic",
    )
    result = evaluate(run, level=level, conventions=chosen, draws=20, seed=9)
    assert result.signature == Signature(
        level=level,
        labels=14 if level == "confirm" else 16,
        history="self",
        decoding="free",
        empty_jaccard=0.5,
        zero_division=1.0,
        orphans="count",
        unparsed="exclude",
        macro_f1="harmonic",
        corpus=run.corpus.fingerprint,
        dialogues=3,
        draws=20,
        seed=9,
        version=library_version(),
    )


def test_the_signature_of_a_constrained_run_says_so(run: Predictions) -> None:
    record = run.record.model_copy(update={"decoding": {"mode": "constrained"}})
    constrained = replace(run, record=record)
    assert "|dec:free|" in str(evaluate(run, draws=0).signature)
    assert "|dec:constrained|" in str(evaluate(constrained, draws=0).signature)


@pytest.mark.parametrize(
    ("orphans", "units", "missed"),
    # The two scored labels are a hit and a miss; the Listener's label is one more miss.
    [("ignore", 5, 1), ("attach", 5, 2), ("count", 6, 2)],
)
def test_orphans_reach_the_scores(
    run: Predictions, orphans: Orphans, units: int, missed: int
) -> None:
    result = evaluate(run, conventions=Conventions(orphans=orphans), draws=0)
    assert result.counts.sets[:, 0].sum() == units
    assert sum(fn for _, _, fn in result.tallies.values()) == missed


def test_outcomes_are_counted_beside_the_scores(
    make_corpus: MakeCorpus, make_predictions: MakePredictions
) -> None:
    corpus = make_corpus([[("U", 0), ("U", 0), ("U", 0), ("U", SH)]])
    run = make_predictions(corpus, [0, 0, 0, SH], "ouro")
    result = evaluate(run, draws=0)
    assert result.outcomes == {"ok": 2, "unparsed": 1, "refused": 1, "failed": 0}
    assert result.cleaned == 0
    assert result.estimate("exact_match").value == 2 / 4
    wrote = ("none.", "none.\n", "none", "**confirm_SH_ongoing**")
    assert evaluate(replace(run, answers=wrote), draws=0).cleaned == 2
    assert np.isnan(result.estimate("exact_match")[1:]).all()


def test_a_frame_without_draws_has_scores_and_no_bounds(run: Predictions) -> None:
    result = evaluate(run, level="confirm", draws=0)
    frame = result.to_frame()
    assert frame.attrs["signature"] == str(result.signature)
    overall = frame[frame["label"].isna()]
    assert overall["score"].tolist() == list(OVERALL)
    assert frame[["low", "high"]].isna().all(axis=None)
    # Confirms: gold {SH}, {}, {}; predicted {}, {SH}, {}. Only the third pair agrees.
    [jaccard] = overall.loc[overall["score"] == "jaccard", "value"]
    assert jaccard == pytest.approx(1 / 3)
    assert frame["label"].dropna().unique().tolist() == list(LABELS[2:])
    assert frame["score"][frame["label"] == "confirm_SH_ongoing"].tolist() == list(PER_LABEL)
    assert (result.turns, result.of_turns) == (5, 5)


def test_a_bound_without_units_is_undefined(
    make_corpus: MakeCorpus, make_predictions: MakePredictions
) -> None:
    # One of the two dialogues has no answer, so that some draws have nothing to average over.
    corpus = make_corpus([[("U", SH)], [("U", 0)]])
    run = make_predictions(corpus, [SH, 0], "ou")
    found = evaluate(run, conventions=Conventions(unparsed="exclude"), draws=100)
    value, low, high = found.estimate("exact_match")
    assert value == 1
    assert np.isnan([low, high]).all()


def test_nothing_left_to_score_is_refused(
    make_corpus: MakeCorpus, make_predictions: MakePredictions
) -> None:
    run = make_predictions(make_corpus([[("U", SH)]]), [0], "f")
    with pytest.raises(ScoringError, match="nothing to score in tiny: 1 user turns"):
        evaluate(run, conventions=Conventions(unparsed="exclude"))


def test_wrong_requests_name_the_choices(run: Predictions) -> None:
    result = evaluate(run, level="confirm", draws=0)
    with pytest.raises(ScoringError, match=r"no score 'f2'\. Choose one of exact_match"):
        result.estimate("f2")
    with pytest.raises(ScoringError, match="not scored at level confirm"):
        result.estimate("f1", "alert_past")
    with pytest.raises(ScoringError, match="-1 draws"):
        evaluate(run, draws=-1)
