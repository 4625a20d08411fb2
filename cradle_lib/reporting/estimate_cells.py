"""Cells of estimates: a number with its interval, in percent or in turns."""

from __future__ import annotations

import math

from cradle_lib.reporting.tables import UNDEFINED, Cell, percent
from cradle_lib.scoring.evaluate import Estimate


def share(estimate: Estimate) -> Cell:
    """Makes a cell of a share with its interval, in percent."""
    value, low, high = estimate
    return percent(value, None if low is None or high is None else (low, high))


def turns(estimate: Estimate, endless: str = "not reached", *, digits: int = 2) -> Cell:
    """Makes a cell of a number with its interval.

    Args:
        estimate: The number; infinity is shown as words, NaN as ``n/a``.
        endless: The words.
        digits: Decimals, cut off where they are zeros.

    Returns:
        The cell; an interval from infinity to infinity is not shown.
    """
    value, low, high = estimate
    if math.isnan(value):
        return Cell(UNDEFINED, value)
    shown = _plain(value, endless, digits)
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return Cell(shown, value)
    ends = [_plain(end, endless, digits) for end in (low, high)]
    span = "" if math.isinf(low) and low == high else " to ".join(ends)
    return Cell(shown, value, (low, high), span)


def _plain(value: float, endless: str, digits: int) -> str:
    if math.isinf(value):
        return endless
    fixed = f"{value:,.{digits}f}"
    return fixed.rstrip("0").rstrip(".") if value == int(value) else fixed
