"""Wilson intervals, compared with statsmodels and SciPy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import brentq
from statsmodels.stats.proportion import proportion_confint

from cradle_lib.statistics.bootstrap import bootstrap
from cradle_lib.statistics.proportions import wilson, wilson_f1


@settings(deadline=None, max_examples=100)
@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(0, 20))
def test_independent_occurrences_have_the_interval_of_statsmodels(
    right: list[bool], without: int
) -> None:
    hits = np.array([*right, *[False] * without], dtype=int)
    of = np.array([1] * len(right) + [0] * without)
    expected = proportion_confint(sum(right), len(right), method="wilson")
    assert wilson(hits, of) == pytest.approx(expected, abs=1e-9)


def test_the_bounds_are_the_limits_of_a_score_test() -> None:
    def score(p: float) -> float:
        return float(abs(7 / 30 - p) / np.sqrt(p * (1 - p) / 30) - 1.959963984540054)

    expected = brentq(score, 1e-6, 7 / 30 - 1e-9), brentq(score, 7 / 30 + 1e-9, 1 - 1e-6)
    found = wilson(np.array([1] * 7 + [0] * 23), np.ones(30))
    assert found == pytest.approx(expected, abs=1e-6)


def test_occurrences_of_one_dialogue_are_not_independent() -> None:
    # Ten dialogues with four occurrences each, all correct or all wrong, count as ten.
    hits = np.array([4] * 3 + [0] * 7)
    expected = proportion_confint(3, 10, method="wilson")
    assert wilson(hits, np.full(10, 4)) == pytest.approx(expected)
    # Without variation, the occurrences of a dialogue count as one, too.
    expected = proportion_confint(0, 10, method="wilson")
    assert wilson(np.zeros(10), np.full(10, 4)) == pytest.approx(expected)


def test_a_label_without_true_positives_has_an_interval() -> None:
    tp, errors = np.zeros(600), np.r_[np.ones(4), np.zeros(596)]
    low, high = wilson_f1(tp, errors)
    share = proportion_confint(0, 4, method="wilson")[1]
    assert (low, high) == pytest.approx((0, 2 * share / (1 + share)))
    assert high > 0.5
    # All bootstrap draws are 0, so that the bootstrap has no interval.
    found = bootstrap(
        np.stack([tp, errors], axis=1), lambda t: {"tp": t[..., 0]}, draws=50, seed=0
    )["tp"]
    assert tuple(found) == pytest.approx((0, np.nan, np.nan), nan_ok=True)


def test_without_occurrences_there_is_no_interval() -> None:
    low, high = wilson_f1(np.zeros((5, 2)), np.array([[0, 1]] * 5))
    assert np.isnan([low[0], high[0]]).all()
    assert (low[1], high[1]) == pytest.approx((0, high[1]))
    assert 0 < high[1] < 1
