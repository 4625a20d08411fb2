"""Intervals for shares of few occurrences, such as the F1 of a rare label.

A percentile bootstrap only resamples what was observed: for a label that was never found, every
draw gives 0 and the interval has no width. Wilson's interval contains the true shares that are
compatible with the observations, and is wide if these are few. Precision and recall are shares of
occurrences, and so is the Jaccard index J = tp / (tp + fp + fn). F1 = 2 J / (1 + J) increases with
J, so its bounds follow from those of J.

Occurrences within a dialogue depend on each other, so n of them count as n / D independent ones.
The design effect D is the variance of the share over dialogues, divided by that of independent
occurrences, and at least 1. If the share is 0 or 1, this variance is 0 and the occurrences of a
dialogue count as one: D is then the mean, over occurrences, of the number in the same dialogue.

References:
    Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22, 1927;
    Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion", Statistical Science
    16, 2001; Dean and Pagano, "Evaluating Confidence Interval Methods for Binomial Proportions in
    Clustered Surveys", Journal of Survey Statistics and Methodology 3, 2015.
"""

from __future__ import annotations

from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib import paths
from cradle_lib.statistics.bootstrap import CONFIDENCE
from cradle_lib.statistics.rates import Floats, ratio

if TYPE_CHECKING:
    import pandas as pd

_Z: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)


def wilson(hits: NDArray[Any], of: NDArray[Any]) -> tuple[Floats, Floats]:
    """Computes 95 % intervals of shares of occurrences in N dialogues. Shapes (N, ...).

    Gives lower and upper bounds, 0 to 1; NaN where there is no occurrence. Shape (...) each.
    """
    hits, of = hits.astype(np.float64), of.astype(np.float64)
    n = of.sum(axis=0)
    share = ratio(hits.sum(axis=0), n)
    binomial = share * (1 - share) * n
    over_dialogues = ((hits - share * of) ** 2).sum(axis=0)
    cluster_size = ratio((of**2).sum(axis=0), n)
    # The number of independent occurrences that n of them count as.
    size = n / np.maximum(1.0, ratio(over_dialogues, binomial, np.nan))
    size = np.where(binomial > 0, size, ratio(n, cluster_size))
    middle = (share + _Z**2 / (2 * size)) / (1 + _Z**2 / size)
    reach = _Z / (1 + _Z**2 / size) * np.sqrt(share * (1 - share) / size + _Z**2 / (4 * size**2))
    return np.clip(middle - reach, 0, share), np.clip(middle + reach, share, 1)


def wilson_f1(tp: NDArray[Any], errors: NDArray[Any]) -> tuple[Floats, Floats]:
    """Computes 95 % intervals of F1 from the true positives and errors (fp + fn) of N dialogues.

    Shapes as for :func:`wilson`; NaN where nothing is gold or predicted.
    """
    low, high = wilson(tp, tp + errors)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def interval_coverage() -> pd.DataFrame:
    """Reads the shipped simulation: how often 95 % intervals contain the true F1.

    Returns:
        One row for each simulated case and method.

        - ``gold`` (int): gold labels expected; ``per_dialogue`` (int): occurrences in each
          dialogue that has any; ``correlation`` (float): their intraclass correlation.
        - ``method`` (str): ``percentile`` (bootstrap) or ``wilson``.
        - ``value`` (float): the share of 5,000 samples whose interval contains the true F1. A
          zero-width interval never counts as containing it.
        - ``width`` (float): the median width.
    """
    import pandas as pd

    return pd.read_csv(paths.DATA / "simulations" / "interval-coverage.csv")
