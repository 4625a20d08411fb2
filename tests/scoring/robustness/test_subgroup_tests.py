"""Tests of subgroups: a closed form, planted effects, and no effect at all."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2

from cradle_lib.corpus import Corpus
from cradle_lib.detection.journals.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import BITS
from cradle_lib.scoring.robustness.subgroup_tests import ALL_RUNS, subgroup_tests, wald_terms

SH = BITS["confirm_SH_ongoing"]
SCENARIOS = ("S1", "S2", "S3")
TIMINGS = ("early", "late")
MakePredictions = Callable[..., Predictions]


def test_two_groups_of_single_labels_have_a_closed_form() -> None:
    # The log odds ratio of a table of four counts, and Woolf's variance of it.
    a, b, c, d = 30, 12, 18, 25
    rows = [("x", 1)] * a + [("x", 0)] * b + [("y", 1)] * c + [("y", 0)] * d
    data = pd.DataFrame(rows, columns=["part", "hit"]).assign(dialogue=range(len(rows)))
    found = wald_terms(data, "hit ~ C(part)")["C(part)"]
    expected = math.log(a * d / (b * c)) ** 2 / (1 / a + 1 / b + 1 / c + 1 / d)
    assert found["statistic"] == pytest.approx(expected, rel=1e-4)
    assert found["p"] == pytest.approx(chi2.sf(expected, 1), rel=1e-3)


def test_what_separates_hits_from_misses_is_not_tested() -> None:
    data = pd.DataFrame({"part": ["x", "y"] * 20, "hit": [1, 0] * 20, "dialogue": range(40)})
    assert wald_terms(data, "hit ~ C(part)") == {}


@pytest.fixture
def corpus(make_corpus: Callable[..., Corpus]) -> Corpus:
    chance = np.random.default_rng(5)
    dialogues = [[("U", SH if chance.random() < 0.6 else 0) for _ in range(5)] for _ in range(240)]
    made = make_corpus(dialogues)
    meta = {
        "scenario": [SCENARIOS[place % 3] for place in range(240)],
        "timing": [TIMINGS[place // 3 % 2] for place in range(240)],
    }
    return Corpus(made.name, made.dialogues, made.path, meta)


def tags(corpus: Corpus, seed: int, share: Callable[[str], float]) -> list[int]:
    chance = np.random.default_rng(seed)
    scenarios = [corpus.meta["scenario"][place] for place in corpus.dialogue_of]
    return [SH if chance.random() < share(scenario) else 0 for scenario in scenarios]


def test_a_planted_difference_is_found_where_it_is(
    corpus: Corpus, make_predictions: MakePredictions
) -> None:
    def named(name: str, given: list[int]) -> Predictions:
        run = make_predictions(corpus, given)
        record = run.record.model_copy(update={"name": name})
        return Predictions(**{**vars(run), "record": record})

    uneven = named("uneven", tags(corpus, 1, {"S1": 0.8, "S2": 0.5, "S3": 0.3}.__getitem__))
    even = named("even", tags(corpus, 2, lambda _: 0.5))
    silent = named("silent", [0] * len(corpus.gold))
    p = subgroup_tests([uneven, even, silent]).set_index(["system", "term"])["adjusted_p"]
    assert p["uneven", "scenario"] < 1e-6
    assert p[ALL_RUNS, "system by scenario"] < 1e-6
    others = [("uneven", "timing"), ("even", "scenario"), ("even", "timing"), ("even", "position")]
    assert p.loc[[*others, (ALL_RUNS, "system by timing")]].gt(0.05).all()
    assert p["silent"].isna().all()


def test_without_an_effect_few_tests_reject(
    corpus: Corpus, make_predictions: MakePredictions
) -> None:
    runs = [make_predictions(corpus, tags(corpus, seed, lambda _: 0.5)) for seed in range(20)]
    p = pd.concat([subgroup_tests([run]) for run in runs])["p"]
    # 60 tests of a true null: more than 9 below 0.05 come by chance once in a thousand times.
    assert p.notna().all()
    assert p.lt(0.05).sum() <= 9


def test_a_corpus_without_scenarios_is_refused(
    make_corpus: Callable[..., Corpus], make_predictions: MakePredictions
) -> None:
    plain = make_corpus([[("U", SH)]])
    with pytest.raises(ScoringError, match="scenario and timing"):
        subgroup_tests([make_predictions(plain, [SH])])
    with pytest.raises(ScoringError, match="no run"):
        subgroup_tests([])
