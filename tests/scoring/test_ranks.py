"""Ranks and their ranges against scores of drawn dialogues, one draw after another."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import BITS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.ranks import rank_ranges

AO, SHO = BITS["alert_ongoing"], BITS["confirm_SH_ongoing"]
N, DRAWS, SEED = 12, 400, 3


@pytest.fixture(scope="module")
def runs(
    make_corpus: Callable[..., Corpus], make_predictions: Callable[..., Predictions]
) -> list[Predictions]:
    generator = np.random.default_rng(5)
    corpus = make_corpus(
        [[("U", int(generator.choice([0, AO, SHO]))) for _ in range(4)] for _ in range(N)]
    )
    found = []
    for share in (0.9, 0.8, 0.6, 0.55, 0.0, 0.0):
        kept = generator.random(len(corpus.gold)) < share
        found.append(make_predictions(corpus, np.where(kept, corpus.gold, 0)))
    return found


def ranks_by_hand(runs: list[Predictions], drawn: list[int]) -> list[tuple[int, int]]:
    """The best and the worst rank of each run over some dialogues, by plain counting."""
    scores = []
    for run in runs:
        tp = errors = 0
        for dialogue in drawn:
            own = run.corpus.dialogue_of == dialogue
            for gold, tagged in zip(run.corpus.gold[own], run.masks[own], strict=True):
                tp += (int(gold) & int(tagged)).bit_count()
                errors += (int(gold) ^ int(tagged)).bit_count()
        scores.append(2 * tp / (2 * tp + errors) if tp + errors else 0.0)
    return [
        (1 + sum(other > own for other in scores), sum(other >= own for other in scores))
        for own in scores
    ]


def test_ranges_are_those_of_the_ranks_in_each_draw(runs: list[Predictions]) -> None:
    found = rank_ranges([evaluate(run, draws=DRAWS, seed=SEED) for run in runs])
    picks = np.random.default_rng(SEED).integers(0, N, size=(DRAWS, N))
    drawn = np.array([ranks_by_hand(runs, pick.tolist()) for pick in picks])
    expected = []
    for place, (rank, _) in enumerate(ranks_by_hand(runs, list(range(N)))):
        low = math.floor(np.quantile(drawn[:, place, 0], 0.025))
        high = math.ceil(np.quantile(drawn[:, place, 1], 0.975))
        expected.append((rank, low, high))
        inside = (drawn[:, place, 0] >= low) & (drawn[:, place, 1] <= high)
        assert inside.mean() >= 0.94
    # Systems change places in some draws, and the last two are equal in all of them.
    expected.sort(key=lambda row: row[0])
    assert expected[-2:] == [(5, 5, 6), (5, 5, 6)]
    assert [low < high for _, low, high in expected[:4]] == [True] * 4
    ranks = found[["rank", "low", "high"]].itertuples(index=False, name=None)
    assert list(ranks) == expected
    assert found["ranks"].tolist()[-1] == "5 to 6"


def test_levels_and_dialogues_are_ranked_apart(runs: list[Predictions]) -> None:
    part = runs[0].corpus.subset(range(4), "four")
    all_runs = [*runs[:3], runs[0].subset(part), runs[2].subset(part)]
    scored = [
        evaluate(run, level=level, draws=0) for level in ("turn", "dialogue") for run in all_runs
    ]
    found = rank_ranges(scored)
    assert found.groupby(["level", "over"], sort=False).size().tolist() == [3, 2, 3, 2]
    assert found.groupby(["level", "over"])["rank"].min().eq(1).all()
    # Without draws the range is the rank itself.
    assert found["low"].tolist() == found["rank"].tolist()
    assert rank_ranges([]).columns.tolist() == found.columns.tolist()
