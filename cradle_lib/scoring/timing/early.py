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
    """Sorts each dialogue's decision within each scope.

    Args:
        rows: Gold and predicted masks of n dialogues.
        n: Number of dialogues.
        longest: User turns of the longest dialogue, K.

    Returns:
        For each dialogue and scope a 1 in one of: true positive on turn 1, 2, ... K, false
        positive, false negative, true negative. Shape (n, 19, K + 3).
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


def prevalence(totals: Floats) -> Floats:
    """Gives the share of positive dialogues; NaN without dialogues.

    Args:
        totals: Summed :func:`decision_rows`. Shape (..., K + 3).

    Returns:
        Shape (...).
    """
    longest = totals.shape[-1] - 3
    positive = totals[..., :longest].sum(axis=-1) + totals[..., longest + 1]
    return ratio(positive, totals.sum(axis=-1))


def erde(totals: Floats, o: float, false_alarm_cost: Floats) -> Floats:
    """Computes the early risk detection error.

    Args:
        totals: Summed :func:`decision_rows`. Shape (..., K + 3).
        o: The turn by which half of the cost of being late is due.
        false_alarm_cost: Cost of a false positive. Shape (...), or what broadcasts to it.

    Returns:
        The mean cost per dialogue, 0 to 1; NaN without dialogues. Shape (...).
    """
    longest = totals.shape[-1] - 3
    delay = expit(_turns(longest) - o)
    cost = totals[..., :longest] @ delay + totals[..., longest + 1]
    return ratio(cost + false_alarm_cost * totals[..., longest], totals.sum(axis=-1))


def penalty_rate(lengths: NDArray[np.int64]) -> float:
    """Chooses p, so that the penalty is one half at the end of the median dialogue.

    Args:
        lengths: User turns of each dialogue.

    Returns:
        ln 3 / (median - 1); NaN if the median dialogue has fewer than two user turns, because
        nothing can be late then.
    """
    median = float(np.median(lengths)) if len(lengths) else 0.0
    return math.log(3) / (median - 1) if median > 1 else math.nan


def penalty(turn: Floats, p: float) -> Floats:
    """Computes the latency penalty of a true positive.

    Args:
        turn: User turns of the tags, counted from 1. Shape (...).
        p: As :func:`penalty_rate` gives it.

    Returns:
        0 on the first turn, towards 1 on later ones. Shape (...).
    """
    return -1 + 2 / (1 + np.exp(-p * (turn - 1)))


def latency_f1(totals: Floats, p: float) -> Floats:
    """Computes latency-weighted F1.

    Args:
        totals: Summed :func:`decision_rows`. Shape (..., K + 3).
        p: As :func:`penalty_rate` gives it.

    Returns:
        F1 over dialogues times speed, 0 to 1; 0 without a true positive, NaN without a rate.
        Shape (...).
    """
    longest = totals.shape[-1] - 3
    hits = totals[..., :longest]
    tp, fp, fn = hits.sum(axis=-1), totals[..., longest], totals[..., longest + 1]
    if math.isnan(p):
        return np.full(tp.shape, np.nan)
    lost = histogram_median(hits, penalty(_turns(longest), p))
    return np.where(tp > 0, f1(tp, 2 * tp + fp + fn, 0.0) * (1 - np.nan_to_num(lost)), 0.0)


def latency(totals: Floats) -> Floats:
    """Finds the median turn of the true positives, from 1; NaN if there is none.

    Args:
        totals: Summed :func:`decision_rows`. Shape (..., K + 3).

    Returns:
        Shape (...).
    """
    longest = totals.shape[-1] - 3
    return histogram_median(totals[..., :longest], _turns(longest))


def _turns(longest: int) -> Floats:
    return np.arange(1, longest + 1, dtype=np.float64)
