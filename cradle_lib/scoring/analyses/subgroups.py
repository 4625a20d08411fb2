"""Scores parts of a corpus: by reveal timing, scenario, length, turn or stage.

A part is a subset of the dialogues (reveal timing, scenario, length), of the turns (position in the
dialogue), or of the labels (stage). Bootstrap draws are taken from the whole corpus, so that a
part's size varies from draw to draw, as it would in another corpus. Macro scores are left out,
because most labels are rare in a part.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.arguments import Seed, checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.labels import ALERT_MASK, CONFIRM_MASK
from cradle_lib.scoring.conventions import Conventions, Rows, align_rows
from cradle_lib.scoring.counts import count
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.scores import ENOUGH, precision_recall_f1
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.occurrences import positions
from cradle_lib.statistics.rates import Floats

By = Literal["timing", "scenario", "length", "position", "stage"]
MEASURES: Final = ("micro_precision", "micro_recall", "micro_f1")
_TIMINGS: Final = ("early", "mid", "late")
_SPLITS: Final = {"alert": np.uint16(ALERT_MASK), "confirm": np.uint16(CONFIRM_MASK)}


@checked
def subgroups(
    predictions: Predictions, by: By, *, draws: int = DRAWS, seed: Seed = 0
) -> pd.DataFrame:
    """Scores the parts of a corpus at turn level.

    Args:
        predictions: The run's answers for every user turn of its corpus.
        by: ``timing`` or ``scenario`` (if the corpus has it), ``length`` (split at the tertiles of
            the number of user turns), ``position`` (the number of the user turn; neighbours are
            merged until each part has at least 20 gold labels; a single part may have fewer) or
            ``stage``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each part, in natural order, and score. No rows if the corpus lacks the timing
        or scenario, or no dialogue with gold labels has a user turn.

        - ``by``, ``part``, ``system`` (str): the division, the part, and the model's name.
        - ``dialogues``, ``units``, ``support`` (int): number of dialogues, of scored user turns and
          of gold labels.
        - ``score`` (str): a name of :data:`MEASURES`.
        - ``value``, ``low``, ``high`` (float): the score and its 95 % interval, 0 to 1; NaN if not
          computed, and for a part without gold labels.
        - ``signature`` (str): the scoring settings.
    """
    predictions = predictions.labelled
    rows, n = align_rows(predictions, Conventions()), len(predictions.corpus)
    parts = {name: count(part, n) for name, part in _parts(predictions, by, rows).items()}
    if not parts:
        columns = ["by", "part", "system", "dialogues", "units", "support", "score"]
        frame = pd.DataFrame(columns=[*columns, "value", "low", "high", "signature"])
        return frame.astype(dict.fromkeys(["value", "low", "high"], float))
    tallies = np.stack([counts.tallies.sum(axis=1) for counts in parts.values()], axis=1)
    scored = bootstrap(tallies, _measures, draws=draws, seed=seed)
    signature = signature_of(predictions, draws=draws, seed=seed)
    frame = pd.DataFrame(
        {
            "by": by,
            "part": name,
            "system": predictions.record.name,
            "dialogues": int((counts.sets[:, 0] > 0).sum()),
            "units": int(counts.sets[:, 0].sum()),
            "support": int(counts.tallies[..., [0, 2]].sum()),
            "score": score,
            **scored[score].at(place)._asdict(),
            "signature": str(signature),
        }
        for place, (name, counts) in enumerate(parts.items())
        for score in MEASURES
    )
    return signed(frame)


def _measures(tallies: Floats) -> dict[str, Floats]:
    """Scores parts; NaN for a part, or a draw of it, without gold labels."""
    without = tallies[..., [0, 2]].sum(axis=-1) == 0
    scores = precision_recall_f1(tallies, 0.0)
    return {
        name: np.where(without, np.nan, score) for name, score in zip(MEASURES, scores, strict=True)
    }


def _parts(predictions: Predictions, by: By, rows: Rows) -> dict[str, Rows]:
    if not len(rows.gold):
        return {}
    if by == "stage":
        return {
            name: rows._replace(gold=rows.gold & mask, predicted=rows.predicted & mask)
            for name, mask in _SPLITS.items()
        }
    if by == "position":
        place = positions(rows.dialogue_of) + 1
        spans = _position_spans(rows, place)
        chosen = {
            f"User turn{'s' * (s[0] < s[1])} {_span(*s)}": (place >= s[0]) & (place <= s[1])
            for s in spans
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
        order = {name: place for place, name in enumerate(_TIMINGS)} if by == "timing" else {}
        known = sorted(set(values.tolist()), key=lambda v: (order.get(v, len(order)), str(v)))
        chosen = {str(v): (values == v)[rows.dialogue_of] for v in known if v}
    return {name: rows.take(own) for name, own in chosen.items()}


def _position_spans(rows: Rows, place: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Gives the first and last user turn of each part; only a single part may lack 20 labels."""
    if not len(place):
        return []
    labels = np.bincount(place, weights=np.bitwise_count(rows.gold)).astype(np.int64)
    starts = [1]
    for turn in range(2, len(labels)):
        if labels[starts[-1] : turn].sum() >= ENOUGH and labels[turn:].sum() >= ENOUGH:
            starts.append(turn)
    return [(low, end - 1) for low, end in pairwise([*starts, len(labels)])]


def _span(low: int, high: int) -> str:
    return f"{low}" if low == high else f"{low} to {high}"
