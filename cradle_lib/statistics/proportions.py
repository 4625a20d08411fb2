"""Intervals for shares of few occurrences, such as the F1 of a rare label.

A percentile bootstrap moves only what was seen: of a label that was never found every draw says 0,
and the interval has no width. Wilson's interval asks which true shares are compatible with what was
seen, and is wide where little was. Precision and recall are shares of occurrences, and so is the
Jaccard index J = tp / (tp + fp + fn), of which F1 = 2 J / (1 + J) is an increasing function: the
ends of its interval are those of J.

Occurrences of one dialogue depend on each other. They count as n / D independent ones, D being how
much larger the variance of the share over dialogues is than that of independent occurrences, and at
least 1. Where the share is 0 or 1 there is no variance to look at, and those of a dialogue count
together: D is the mean number of occurrences beside an occurrence, itself included.

References:
    Wilson, "Probable Inference, the Law of Succession, and Statistical Inference", JASA 22, 1927;
    Brown, Cai and DasGupta, "Interval Estimation for a Binomial Proportion", Statistical Science
    16, 2001; Dean and Pagano, "Evaluating Confidence Interval Methods for Binomial Proportions in
    Clustered Surveys", Journal of Survey Statistics and Methodology 3, 2015; Efron, "Better
    Bootstrap Confidence Intervals", JASA 82, 1987 (BCa).
"""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.statistics.bootstrap import CONFIDENCE
from cradle_lib.statistics.rates import Floats, f1, ratio

_Z: Final = NormalDist().inv_cdf((1 + CONFIDENCE) / 2)
# What is simulated: dialogues, and the shares of what is tagged and what is gold that are right.
_DIALOGUES: Final = 600
_RIGHT: Final = 0.4


def wilson(hits: NDArray[Any], of: NDArray[Any]) -> tuple[Floats, Floats]:
    """Finds 95 % intervals of shares of occurrences in N dialogues. Shapes (N, ...).

    Gives lower and upper bounds, 0 to 1; NaN where there is no occurrence. Shape (...) each.
    """
    hits, of = hits.astype(np.float64), of.astype(np.float64)
    n = of.sum(axis=0)
    share = ratio(hits.sum(axis=0), n)
    binomial = share * (1 - share) * n
    over_dialogues = ((hits - share * of) ** 2).sum(axis=0)
    together = ratio((of**2).sum(axis=0), n)
    size = n / np.maximum(1.0, ratio(over_dialogues, binomial, np.nan))
    size = np.where(binomial > 0, size, ratio(n, together))
    middle = (share + _Z**2 / (2 * size)) / (1 + _Z**2 / size)
    reach = _Z / (1 + _Z**2 / size) * np.sqrt(share * (1 - share) / size + _Z**2 / (4 * size**2))
    return np.clip(middle - reach, 0, share), np.clip(middle + reach, share, 1)


def wilson_f1(tp: NDArray[Any], errors: NDArray[Any]) -> tuple[Floats, Floats]:
    """Finds 95 % intervals of F1, from true positives, and all errors together, of N dialogues.

    Shapes as for :func:`wilson`; NaN where nothing is gold or tagged.
    """
    low, high = wilson(tp, tp + errors)
    return 2 * low / (1 + low), 2 * high / (1 + high)


def interval_coverage(*, trials: int = 250, draws: int = 400, seed: int = 0) -> pd.DataFrame:
    """Simulates how often three kinds of interval hold the true F1 of a label.

    A label is gold in a given number of 600 dialogues, on average, once each; four in ten of them
    are found, and as many tags are wrong as gold labels are missed.

    Args:
        trials: Samples for each number of gold labels.
        draws: Bootstrap draws of dialogues behind each interval.
        seed: Of both.

    Returns:
        One row for each number of gold labels and method.

        - ``gold`` (int): gold labels expected; ``method`` (str): ``percentile``, ``bca`` or
          ``wilson``.
        - ``value`` (float): the share of the samples whose interval holds the true F1, 0 to 1. An
          interval without width, or none, holds nothing.
        - ``width`` (float): the median width.
    """
    generator = np.random.default_rng(seed)
    rows = []
    for gold in (4, 8, 16, 32, 64):
        tp, missed = _RIGHT * gold / _DIALOGUES, (1 - _RIGHT) * gold / _DIALOGUES
        shares = [tp, missed, missed, 1 - tp - 2 * missed]
        seen = generator.multinomial(_DIALOGUES, shares, size=trials)
        moved = generator.multinomial(_DIALOGUES, seen[:, None] / _DIALOGUES, size=(trials, draws))
        drawn = _f1(moved)
        kinds = np.array([np.repeat(np.arange(4), counts) for counts in seen]).T
        ends = {
            "percentile": np.quantile(drawn, [0.025, 0.975], axis=1),
            "bca": np.array([_bca(*both) for both in zip(seen, drawn, strict=True)]).T,
            "wilson": np.array(wilson_f1(kinds == 0, (kinds == 1) | (kinds == 2))),
        }
        rows += [
            {
                "gold": gold,
                "method": name,
                "value": ((low < high) & (low <= _RIGHT) & (high >= _RIGHT)).mean(),
                "width": np.nanmedian(high - low),
            }
            for name, (low, high) in ends.items()
        ]
    return pd.DataFrame(rows)


def _f1(counts: NDArray[np.int64]) -> Floats:
    tp, fp, fn, _ = np.moveaxis(counts, -1, 0)
    return f1(tp, 2 * tp + fp + fn, 0.0)


def _bca(seen: NDArray[np.int64], drawn: Floats) -> Floats:
    """Bias-corrected and accelerated: percentiles that are moved by bias and skewness."""
    value = _f1(seen)
    below = (drawn < value).mean() + (drawn == value).mean() / 2
    if not 0 < below < 1:
        return np.full(2, np.nan)
    normal = NormalDist()
    bias = normal.inv_cdf(float(below))
    # Dialogues of a kind leave the same F1 behind when one of them is left out.
    left = _f1(np.maximum(seen - np.eye(4, dtype=np.int64), 0))
    spread = seen @ left / seen.sum() - left
    skewness = ratio(seen @ spread**3, 6 * (seen @ spread**2) ** 1.5, 0.0)
    places = bias - _Z, bias + _Z
    shares = [normal.cdf(float(bias + place / (1 - skewness * place))) for place in places]
    return np.asarray(np.quantile(drawn, shares), dtype=np.float64)
