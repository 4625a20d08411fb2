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
from cradle_lib.scoring.core.conventions import Level
from cradle_lib.scoring.core.evaluate import evaluate
from cradle_lib.scoring.robustness.subgroups import MEASURES, By, cohorts

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
def test_a_cohort_of_dialogues_scores_like_the_corpus_of_these_dialogues(
    run: Predictions, by: By, level: Level
) -> None:
    found = cohorts(run, by, level=level, draws=0)
    assert len(found.cohorts) > 1
    for cohort in found.cohorts:
        if by == "length":
            low, _, high, *_ = cohort.name.split()
            chosen = [
                i for i, d in enumerate(run.corpus) if int(low) <= len(d.user_turns) <= int(high)
            ]
        else:
            chosen = [i for i, v in enumerate(run.corpus.meta[by]) if v == cohort.name]
        scored = evaluate(run.subset(run.corpus.subset(chosen, "part")), level=level, draws=0)
        assert cohort.dialogues == len(chosen)
        assert cohort.support == sum(scored.support.values())
        for name in MEASURES:
            assert cohort.estimates[name].value == pytest.approx(scored.estimate(name).value)


def test_reveal_timings_come_in_their_order_and_unknown_ones_are_left_out(
    run: Predictions,
) -> None:
    names = [c.name for c in cohorts(run, "timing", draws=0).cohorts]
    assert names == ["early", "mid", "late"]
    assert [c.name for c in cohorts(run, "scenario", draws=0).cohorts] == ["S1", "S2"]
    unknown = replace(run, corpus=replace(run.corpus, meta={}))
    assert cohorts(unknown, "timing", draws=0).cohorts == ()


@pytest.mark.parametrize("by", ["position", "stage"])
def test_turns_and_stages_divide_the_labels_without_rest(run: Predictions, by: By) -> None:
    found, whole = cohorts(run, by, draws=0), evaluate(run, draws=0)
    assert sum(c.support for c in found.cohorts) == sum(whole.support.values())
    if by == "position":
        assert sum(c.units for c in found.cohorts) == len(run.masks)
        assert all(c.support >= 20 for c in found.cohorts)
        assert found.cohorts[0].name.startswith("User turn 1")


def test_a_stage_is_scored_on_its_labels_alone(run: Predictions) -> None:
    confirms = cohorts(run, "stage", level="dialogue", draws=0).cohorts[1]
    scored = evaluate(run, level="confirm", draws=0)
    for name in MEASURES:
        assert confirms.estimates[name].value == pytest.approx(scored.estimate(name).value)


def test_the_whole_corpus_as_one_cohort_has_the_interval_of_the_whole(run: Predictions) -> None:
    one = replace(run, corpus=replace(run.corpus, meta={"scenario": ["S1"] * 60}))
    [cohort] = cohorts(one, "scenario", draws=300).cohorts
    scored = evaluate(run, draws=300)
    for name in MEASURES:
        expected = scored.estimate(name)
        assert tuple(cohort.estimates[name]) == pytest.approx(tuple(expected))


def test_the_frame_scores_each_part_as_a_corpus_of_its_own(run: Predictions) -> None:
    corpus = run.corpus
    frame = cohorts(run, "timing", draws=0).to_frame()
    assert frame["part"].unique().tolist() == ["early", "mid", "late"]
    assert set(frame[["value", "low", "high"]].dtypes) == {np.dtype(float)}
    assert frame[["low", "high"]].isna().all(axis=None)
    for (part, score), rows in frame.groupby(["part", "score"]):
        chosen = [i for i, timing in enumerate(corpus.meta["timing"]) if timing == part]
        alone = evaluate(run.subset(corpus.subset(chosen, str(part))), draws=0)
        [row] = rows.itertuples()
        assert row.value == pytest.approx(alone.estimate(str(score)).value)
        assert (row.dialogues, row.units) == (len(chosen), alone.turns)
        assert row.support == sum(alone.support.values())
    nothing = replace(run, corpus=replace(corpus, meta={}))
    empty = cohorts(nothing, "scenario", draws=0).to_frame()
    assert empty.columns.tolist() == frame.columns.tolist()
    assert not len(empty)


def test_what_makes_no_sense_is_refused(run: Predictions) -> None:
    with pytest.raises(ScoringError, match=", ".join(get_args(By))):
        cohorts(run, "age")  # type: ignore[arg-type]
    with pytest.raises(ScoringError, match="level 'turn'"):
        cohorts(run, "position", level="dialogue")
