from __future__ import annotations

import math
from statistics import harmonic_mean

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import accuracy_score, jaccard_score, precision_recall_fscore_support

from cradle_lib.scoring.conventions import LEVELS, Conventions, Level
from cradle_lib.scoring.scores import PER_LABEL, scores

from .made_runs import AO, DVP, SHO, bits, counted

mask = st.one_of(st.sampled_from([0, 0, AO, SHO, DVP, AO | SHO]), st.integers(0, 65535))
rows = st.lists(st.tuples(st.integers(0, 4), mask, mask), min_size=1, max_size=40).map(
    lambda found: sorted(found, key=lambda row: row[0])
)


@settings(deadline=None, max_examples=50)
@given(rows, st.sampled_from(LEVELS), st.sampled_from([0.0, 1.0]), st.sampled_from([0.0, 1.0]))
def test_every_score_equals_scikit_learns(
    found: list[tuple[int, int, int]], level: Level, zero: float, empty: float
) -> None:
    dialogue, gold, predicted = (np.array(column) for column in zip(*found, strict=True))
    chosen = Conventions(empty_jaccard=empty, zero_division=zero)
    counts = counted(gold, predicted, dialogue, 5, level=level, conventions=chosen)
    result = scores(counts.total, level=level, zero_division=zero)

    truth, guess = bits(gold), bits(predicted)
    if level != "turn":
        present = np.unique(dialogue)
        truth, guess = (
            np.array([table[dialogue == d].max(axis=0) for d in present])
            for table in (truth, guess)
        )
    if level == "confirm":
        truth, guess = truth[:, 2:], guess[:, 2:]
    harmonic = scores(counts.total, level=level, zero_division=zero, macro_f1="harmonic")
    both = float(result.macro_precision), float(result.macro_recall)
    assert harmonic.macro_f1 == pytest.approx(
        harmonic_mean(both) if all(both) else zero * (not any(both))
    )
    for average in ("micro", "macro"):
        expected = precision_recall_fscore_support(
            truth, guess, average=average, zero_division=zero
        )[:3]
        for name, value in zip(("precision", "recall", "f1"), expected, strict=True):
            assert getattr(result, f"{average}_{name}") == pytest.approx(value, abs=1e-12)
    expected = precision_recall_fscore_support(truth, guess, average=None, zero_division=zero)[:3]
    for name, values in zip(PER_LABEL, expected, strict=True):
        assert getattr(result, name) == pytest.approx(values, abs=1e-12)
    assert result.exact_match == pytest.approx(accuracy_score(truth, guess), abs=1e-12)
    jaccard = jaccard_score(truth, guess, average="samples", zero_division=empty)
    assert result.jaccard == pytest.approx(jaccard, abs=1e-12)


def test_the_published_confirm_jaccard_rules_out_zero_for_empty_sets() -> None:
    # 417 dialogues with a confirm, 183 without: even a perfect system stays at 69.50 < 79.40.
    gold = [SHO] * 417 + [0] * 183
    for empty, best in ((0.0, 69.5), (1.0, 100.0)):
        chosen = Conventions(empty_jaccard=empty)
        counts = counted(gold, gold, np.arange(600), 600, level="confirm", conventions=chosen)
        assert 100 * scores(counts.total, level="confirm").jaccard == pytest.approx(best)


def test_scores_without_units_are_undefined() -> None:
    result = scores(np.zeros((17, 3)), level="confirm")
    assert math.isnan(result.exact_match)
    assert math.isnan(result.jaccard)
    assert result.micro_f1 == 0
