"""Early-detection measures from the literature: ERDE and latency-weighted F1.

Both look at one decision per dialogue: the first user turn k, counted from 1, on which
something within a scope (any label, a stage, one label) is tagged. A dialogue is positive if
its gold labels have something within the scope, wherever it stands. So both count from the
start of the dialogue and not from the onset, reward a tag that comes before there is anything
to see, and are given here to compare with other work; :mod:`~cradle_lib.scoring.timing.onset` fits
this corpus better.

ERDE_o: a true positive costs 1 - 1 / (1 + exp(k - o)), a false negative 1, a false positive the
share of positive dialogues, a true negative nothing; the mean over dialogues, lower is better.
With seven or eight user turns, o is 2 or 5; the usual 50 would never be reached.

Latency-weighted F1: F1 over dialogues, times one minus the median penalty of its true
positives, -1 + 2 / (1 + exp(-p (k - 1))). The penalty is 0 on the first turn, and p is chosen so
that it is one half at the median dialogue's last turn: p = ln 3 / (median - 1).

The measures are functions of summed :func:`decision_rows`, of shape (..., K + 3); their own shape
is (...).

References:
    Losada and Crestani, "A Test Collection for Research on Depression and Language Use",
    CLEF 2016 (ERDE); Sadeque, Xu and Bethard, "Measuring the Latency of Depression Detection
    in Social Media", WSDM 2018 (latency-weighted F1).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from cradle_lib.scoring.core.conventions import Rows
from cradle_lib.scoring.timing.occurrences import SCOPES, first_positions
from cradle_lib.statistics.bootstrap import histogram_median
from cradle_lib.statistics.rates import Floats, f1, ratio

ERDE_TURNS: Final = (2, 5)


def decision_rows(rows: Rows, n: int, longest: int) -> NDArray[np.int32]:
    """Sorts the decision of each of n dialogues within each scope.

    The longest dialogue has K user turns. For each dialogue and scope there is a 1 in one of: true
    positive on turn 1, 2, ... K, false positive, false negative, true negative. Shape
    (n, 19, K + 3).
    """
    scopes = tuple(SCOPES.values())
    positive = np.isfinite(first_positions(rows.gold, rows.dialogue_of, n, scopes))
    tag = first_positions(rows.predicted, rows.dialogue_of, n, scopes)
    tagged = np.isfinite(tag)
    otherwise = longest + np.where(tagged, 0, np.where(positive, 1, 2))
    column = np.where(positive & tagged, tag, otherwise).astype(np.int64)
    found = np.zeros((n, len(scopes), longest + 3), dtype=np.int32)
    np.put_along_axis(found, column[..., None], 1, axis=-1)
    return found


def positives(totals: Floats) -> Floats:
    """Counts the positive dialogues."""
    found: Floats = totals[..., :-3].sum(axis=-1) + totals[..., -2]
    return found


def erde(totals: Floats, o: float, false_alarm_cost: Floats) -> Floats:
    """Computes the early risk detection error, 0 to 1; NaN without dialogues.

    By turn ``o`` half of the cost of being late is due.
    """
    hits, fp, fn = totals[..., :-3], totals[..., -3], totals[..., -2]
    cost = hits @ expit(_turns(hits) - o) + fn
    return ratio(cost + false_alarm_cost * fp, totals.sum(axis=-1))


def penalty_rate(lengths: NDArray[np.int64]) -> float:
    """Chooses p from the number of user turns of each dialogue.

    It is NaN if the median dialogue has fewer than two, because nothing can be late then.
    """
    median = float(np.median(lengths)) if len(lengths) else 0.0
    return math.log(3) / (median - 1) if median > 1 else math.nan


def penalty(turn: Floats, p: float) -> Floats:
    """Computes the penalty of true positives on these user turns, counted from 1."""
    return -1 + 2 / (1 + np.exp(-p * (turn - 1)))


def latency_f1(totals: Floats, p: float) -> Floats:
    """Computes latency-weighted F1, 0 to 1; 0 without a true positive, NaN without a rate."""
    hits, fp, fn = totals[..., :-3], totals[..., -3], totals[..., -2]
    tp = hits.sum(axis=-1)
    if math.isnan(p):
        return np.full(tp.shape, np.nan)
    lost = histogram_median(hits, penalty(_turns(hits), p))
    return np.where(tp > 0, f1(tp, 2 * tp + fp + fn, 0.0) * (1 - np.nan_to_num(lost)), 0.0)


def latency(totals: Floats) -> Floats:
    """Finds the median user turn of the true positives, counted from 1; NaN without any."""
    return histogram_median(totals[..., :-3], _turns(totals[..., :-3]))


def _turns(hits: Floats) -> Floats:
    return np.arange(1, hits.shape[-1] + 1, dtype=np.float64)
