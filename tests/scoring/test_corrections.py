"""Corrections of p-values for many tests, against definitions, scipy and statsmodels."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import false_discovery_control
from statsmodels.stats.multitest import multipletests

from cradle_lib.scoring.compare import adjust

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
    assert np.isnan(adjust(np.full(4, np.nan), "holm")).all()


@settings(deadline=None, max_examples=100)
@given(chances)
def test_both_methods_agree_with_statsmodels(p: list[float]) -> None:
    for method in ("holm", "fdr_bh"):
        found = adjust(np.array([np.nan, *p]), method)
        assert found[1:] == pytest.approx(multipletests(p, method=method)[1])
        assert np.isnan(found[0])
