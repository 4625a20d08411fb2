from __future__ import annotations

import numpy as np
import pytest

from cradle_lib.statistics.bootstrap import bootstrap, excludes


def test_without_dialogues_there_is_no_interval() -> None:
    found = bootstrap(np.zeros((0, 2)), lambda t: {"sum": t}, draws=5, seed=0)["sum"]
    assert found.value.tolist() == [0, 0]
    assert np.isnan([found.low, found.high]).all()


def test_a_statistic_outside_its_percentiles_has_no_interval() -> None:
    rows = np.eye(40)
    found = bootstrap(
        rows,
        lambda t: {"seen": (t > 0).mean(axis=-1), "first": t[..., 0]},
        draws=400,
        seed=1,
    )
    picks = np.random.default_rng(1).integers(0, 40, size=(400, 40))
    # Every dialogue is in the corpus; a draw contains about 1 - (1 - 1/40)^40 = 64 % of them.
    assert np.quantile([len(set(pick)) / 40 for pick in picks.tolist()], 0.975) < 0.8
    assert found["seen"].value == 1
    assert np.isnan([found["seen"].low, found["seen"].high]).all()
    first = [int((pick == 0).sum()) for pick in picks]
    assert tuple(found["first"]) == (1, *np.quantile(first, [0.025, 0.975]))


@pytest.mark.parametrize(
    ("value", "low", "high", "expected"),
    [
        (0.3, 0.1 + 0.2, 0.4, False),
        (3e5, 1e5, 3e5 * (1 - 1e-15), False),
        (np.inf, 1.0, 5.0, True),
        (np.inf, 1.0, np.inf, False),
        (1.0, np.nan, np.nan, False),
    ],
)
def test_rounding_does_not_put_a_statistic_outside(
    value: float, low: float, high: float, expected: bool
) -> None:
    assert excludes(*map(np.float64, (value, low, high))) == expected
