from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

from cradle_lib.errors import ScoringError
from cradle_lib.statistics.bootstrap import bootstrap, histogram_median


@settings(deadline=None, max_examples=100)
@given(npst.arrays(np.int64, st.tuples(st.integers(1, 3), st.just(6)), elements=st.integers(0, 4)))
def test_the_median_of_a_histogram_is_numpys_median(histogram: np.ndarray) -> None:
    values = np.array([-math.inf, -2.0, 0.0, 1.5, 4.0, 9.0])
    for row, found in zip(
        histogram, histogram_median(histogram.astype(float), values), strict=True
    ):
        written = np.repeat(values, row)
        if not len(written):
            assert math.isnan(found)
            continue
        half = sorted(written)[(len(written) - 1) // 2], sorted(written)[len(written) // 2]
        assert found == (half[0] + half[1]) / 2


def test_without_draws_there_are_values_and_no_bounds() -> None:
    found = bootstrap(np.eye(3), lambda t: {"sum": t.sum(axis=-1)}, draws=0, seed=0)["sum"]
    assert tuple(found) == pytest.approx((3.0, math.nan, math.nan), nan_ok=True)


@pytest.mark.parametrize(("n", "number"), [(0, 5), (3, -1)])
def test_nothing_to_draw_is_refused(n: int, number: int) -> None:
    with pytest.raises(ScoringError, match="at least 1"):
        bootstrap(np.zeros((n, 2)), lambda t: {"sum": t}, draws=number, seed=0)
