"""Scores of parts of a corpus: by reveal timing, scenario, length, turn and stage.

A cohort is a set of dialogues (reveal timing, scenario, length), a set of turns (position in the
dialogue), or a part of the label set (stage). The draws behind the intervals are those of the
whole corpus, so that a cohort's size varies from draw to draw, as it would in another corpus.
Macro scores are left out: in a part of the corpus most labels hardly occur.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Final, Literal, get_args

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.labels import ALERT_MASK, CONFIRM_MASK
from cradle_lib.scoring.comparison.difference import ENOUGH
from cradle_lib.scoring.core.conventions import Conventions, Level, Rows
from cradle_lib.scoring.core.counts import Counts
from cradle_lib.scoring.core.evaluate import Estimate, aligned, count_rows, sign
from cradle_lib.scoring.core.scores import Floats, ratio
from cradle_lib.scoring.core.signature import Signature
from cradle_lib.scoring.resampling.bootstrap import json_estimate, measure
from cradle_lib.scoring.resampling.intervals import DRAWS
from cradle_lib.scoring.timing.occurrences import positions

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

By = Literal["timing", "scenario", "length", "position", "stage"]
MEASURES: Final = ("exact_match", "jaccard", "micro_precision", "micro_recall", "micro_f1")
_TIMINGS: Final = ("early", "mid", "late")


@dataclass(frozen=True, slots=True)
class Cohort:
    """The scores of one part.

    Attributes:
        name: What it is, for people.
        dialogues: Dialogues that take part.
        units: User turns, or dialogues at dialogue level, that were scored.
        support: Gold labels.
        estimates: By name of :data:`MEASURES`; NaN for what nothing can be said about:
            without gold labels these are precision, recall and F1, which no tags could raise.
    """

    name: str
    dialogues: int
    units: int
    support: int
    estimates: dict[str, Estimate]


@dataclass(frozen=True)
class Cohorts:
    """The parts of one corpus.

    Attributes:
        system: Name of the run.
        by: What it was divided by.
        signature: Signature of the whole.
        cohorts: The parts, in their natural order; empty if the corpus does not know, or has
            no user turn to divide.
    """

    system: str
    by: By
    signature: Signature
    cohorts: tuple[Cohort, ...]

    def to_frame(self) -> pd.DataFrame:
        """Gives the scores of the parts as a tidy data frame.

        Returns:
            One row for each part and score; none if there are no parts.

            - ``by``, ``part``, ``system`` (str): the division, the part, and the run.
            - ``dialogues``, ``units``, ``support`` (int): as in :class:`Cohort`.
            - ``score`` (str): a name of :data:`MEASURES`.
            - ``value``, ``low``, ``high`` (float): the score and its 95 % interval, 0 to 1; NaN
              for what is undefined or was not computed.
            - ``signature`` (str): what the scores depend on.
        """
        sizes = ("dialogues", "units", "support")
        columns = ["by", "part", "system", *sizes, "score", "value", "low", "high", "signature"]
        rows = [
            (self.by, c.name, self.system, *counts, score, *estimate, str(self.signature))
            for c in self.cohorts
            for counts in [[getattr(c, size) for size in sizes]]
            for score, estimate in c.estimates.items()
        ]
        numbers = {"value": float, "low": float, "high": float}
        return pd.DataFrame(rows, columns=columns).astype(numbers | dict.fromkeys(sizes, int))

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for strict JSON; what is undefined is ``None``."""
        return {
            "signature": str(self.signature),
            "cohorts": {
                c.name: {
                    "dialogues": c.dialogues,
                    "units": c.units,
                    "support": c.support,
                    "scores": {name: json_estimate(e) for name, e in c.estimates.items()},
                }
                for c in self.cohorts
            },
        }


def cohorts(
    predictions: Predictions,
    by: By,
    *,
    level: Level = "turn",
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> Cohorts:
    """Scores the parts of a corpus.

    Args:
        predictions: What a run says about every user turn of its corpus.
        by: ``timing`` and ``scenario`` (if the corpus knows them), ``length`` (thirds by user
            turns), ``position`` (user turns, the last ones together so that each part has at
            least 20 gold labels) or ``stage``.
        level: ``turn``, ``dialogue`` or ``confirm``; for ``position`` only ``turn``.
        conventions: What the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        The cohorts.

    Raises:
        ScoringError: If there is no such division, or it makes no sense at this level.
    """
    if by not in get_args(By):
        raise ScoringError(f"no cohorts by {by!r}. Choose one of {', '.join(get_args(By))}.")
    if by == "position" and level != "turn":
        raise ScoringError("turn position divides turns. Choose level 'turn'.")
    conventions = conventions or Conventions()
    rows = aligned(predictions, conventions)
    counted = partial(count_rows, n=len(predictions.corpus), level=level, conventions=conventions)
    if by == "stage":
        stages = {"alert": ALERT_MASK, "confirm": CONFIRM_MASK}
        parts = {name: counted(_restricted(rows, mask)) for name, mask in stages.items()}
    elif by == "position":
        parts = {name: counted(_chosen(rows, turns)) for name, turns in _by_position(rows).items()}
    else:
        whole = counted(rows)
        members = _members(predictions, by, rows)
        parts = {name: _only(whole, chosen) for name, chosen in members.items()}
    found = _scored(parts, draws, seed, conventions.zero_division)
    signature = sign(predictions, conventions, level=level, draws=draws, seed=seed)
    return Cohorts(predictions.record.name, by, signature, found)


def _scored(
    parts: dict[str, Counts], draws: int, seed: int, zero_division: float
) -> tuple[Cohort, ...]:
    if not parts:
        return ()
    rows = np.stack(
        [np.concatenate([c.tallies.sum(axis=1), c.sets], axis=1) for c in parts.values()], axis=1
    )
    measured = measure(
        rows,
        {name: partial(_measure, name, zero_division=zero_division) for name in MEASURES},
        draws=draws,
        seed=seed,
    )
    found = []
    for place, (name, counts) in enumerate(parts.items()):
        support = int(counts.tallies[..., [0, 2]].sum())
        estimates = {key: values.estimate(place) for key, values in measured.items()}
        if not support:
            estimates |= dict.fromkeys(MEASURES[2:], Estimate(math.nan, None, None))
        found.append(
            Cohort(
                name=name,
                dialogues=int((counts.sets[:, 0] > 0).sum()),
                units=int(counts.sets[:, 0].sum()),
                support=support,
                estimates=estimates,
            )
        )
    return tuple(found)


def _measure(name: str, totals: Floats, *, zero_division: float) -> Floats:
    found, made_up, missed, units, exact, jaccard = np.moveaxis(totals, -1, 0)
    match name:
        case "exact_match":
            return ratio(exact, units)
        case "jaccard":
            return ratio(jaccard, units)
        case "micro_precision":
            return ratio(found, found + made_up, zero_division)
        case "micro_recall":
            return ratio(found, found + missed, zero_division)
        case _:
            return ratio(2 * found, 2 * found + made_up + missed, zero_division)


def _restricted(rows: Rows, mask: int) -> Rows:
    return replace(
        rows, gold=rows.gold & np.uint16(mask), predicted=rows.predicted & np.uint16(mask)
    )


def _chosen(rows: Rows, turns: NDArray[np.bool_]) -> Rows:
    return Rows(
        rows.gold[turns], rows.predicted[turns], rows.dialogue_of[turns], rows.answered[turns]
    )


def _only(counts: Counts, chosen: NDArray[np.bool_]) -> Counts:
    return Counts(
        counts.level,
        np.where(chosen[:, None, None], counts.tallies, 0),
        np.where(chosen[:, None], counts.sets, 0.0),
    )


def _by_position(rows: Rows) -> dict[str, NDArray[np.bool_]]:
    if not len(rows.gold):
        return {}
    place = positions(rows.dialogue_of)
    labels = np.bincount(place, weights=np.bitwise_count(rows.gold)).astype(np.int64)
    starts = [0]
    for turn in range(1, len(labels)):
        if labels[starts[-1] : turn].sum() >= ENOUGH and labels[turn:].sum() >= ENOUGH:
            starts.append(turn)
    names = {}
    for first, end in pairwise([*starts, len(labels)]):
        name = f"{first + 1}" if end == first + 1 else f"{first + 1} to {end}"
        names[f"User turn {name}"] = (place >= first) & (place < end)
    return names


def _members(predictions: Predictions, by: By, rows: Rows) -> dict[str, NDArray[np.bool_]]:
    if by == "length":
        lengths = np.bincount(rows.dialogue_of, minlength=len(predictions.corpus))
        cuts = np.quantile(lengths, [1 / 3, 2 / 3], method="inverted_cdf")
        edges = sorted({int(lengths.min()) - 1, *cuts.tolist(), int(lengths.max())})
        return {
            _span(low + 1, high): (lengths > low) & (lengths <= high)
            for low, high in pairwise(map(int, edges))
        }
    values = np.array(predictions.corpus.meta.get(by, []), dtype=object)
    order = _TIMINGS if by == "timing" else ()
    known = sorted(
        set(values.tolist()), key=lambda v: (order.index(v) if v in order else 99, str(v))
    )
    return {str(value): values == value for value in known if value}


def _span(low: int, high: int) -> str:
    turns = f"{low}" if low == high else f"{low} to {high}"
    return f"{turns} user turn{'s' * (high != 1)}"
