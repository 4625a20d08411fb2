from __future__ import annotations

import numpy as np
import pytest

from cradle_lib.errors import ScoringError
from cradle_lib.statistics.bootstrap import bootstrap


@pytest.mark.parametrize(("n", "number"), [(0, 5), (3, -1)])
def test_empty_data_and_negative_draws_are_refused(n: int, number: int) -> None:
    with pytest.raises(ScoringError, match="at least 1"):
        bootstrap(np.zeros((n, 2)), lambda t: {"sum": t}, draws=number, seed=0)
