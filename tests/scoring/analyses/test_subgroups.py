"""Scores of subgroups, compared with a corpus of only these dialogues."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.scoring.analyses.subgroups import MEASURES, By, subgroups
from cradle_lib.scoring.evaluate import evaluate

from ..made_runs import AO, SHO, make_corpus, make_predictions


@pytest.fixture(scope="module")
def run() -> Predictions:
    chance = np.random.default_rng(2)
    lengths = chance.integers(2, 9, size=60)
    plain = make_corpus(
        [[("U", int(chance.choice([0, 0, AO, SHO]))) for _ in range(k)] for k in lengths]
    )
    meta = {
        "timing": chance.choice(["late", "early", "mid", ""], size=60).tolist(),
        "scenario": chance.choice(["S2", "S1"], size=60).tolist(),
    }
    corpus = replace(plain, meta=meta)
    size = len(corpus.gold)
    tags = np.where(chance.random(size) < 0.6, corpus.gold, chance.choice([0, AO], size))
    outcomes = "".join("u" if i % 17 == 0 else "o" for i in range(size))
    return make_predictions(corpus, tags * (np.arange(size) % 17 != 0), outcomes)


@pytest.mark.parametrize(
    ("by", "order"),
    [("timing", ["early", "mid", "late"]), ("scenario", ["S1", "S2"]), ("length", None)],
)
def test_a_subgroup_scores_like_a_corpus_of_its_dialogues(
    run: Predictions, by: By, order: list[str] | None
) -> None:
    found = subgroups(run, by, draws=0)
    assert order in (None, found["part"].unique().tolist())
    assert found["part"].nunique() > 1
    for name, part in found.groupby("part"):
        if by == "length":
            low, _, high, *_ = str(name).split()
            sizes = [len(dialogue.user_turns) for dialogue in run.corpus]
            chosen = [i for i, size in enumerate(sizes) if int(low) <= size <= int(high)]
        else:
            chosen = [i for i, v in enumerate(run.corpus.meta[by]) if v == name]
        scored = evaluate(run.subset(run.corpus.subset(chosen, "part")), draws=0)
        assert set(part["dialogues"]) == {len(chosen)}
        assert set(part["units"]) == {len(scored.run.masks)}
        assert set(part["support"]) == {sum(scored.support.values())}
        expected = [scored.estimate(name).value for name in MEASURES]
        assert part["value"].tolist() == pytest.approx(expected)


def test_a_part_that_many_draws_lack_has_no_interval() -> None:
    # Two of twenty dialogues are long: (18 / 20) ** 20 = 12 % of draws lack both.
    short, long = [("U", AO)], [("U", AO), ("U", AO), ("U", 0)]
    corpus = make_corpus([short] * 18 + [long] * 2)
    run = make_predictions(corpus, np.array([AO, 0] * 9 + [AO, 0, 0] * 2))
    parts = subgroups(run, "length", draws=500)
    recall = parts[parts["score"] == "micro_recall"]
    assert recall["dialogues"].tolist() == [18, 2]
    assert recall["value"].tolist() == [0.5, 0.5]
    assert recall["low"].isna().tolist() == recall["high"].isna().tolist() == [False, True]


@pytest.mark.parametrize("by", ["position", "stage"])
def test_positions_and_stages_partition_the_labels(run: Predictions, by: By) -> None:
    found, whole = subgroups(run, by, draws=0), evaluate(run, draws=0)
    parts = found.drop_duplicates("part")
    assert parts["support"].sum() == sum(whole.support.values())
    if by == "position":
        assert parts["units"].sum() == len(run.masks)
        assert (parts["support"] >= 20).all()
        assert parts["part"].iloc[0].startswith("User turn 1")


def test_one_subgroup_with_all_dialogues_has_the_interval_of_the_corpus(run: Predictions) -> None:
    one = replace(run, corpus=replace(run.corpus, meta={"scenario": ["S1"] * 60}))
    found = subgroups(one, "scenario", draws=300)
    scored = evaluate(run, draws=300)
    expected = [tuple(scored.estimate(name)) for name in MEASURES]
    assert found[["value", "low", "high"]].to_numpy() == pytest.approx(np.array(expected))
    # Without metadata, the frame has no rows and the same columns.
    empty = subgroups(one, "timing", draws=0)
    assert empty.columns.tolist() == found.columns.tolist()
    assert not len(empty)
