from __future__ import annotations

import math

import numpy as np
import pytest

from cradle_lib.errors import ScoringError
from cradle_lib.statistics.bootstrap import bootstrap


def test_without_draws_values_have_no_bounds() -> None:
    found = bootstrap(np.eye(3), lambda t: {"sum": t.sum(axis=-1)}, draws=0, seed=0)["sum"]
    assert tuple(found) == pytest.approx((3.0, math.nan, math.nan), nan_ok=True)


@pytest.mark.parametrize(("n", "number"), [(0, 5), (3, -1)])
def test_empty_data_and_negative_draws_are_refused(n: int, number: int) -> None:
    with pytest.raises(ScoringError, match="at least 1"):
        bootstrap(np.zeros((n, 2)), lambda t: {"sum": t}, draws=number, seed=0)
