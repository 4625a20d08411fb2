"""Finds all counts that are consistent with published, rounded scores.

A score is a ratio of counts, and counts are whole numbers. A score printed with two decimals is
therefore consistent with few counts, and several scores of one system with fewer still (the idea of
the GRIM test: Brown and Heathers 2017, doi 10.1177/1948550616673876). The results are exact and
complete: all arithmetic is in fractions, and every solution is listed.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from typing import Final

import pandas as pd

from cradle_lib.arguments import checked
from cradle_lib.published import Published, published_label_counts, published_table

# Keys of the values that the paper's text states for a system at turn level.
_STATED: Final = {
    "precision": "result.turn.micro_precision.",
    "recall": "result.turn.micro_recall.",
    "f1": "result.turn.micro_f1.",
    "fp": "errors.fp.",
    "fn": "errors.fn.",
}
# Largest range of a score over all solutions that is still reported.
_MAX_RANGE: Final = 0.01


def implied_scores() -> pd.DataFrame:
    """Derives the micro scores at turn level that the paper's text does not state.

    Gold labels are counted on user turns, the only reading consistent with all of its numbers.

    Returns:
        One row for each unstated score on which all solutions of :func:`possible_counts` agree
        within one point.

        - ``system`` (str): the last part of its keys in the table of published values.
        - ``level`` (str): ``turn``; ``score`` (str): such as ``micro_recall``.
        - ``value`` (float): the score, a share; the mean of several solutions.
        - ``low``, ``high`` (float): the lowest and highest of several solutions; NaN for a single
          one.
        - ``solutions`` (int): their number.
    """
    gold = sum(published_label_counts().values())
    rows = []
    for system, stated in stated_scores().items():
        solutions = possible_counts([gold], **stated)
        for name in ("precision", "recall", "f1"):
            values = solutions[name].dropna()
            if name in stated or not len(values) or values.max() - values.min() > _MAX_RANGE:
                continue
            low, high = (values.min(), values.max()) if len(values) > 1 else (math.nan, math.nan)
            rows.append((system, "turn", f"micro_{name}", values.mean(), low, high, len(solutions)))
    names = ["system", "level", "score", "value", "low", "high", "solutions"]
    return pd.DataFrame(rows, columns=names)


def stated_scores() -> dict[str, dict[str, Published]]:
    """Reads the scores that the paper's text states for each system at turn level.

    Returns:
        For each system (the last part of its keys in the table of published values) the arguments
        of :func:`possible_counts` that the text states.
    """
    found: dict[str, dict[str, Published]] = {}
    for key, entry in published_table().items():
        for name, prefix in _STATED.items():
            if key.startswith(prefix):
                found.setdefault(key.removeprefix(prefix), {})[name] = entry
    return found


@checked
def possible_counts(
    gold: Iterable[int],
    *,
    precision: Published | None = None,
    recall: Published | None = None,
    f1: Published | None = None,
    fp: Published | None = None,
    fn: Published | None = None,
) -> pd.DataFrame:
    """Lists all counts of a system that are consistent with its stated scores.

    Args:
        gold: Possible numbers of gold labels, one for each reading.
        precision: Micro precision, more than 0.
        recall: Micro recall.
        f1: Micro F1, more than 0.
        fp: Number of false positives.
        fn: Number of false negatives.

    Returns:
        One row for each solution, by ``gold`` and then ``tp``: integers ``gold``, ``tp`` and
        ``fn``; floats ``fp`` (a whole number; NaN if no stated score depends on it), ``precision``,
        ``recall`` and ``f1`` (shares; NaN for 0/0 or without ``fp``). No rows if no counts agree.
    """
    rows: list[tuple[int, int, float, int]] = []
    for total in gold:
        hits = range(total + 1) if fn is None else [total - int(fn.value)]
        for tp in (hit for hit in hits if 0 <= hit <= total):
            if recall is not None and not rounds_to(tp, total, recall):
                continue
            candidates: Iterable[float] = [math.nan] if fp is None else [int(fp.value)]
            if precision is not None or f1 is not None:
                fitting = _false_positives(tp, total - tp, precision, f1)
                candidates = fitting if fp is None else [n for n in candidates if n in fitting]
            rows += [(total, tp, wrong, total - tp) for wrong in candidates]
    found = pd.DataFrame(rows, columns=["gold", "tp", "fp", "fn"])
    found = found.astype({"gold": "int64", "tp": "int64", "fp": "float64", "fn": "int64"})
    return found.assign(
        precision=found["tp"] / (found["tp"] + found["fp"]),
        recall=found["tp"] / found["gold"],
        f1=2 * found["tp"] / (2 * found["tp"] + found["fp"] + found["fn"]),
    )


@checked
def possible_totals(stated: Published, totals: Iterable[int]) -> list[int]:
    """Finds the totals for which a stated share is possible.

    Args:
        stated: A share, in percent or from 0 to 1.
        totals: Numbers to try.

    Returns:
        The totals for which some whole number gives a share that rounds to the stated one, in the
        order given.
    """
    low, high = _window(stated)
    return [n for n in totals if n > 0 and math.floor(high * n) >= math.ceil(low * n)]


def rounds_to(part: int, total: int, stated: Published) -> bool:
    """Whether a ratio rounds to a stated number, that is, within half a unit of its last digit.

    A half may have been rounded either way; 0 of 0 counts as 0, as in the scores.
    """
    low, high = _window(stated)
    return low <= (Fraction(part, total) if total else Fraction(0)) <= high


def _window(stated: Published) -> tuple[Fraction, Fraction]:
    """Gives the lowest and the highest share that round to a stated number."""
    number = Decimal(stated.text)
    half = Fraction(1, 2) * Fraction(10) ** int(number.as_tuple().exponent)
    unit = 100 if stated.unit in ("percent", "points") else 1
    return (Fraction(number) - half) / unit, (Fraction(number) + half) / unit


def _false_positives(tp: int, fn: int, precision: Published | None, f1: Published | None) -> range:
    """Gives the numbers of false positives that are consistent with precision, F1 or both."""
    if not tp:
        return range(0)
    shares = ((precision, tp, tp), (f1, 2 * tp, 2 * tp + fn))
    stated = [(_window(share), part, rest) for share, part, rest in shares if share is not None]
    least = max(0, *(math.ceil(part / high - rest) for (_, high), part, rest in stated))
    most = min(math.floor(part / low - rest) for (low, _), part, rest in stated)
    return range(least, most + 1)
