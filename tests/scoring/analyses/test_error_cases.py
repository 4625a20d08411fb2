"""The selection of examples of errors."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pandas as pd
import pytest

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.analyses.error_cases import error_cases, turn_marks
from cradle_lib.scoring.label_pairs import KINDS, label_pairs

from ..made_runs import AO, AP, DVO, SHO, SHP, make_corpus, make_predictions, run_of


@pytest.mark.parametrize(("seed", "models", "per_category"), [(0, 1, 1), (1, 3, 1), (2, 3, 2)])
def test_error_cases_follow_the_documented_rule(seed: int, models: int, per_category: int) -> None:
    chance = np.random.default_rng(seed)
    choices = [0, 0, 0, AO, AP, SHO, SHP, DVO, AO | SHO]
    gold, *predicted = (chance.choice(choices, size=60) for _ in range(models + 1))
    corpus = make_corpus([[("U", int(m)) for m in gold[i : i + 5]] for i in range(0, 60, 5)])
    runs = [make_predictions(corpus, m.tolist(), name=f"m{i}") for i, m in enumerate(predicted)]
    cases = error_cases(runs, per_category=per_category, seed=seed)
    assert cases["dialogue"].is_unique
    used: set[str] = set()
    errors = pd.concat(
        label_pairs(run).drop_duplicates(["dialogue", "turn", "category"]) for run in runs
    )
    for category in KINDS:
        own = errors[errors["category"] == category]
        erring = Counter(zip(own["dialogue"], own["turn"], strict=True))
        chosen = cases[cases["title"].str.lower().str.replace(" ", "_") == category]
        for case in chosen.itertuples():
            left = [number for (dialogue, _), number in erring.items() if dialogue not in used]
            assert len(case.systems) == erring[case.dialogue, case.turn] == max(left)
            used.add(case.dialogue)
        assert len(chosen) == per_category or all(dialogue in used for dialogue, _ in erring)
    assert error_cases(runs, per_category=per_category, seed=seed, most=1).equals(cases[:1])


def test_only_the_seed_decides_between_ties() -> None:
    run = run_of([[(0, 0), (SHO, 0)]] * 30)
    picked = [error_cases([run], seed=seed)["dialogue"][0] for seed in (0, 0, 1, 2, 3)]
    assert picked[0] == picked[1]
    assert len(set(picked)) > 1


def test_models_must_have_answered_the_same_corpus() -> None:
    for runs in ([], [run_of([[(SHO, 0)]]), run_of([[(SHO, 0), (0, 0)]])]):
        with pytest.raises(ScoringError, match="over the same dialogues"):
            error_cases(runs)


def test_runs_with_the_same_name_are_not_marked_as_one() -> None:
    corpus = make_corpus([[("U", SHO)]])
    pair = [make_predictions(corpus, [mask], name="a") for mask in (0, SHO)]
    with pytest.raises(ScoringError, match="runs to mark: a, a"):
        turn_marks(pair)
