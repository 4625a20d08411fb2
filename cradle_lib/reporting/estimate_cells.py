"""Cells of estimates: a share with its interval, in percent."""

from __future__ import annotations

from cradle_lib.reporting.tables import Cell, percent
from cradle_lib.scoring.evaluate import Estimate


def share(estimate: Estimate) -> Cell:
    """Makes a cell of a share with its interval, in percent."""
    value, low, high = estimate
    return percent(value, None if low is None or high is None else (low, high))
