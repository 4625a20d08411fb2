from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from cradle_lib.errors import ScoringError
from cradle_lib.scoring.comparison.ranking import adjust, standings

chances = st.lists(st.floats(0, 1), min_size=1, max_size=9)


def test_holm_on_paper() -> None:
    # Sorted .01, .02, .03, .04: times 4, 3, 2, 1 gives .04, .06, .06, .04, then the running
    # maximum .04, .06, .06, .06. The untested one is no member of the family.
    found = adjust(np.array([0.04, 0.01, np.nan, 0.03, 0.02]), "holm")
    assert found == pytest.approx([0.06, 0.04, np.nan, 0.06, 0.06], nan_ok=True)


@settings(deadline=None, max_examples=100)
@given(chances)
def test_holm_is_its_definition(p: list[float]) -> None:
    found = adjust(np.array(p), "holm")
    order = np.argsort(p, kind="stable")
    running = 0.0
    for place, i in enumerate(order):
        running = max(running, min(1.0, (len(p) - place) * p[i]))
        assert found[i] == pytest.approx(running)


@settings(deadline=None, max_examples=100)
@given(chances)
def test_benjamini_and_hochberg_agree_with_scipy(p: list[float]) -> None:
    assert adjust(np.array(p), "fdr_bh") == pytest.approx(false_discovery_control(p, method="bh"))


def test_nothing_tested_stays_untested() -> None:
    assert np.isnan(adjust(np.full((2, 2), np.nan), "holm")).all()


PAIRS = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]])


def test_tie_groups_on_paper() -> None:
    # 0 and 1 tie, 1 and 2 tie, 0 beats 2, and everybody beats 3.
    p = np.array([0.3, 0.01, 0.01, 0.2, 0.01, 0.01])
    found = standings(np.array([0.6, 0.5, 0.4, 0.1]), PAIRS, p)
    assert found.reset_index().to_numpy().tolist() == [
        [0, 1, 1, 2],
        [1, 1, 1, 3],
        [2, 1, 2, 3],
        [3, 2, 4, 4],
    ]


def test_what_was_not_tested_is_a_tie() -> None:
    found = standings(np.array([0.1, 0.2, 0.3, 0.4]), PAIRS, np.full(6, np.nan))
    assert found.index.tolist() == [3, 2, 1, 0]
    assert {*found.itertuples(index=False, name=None)} == {(1, 1, 4)}


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.floats(0, 1), min_size=4, max_size=4),
    st.lists(st.booleans(), min_size=6, max_size=6),
)
def test_no_group_boundary_runs_through_a_tie(values: list[float], shown: list[bool]) -> None:
    p = np.where(shown, 0.001, 0.9)
    found = standings(np.array(values), PAIRS, p)
    assert sorted(found.index) == [0, 1, 2, 3]
    group = found["tie_group"]
    for (a, b), chance in zip(PAIRS, p, strict=True):
        if chance > 0.05 or values[a] == values[b]:
            assert group[a] == group[b]
    for place, standing in enumerate(found.itertuples(), start=1):
        assert standing.best_place <= place <= standing.worst_place


def test_every_pair_must_have_been_tested() -> None:
    with pytest.raises(ScoringError, match="every pair"):
        standings(np.array([0.1, 0.2, 0.3]), PAIRS[:2], np.array([0.1, 0.1]))
