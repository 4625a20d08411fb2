from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import get_args

import numpy as np
import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS
from cradle_lib.scoring.conventions import Level
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.subgroups import MEASURES, By, subgroups

AO, SHO = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"]


@pytest.fixture(scope="module")
def run(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> Predictions:
    generator = np.random.default_rng(2)
    lengths = generator.integers(2, 9, size=60)
    plain = make_corpus(
        [[("U", int(generator.choice([0, 0, AO, SHO]))) for _ in range(k)] for k in lengths]
    )
    meta = {
        "timing": generator.choice(["late", "early", "mid", ""], size=60).tolist(),
        "scenario": generator.choice(["S2", "S1"], size=60).tolist(),
    }
    corpus = replace(plain, meta=meta)
    size = len(corpus.gold)
    tags = np.where(generator.random(size) < 0.6, corpus.gold, generator.choice([0, AO], size))
    outcomes = "".join("u" if i % 17 == 0 else "o" for i in range(size))
    return make_predictions(corpus, tags * (np.arange(size) % 17 != 0), outcomes)


@pytest.mark.parametrize("by", ["timing", "scenario", "length"])
@pytest.mark.parametrize("level", ["turn", "dialogue", "confirm"])
def test_a_part_of_dialogues_scores_like_the_corpus_of_these_dialogues(
    run: Predictions, by: By, level: Level
) -> None:
    found = subgroups(run, by, level=level, draws=0)
    assert found["part"].nunique() > 1
    for name, part in found.groupby("part"):
        if by == "length":
            low, _, high, *_ = str(name).split()
            chosen = [
                i for i, d in enumerate(run.corpus) if int(low) <= len(d.user_turns) <= int(high)
            ]
        else:
            chosen = [i for i, v in enumerate(run.corpus.meta[by]) if v == name]
        scored = evaluate(run.subset(run.corpus.subset(chosen, "part")), level=level, draws=0)
        assert set(part["dialogues"]) == {len(chosen)}
        assert set(part["units"]) == {scored.turns if level == "turn" else len(chosen)}
        assert set(part["support"]) == {sum(scored.support.values())}
        expected = [scored.estimate(name).value for name in MEASURES]
        assert part["value"].tolist() == pytest.approx(expected)


def test_reveal_timings_come_in_their_order_and_unknown_ones_are_left_out(
    run: Predictions,
) -> None:
    frame = subgroups(run, "timing", draws=0)
    assert frame["part"].unique().tolist() == ["early", "mid", "late"]
    assert set(frame[["value", "low", "high"]].dtypes) == {np.dtype(float)}
    assert frame[["low", "high"]].isna().all(axis=None)
    assert subgroups(run, "scenario", draws=0)["part"].unique().tolist() == ["S1", "S2"]
    unknown = replace(run, corpus=replace(run.corpus, meta={}))
    empty = subgroups(unknown, "timing", draws=0)
    assert empty.columns.tolist() == frame.columns.tolist()
    assert not len(empty)


@pytest.mark.parametrize("by", ["position", "stage"])
def test_turns_and_stages_divide_the_labels_without_rest(run: Predictions, by: By) -> None:
    found, whole = subgroups(run, by, draws=0), evaluate(run, draws=0)
    parts = found.drop_duplicates("part")
    assert parts["support"].sum() == sum(whole.support.values())
    if by == "position":
        assert parts["units"].sum() == len(run.masks)
        assert (parts["support"] >= 20).all()
        assert parts["part"].iloc[0].startswith("User turn 1")


def test_a_stage_is_scored_on_its_labels_alone(run: Predictions) -> None:
    found = subgroups(run, "stage", level="dialogue", draws=0)
    scored = evaluate(run, level="confirm", draws=0)
    expected = [scored.estimate(name).value for name in MEASURES]
    assert found[found["part"] == "confirm"]["value"].tolist() == pytest.approx(expected)


def test_the_whole_corpus_as_one_part_has_the_interval_of_the_whole(run: Predictions) -> None:
    one = replace(run, corpus=replace(run.corpus, meta={"scenario": ["S1"] * 60}))
    found = subgroups(one, "scenario", draws=300)
    scored = evaluate(run, draws=300)
    expected = [tuple(scored.estimate(name)) for name in MEASURES]
    assert found[["value", "low", "high"]].to_numpy() == pytest.approx(np.array(expected))


def test_what_makes_no_sense_is_refused(run: Predictions) -> None:
    with pytest.raises(ScoringError, match=", ".join(get_args(By))):
        subgroups(run, "age")  # type: ignore[arg-type]
    with pytest.raises(ScoringError, match="level 'turn'"):
        subgroups(run, "position", level="dialogue")
