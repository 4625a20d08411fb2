from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cradle_lib.errors import ScoringError
from cradle_lib.scoring import intervals
from cradle_lib.scoring.counts import Counts
from cradle_lib.scoring.draws import bounds, draw_totals, measure, middle
from cradle_lib.scoring.intervals import resample


def test_draws_are_those_behind_every_score() -> None:
    generator = np.random.default_rng(0)
    tallies = generator.integers(0, 5, size=(30, 16, 3)).astype(np.int32)
    counts = Counts("turn", tallies, np.zeros((30, 3)))
    expected = resample(counts, draws=40, seed=3)[:, :48]
    assert np.array_equal(draw_totals(tallies, draws=40, seed=3).reshape(40, 48), expected)


def test_large_numbers_fractions_and_blocks_give_the_same_draws(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rows = np.random.default_rng(1).integers(0, 9, size=(20, 3))
    plain = draw_totals(rows, draws=30, seed=1)
    assert np.array_equal(draw_totals(rows * 10**7, draws=30, seed=1), plain * 10**7)
    assert draw_totals(rows / 4, draws=30, seed=1) == pytest.approx(plain / 4)
    monkeypatch.setattr(intervals, "_KEPT", 0)
    assert np.array_equal(draw_totals(rows, draws=30, seed=1), plain)


@settings(deadline=None, max_examples=100)
@given(npst.arrays(np.int64, st.tuples(st.integers(1, 3), st.just(6)), elements=st.integers(0, 4)))
def test_the_middle_of_a_histogram_is_numpys_median(histogram: np.ndarray) -> None:
    values = np.array([-math.inf, -2.0, 0.0, 1.5, 4.0, 9.0])
    for row, found in zip(histogram, middle(histogram.astype(float), values), strict=True):
        written = np.repeat(values, row)
        if not len(written):
            assert math.isnan(found)
            continue
        half = sorted(written)[(len(written) - 1) // 2], sorted(written)[len(written) // 2]
        assert found == (half[0] + half[1]) / 2


def test_bounds_are_quantiles_and_survive_infinity_and_a_few_undefined_draws() -> None:
    grid = np.arange(1000.0)
    broken, endless, rare = grid.copy(), grid.copy(), grid.copy()
    broken[:60] = np.nan
    endless[500:] = np.inf
    rare[:10] = np.nan
    low, high = bounds(np.stack([grid, broken, endless, rare], axis=1))
    assert (low[0], high[0]) == pytest.approx(np.quantile(grid, [0.025, 0.975]))
    assert math.isnan(low[1])
    assert math.isnan(high[1])
    assert low[2] == pytest.approx(24, abs=1)
    assert high[2] == math.inf
    assert (low[3], high[3]) == pytest.approx((34, 975), abs=1)


def test_without_draws_there_are_values_and_no_bounds() -> None:
    found = measure(np.eye(3), {"sum": lambda t: t.sum(axis=-1)}, draws=0, seed=0)["sum"]
    assert found.estimate() == (3.0, None, None)


@pytest.mark.parametrize(("n", "number"), [(0, 5), (3, -1)])
def test_nothing_to_draw_is_refused(n: int, number: int) -> None:
    with pytest.raises(ScoringError, match="at least 1"):
        measure(np.zeros((n, 2)), {}, draws=number, seed=0)
