"""Scores of parts of a corpus: by reveal timing, scenario, length, turn and stage.

A part is a set of dialogues (reveal timing, scenario, length), a set of turns (position in the
dialogue), or a part of the label set (stage). The draws behind the intervals are those of the
whole corpus, so that a part's size varies from draw to draw, as it would in another corpus.
Macro scores are left out: in a part of the corpus most labels hardly occur.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Final, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.detection.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.labels import ALERT_MASK, CONFIRM_MASK
from cradle_lib.scoring.conventions import Conventions, Level, Rows
from cradle_lib.scoring.evaluate import aligned, count_rows, signature_of
from cradle_lib.scoring.scores import ENOUGH, precision_recall_f1
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.matching import positions
from cradle_lib.statistics.rates import Floats, ratio

By = Literal["timing", "scenario", "length", "position", "stage"]
MEASURES: Final = ("exact_match", "jaccard", "micro_precision", "micro_recall", "micro_f1")
_TIMINGS: Final = ("early", "mid", "late")
_COLUMNS: Final = {
    **dict.fromkeys(("by", "part", "system"), str),
    **dict.fromkeys(("dialogues", "units", "support"), int),
    "score": str,
    **dict.fromkeys(("value", "low", "high"), float),
    "signature": str,
}


def subgroups(
    predictions: Predictions,
    by: By,
    *,
    level: Level = "turn",
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Scores the parts of a corpus.

    Args:
        predictions: What a run says about every user turn of its corpus.
        by: ``timing`` and ``scenario`` (if the corpus knows them), ``length`` (thirds by user
            turns), ``position`` (user turns, the last ones together so that each part has at
            least 20 gold labels) or ``stage``.
        level: ``turn``, ``dialogue`` or ``confirm``; for ``position`` only ``turn``.
        conventions: What the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each part, in their natural order, and score; none if the corpus does not
        know the parts, or has no user turn to divide.

        - ``by``, ``part``, ``system`` (str): the division, the part, and the run.
        - ``dialogues``, ``units``, ``support`` (int): dialogues that take part; user turns, or
          dialogues at dialogue level, that were scored; gold labels.
        - ``score`` (str): a name of :data:`MEASURES`.
        - ``value``, ``low``, ``high`` (float): the score and its 95 % interval, 0 to 1; NaN
          for what was not computed, and for precision, recall and F1 of a part without gold
          labels, which no tags could raise.
        - ``signature`` (str): what the scores of the whole corpus depend on.

    Raises:
        ScoringError: If there is no such division, or it makes no sense at this level.
    """
    if by not in get_args(By):
        raise ScoringError(f"no subgroups by {by!r}. Choose one of {', '.join(get_args(By))}.")
    if by == "position" and level != "turn":
        raise ScoringError("turn position divides turns. Choose level 'turn'.")
    conventions = conventions or Conventions()
    parts = {
        name: count_rows(part, len(predictions.corpus), level, conventions)
        for name, part in _parts(predictions, by, aligned(predictions, conventions)).items()
    }
    if not parts:
        return pd.DataFrame(columns=list(_COLUMNS)).astype(_COLUMNS)
    totals = [np.concatenate([c.tallies.sum(axis=1), c.sets], axis=1) for c in parts.values()]
    scored = bootstrap(
        np.stack(totals, axis=1),
        partial(_scores, zero_division=conventions.zero_division),
        draws=draws,
        seed=seed,
    )
    signature = signature_of(predictions, conventions, level=level, draws=draws, seed=seed)
    frame = pd.DataFrame(
        {
            "by": by,
            "part": name,
            "system": predictions.record.name,
            "dialogues": (counts.sets[:, 0] > 0).sum(),
            "units": counts.sets[:, 0].sum(),
            "support": counts.tallies[..., [0, 2]].sum(),
            "score": score,
            **scored[score].at(place)._asdict(),
            "signature": str(signature),
        }
        for place, (name, counts) in enumerate(parts.items())
        for score in MEASURES
    )
    of_labels = frame["score"].str.startswith("micro")
    frame.loc[of_labels & (frame["support"] == 0), ["value", "low", "high"]] = np.nan
    return signed(frame.astype(_COLUMNS))


def _scores(totals: Floats, *, zero_division: float) -> dict[str, Floats]:
    units, exact, jaccard = np.moveaxis(totals[..., 3:], -1, 0)
    rates = precision_recall_f1(totals[..., :3], zero_division)
    return dict(zip(MEASURES, (ratio(exact, units), ratio(jaccard, units), *rates), strict=True))


def _parts(predictions: Predictions, by: By, rows: Rows) -> dict[str, Rows]:
    if by == "stage":
        stages = {"alert": np.uint16(ALERT_MASK), "confirm": np.uint16(CONFIRM_MASK)}
        return {
            name: replace(rows, gold=rows.gold & mask, predicted=rows.predicted & mask)
            for name, mask in stages.items()
        }
    if by == "position":
        place = positions(rows.dialogue_of) + 1
        chosen = {
            f"User turn {_span(low, high)}": (place >= low) & (place <= high)
            for low, high in _position_spans(rows, place)
        }
    elif by == "length":
        lengths = np.bincount(rows.dialogue_of, minlength=len(predictions.corpus))
        cuts = np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf")
        edges = sorted({int(lengths.min()) - 1, *map(int, cuts), int(lengths.max())})
        own = lengths[rows.dialogue_of]
        chosen = {
            f"{_span(low + 1, high)} user turn{'s' * (high != 1)}": (own > low) & (own <= high)
            for low, high in pairwise(edges)
        }
    else:
        values = np.array(predictions.corpus.meta.get(by, []), dtype=object)
        order = _TIMINGS if by == "timing" else ()
        known = sorted(
            set(values.tolist()), key=lambda v: (order.index(v) if v in order else 99, str(v))
        )
        chosen = {str(v): (values == v)[rows.dialogue_of] for v in known if v}
    return {
        name: Rows(rows.gold[own], rows.predicted[own], rows.dialogue_of[own], rows.answered[own])
        for name, own in chosen.items()
    }


def _position_spans(rows: Rows, place: NDArray[np.int64]) -> Iterable[tuple[int, int]]:
    """Gives the first and the last user turn of each part, which has enough gold labels."""
    labels = np.bincount(place, weights=np.bitwise_count(rows.gold)).astype(np.int64)
    starts = [1]
    for turn in range(2, len(labels)):
        if labels[starts[-1] : turn].sum() >= ENOUGH and labels[turn:].sum() >= ENOUGH:
            starts.append(turn)
    return [(low, end - 1) for low, end in pairwise([*starts, len(labels)])] if len(place) else []


def _span(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"
