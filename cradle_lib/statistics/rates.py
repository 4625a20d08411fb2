"""Ratios of counts, with a chosen value for a zero denominator."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cradle_lib.arguments import checked

Floats = NDArray[np.float64]


@checked
def ratio(above: Floats, below: Floats, otherwise: float = np.nan) -> Floats:
    """Divides, with a chosen value where the denominator is 0.

    Args:
        above: Numerators.
        below: Denominators, of a shape that broadcasts.
        otherwise: The value of 0/0 and x/0.

    Returns:
        Quotients.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.asarray(np.true_divide(above, below))
    np.copyto(found, otherwise, where=np.equal(below, 0))
    return found


def f1(tp: Floats, gold_and_predicted: Floats, zero_division: float = np.nan) -> Floats:
    """Computes F1 from true positives and gold labels plus predictions (2 tp + fp + fn)."""
    return ratio(2 * tp, gold_and_predicted, zero_division)
