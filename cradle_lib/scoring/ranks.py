"""Ranks of systems, and how far they depend on the choice of dialogues."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd

from cradle_lib.scoring.evaluate import Evaluation
from cradle_lib.scoring.scores import split
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.bootstrap import bootstrap
from cradle_lib.statistics.rates import Floats, f1

_COLUMNS: Final = ("system", "level", "over", "rank", "low", "high", "ranks", "signature")


def rank_ranges(evaluations: Sequence[Evaluation]) -> pd.DataFrame:
    """Ranks systems by micro F1, with the range that holds 95 % of the bootstrap draws.

    In each draw all systems are scored on the same dialogues and ranked anew, so that the ranges
    take into account that systems err on the same dialogues.

    Args:
        evaluations: Evaluations of any systems and levels. Those of one level over the same
            dialogues are ranked together; draws and seed are those of their signatures.

    Returns:
        One row for each evaluation, by level and dialogues, the best system first.

        - ``system``, ``level``, ``over`` (str): as in :meth:`.Evaluation.to_frame`.
        - ``rank`` (int): 1 is the highest micro F1; equal systems share the best of their ranks.
        - ``low``, ``high`` (int): the middle 95 % of the ranks over the draws. A system that is
          equal to others in a draw has all of their ranks. Without draws, and for a single
          dialogue, the ranks of the corpus itself.
        - ``ranks`` (str): the range in words, such as ``1`` or ``2 to 4``.
        - ``signature`` (str): what the ranks depend on.
    """
    together: dict[tuple[str, str], list[Evaluation]] = {}
    for each in evaluations:
        together.setdefault((each.signature.level, each.signature.corpus), []).append(each)
    rows = [row for rivals in together.values() for row in _ranked(rivals)]
    return signed(pd.DataFrame(rows, columns=list(_COLUMNS)))


def _ranked(rivals: Sequence[Evaluation]) -> list[dict[str, Any]]:
    """Ranks the systems of one level that were scored over the same dialogues."""
    signature = rivals[0].signature
    tallies = [split(each.counts.rows, each.counts.level)[0].sum(axis=1) for each in rivals]
    found = bootstrap(
        np.stack(tallies, axis=1),
        partial(_ranks, zero_division=signature.zero_division),
        draws=signature.draws,
        seed=signature.seed,
    )
    best, worst = found["best"], found["worst"]
    # There is no interval if a rank is the same in all draws.
    lows = np.floor(np.where(np.isnan(best.low), best.value, best.low)).astype(int).tolist()
    highs = np.ceil(np.where(np.isnan(worst.high), worst.value, worst.high)).astype(int).tolist()
    order = np.argsort(best.value, kind="stable").tolist()
    return [
        {
            "system": rivals[place].system,
            "level": signature.level,
            "over": rivals[place].over,
            "rank": int(best.value[place]),
            "low": lows[place],
            "high": highs[place],
            "ranks": _span(lows[place], highs[place]),
            "signature": str(rivals[place].signature),
        }
        for place in order
    ]


def _ranks(totals: Floats, *, zero_division: float) -> dict[str, Floats]:
    """Gives the best and the worst rank of each of S systems; totals have shape (..., S, 3)."""
    tp, fp, fn = np.moveaxis(totals, -1, 0)
    scores = f1(tp, 2 * tp + fp + fn, zero_division)
    own, other = scores[..., :, None], scores[..., None, :]
    return {
        "best": 1.0 + (other > own).sum(axis=-1),
        "worst": 1.0 * (other >= own).sum(axis=-1),
    }


def _span(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"
