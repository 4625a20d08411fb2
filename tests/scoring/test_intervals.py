from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.stats import bootstrap

from cradle_lib.scoring.scores import scores
from cradle_lib.statistics.bootstrap import bootstrap as our_bootstrap
from cradle_lib.statistics.bootstrap import bounds

from .made_runs import systems


def test_bounds_agree_with_scipys_percentile_bootstrap() -> None:
    [counts] = systems(1, 80, 1)

    def micro_f1(index: NDArray[np.int64], axis: int) -> NDArray[np.float64]:
        return scores(counts.rows[index].sum(axis=-3)).micro_f1

    theirs = bootstrap(
        (np.arange(80),),
        micro_f1,
        n_resamples=2999,
        method="percentile",
        vectorized=True,
        rng=np.random.default_rng(5),
    ).confidence_interval
    ours = our_bootstrap(
        counts.rows, lambda t: {"micro_f1": scores(t).micro_f1}, draws=3000, seed=0
    )["micro_f1"]
    # The bounds of two independent bootstraps differ by about 0.002 here.
    assert float(ours.low) == pytest.approx(theirs.low, abs=0.005)
    assert float(ours.high) == pytest.approx(theirs.high, abs=0.005)


def test_bounds_accept_infinity_and_a_few_undefined_draws() -> None:
    grid = np.arange(1000.0)
    broken, endless, rare, silent = grid.copy(), grid.copy(), grid.copy(), np.full(1000, np.nan)
    broken[:60] = np.nan
    endless[500:] = np.inf
    rare[:10] = np.nan
    low, high = bounds(np.stack([grid, broken, endless, rare, silent], axis=1))
    assert (low[0], high[0]) == pytest.approx(np.quantile(grid, [0.025, 0.975]))
    assert np.isnan([low[1], high[1], low[4], high[4]]).all()
    assert low[2] == pytest.approx(24, abs=1)
    assert high[2] == np.inf
    assert (low[3], high[3]) == pytest.approx((34, 975), abs=1)
