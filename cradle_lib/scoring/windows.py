"""F1 with a tolerance: a tag counts if it comes close enough to its gold label.

Within each dialogue and label, gold occurrences and tags are matched one to one; a pair fits
if the tag comes at most ``early`` user turns before the gold label and at most ``late`` after
it. The matching is a largest possible one. True positives are pairs, what is left over on
either side are false positives and false negatives, and F1 is 2 tp / (2 tp + fp + fn).

With a window of 0 this is the turn-level micro F1 of the paper's Table 4. With an endless
window, after dropping repeated occurrences of a label in a dialogue, it is the dialogue-level
micro F1. So two steps lead from one half of the table to the other, and only the first of them
is about the moment: :func:`level_steps` takes them apart.

References:
    Mesaros, Heittola and Virtanen, "Metrics for Polyphonic Sound Event Detection", Applied
    Sciences 6(6), 2016 (event-based F1 with a collar).
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import LABELS
from cradle_lib.scoring.conventions import Conventions, Rows
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.occurrences import ALERTS, scored_rows
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.matching import Window, match, occurrences
from cradle_lib.statistics.rates import Floats, f1

# Windows in user turns; the endless one closes each curve.
WIDTHS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, math.inf)
# For each curve whether early tags fit as well, and whether repeated occurrences are dropped.
CURVES: Final = {"either": (True, False), "either_first": (True, True), "late": (False, False)}
_EXACT: Final = Window(0, 0)
_ANYWHERE: Final = Window(math.inf, math.inf)
_ONCE: Final = Window(math.inf, math.inf, first=True)


def window_tallies(
    rows: Rows, n: int, windows: tuple[Window, ...]
) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Counts pairs of n dialogues under W windows.

    Gives the pairs of each window, shape (n, W, 16), and gold occurrences plus tags, shape
    (n, 2, 16): of every occurrence at index 0 of the second axis, of each label's first one in a
    dialogue at index 1.
    """
    gold = occurrences(rows.gold, rows.dialogue_of)
    predicted = occurrences(rows.predicted, rows.dialogue_of)
    sides = ((gold, predicted), (gold.first(), predicted.first()))
    pairs = np.zeros((n, len(windows), len(LABELS)), dtype=np.int32)
    for column, window in enumerate(windows):
        pairs[:, column] = match(*sides[window.first], window, n)
    sizes = [one.per_label(n) + other.per_label(n) for one, other in sides]
    return pairs, np.stack(sizes, axis=1).astype(np.int32)


def by_stage(tallies: NDArray[np.int32]) -> NDArray[np.int32]:
    """Adds up labels into all labels, alerts and confirms. Shape (..., 16) to (..., 3)."""
    alerts = tallies[..., :ALERTS].sum(axis=-1, dtype=tallies.dtype)
    confirms = tallies[..., ALERTS:].sum(axis=-1, dtype=tallies.dtype)
    return np.stack([alerts + confirms, alerts, confirms], axis=-1)


def curve(name: str, widths: tuple[float, ...] = WIDTHS) -> tuple[Window, ...]:
    """Gives the windows of one of :data:`CURVES`, one for each width in user turns."""
    early, first = CURVES[name]
    return tuple(Window(width if early else 0.0, width, first) for width in widths)


def level_steps(
    predictions: Predictions,
    *,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Splits the difference between turn-level and dialogue-level micro F1 into two steps.

    Args:
        predictions: What the run says about every user turn of its corpus.
        conventions: What the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        Five rows.

        - ``system``, ``over`` (str): the model's name; over which dialogues the run was.
        - ``measure`` (str): ``turn``, micro F1 on the exact turn; ``any_turn``, on any turn of the
          dialogue, where a label counts as often as it occurs; ``dialogue``, where it counts once;
          ``turn_forgiven``, ``any_turn`` minus ``turn``, never negative; ``repeats_dropped``,
          ``dialogue`` minus ``any_turn``.
        - ``value``, ``low``, ``high`` (float): the score from 0 to 1, or the difference from -1 to
          1, with its 95 % interval; NaN if no label is gold, and for what was not computed.
        - ``unit`` (str): ``share`` or ``points``.
        - ``signature`` (str): what the turn-level score depends on; all five share its settings.

    Raises:
        ScoringError: If the conventions leave nothing to score.
    """
    conventions = conventions or Conventions()
    rows, n = scored_rows(predictions, conventions), len(predictions.corpus)
    tallies = window_tallies(rows, n, (_EXACT, _ANYWHERE, _ONCE))
    pairs = np.concatenate(tallies, axis=1).sum(axis=2)

    def steps(totals: Floats) -> dict[str, Floats]:
        found = f1(totals[..., :3], totals[..., [3, 3, 4]], conventions.zero_division)
        return {"f1": np.concatenate([found, np.diff(found, axis=-1)], axis=-1)}

    found = bootstrap(pairs, steps, draws=draws, seed=seed)["f1"]
    names = ["turn", "any_turn", "dialogue", "turn_forgiven", "repeats_dropped"]
    frame = found.to_frame(measure=names)
    if not rows.gold.any():
        frame[["value", "low", "high"]] = math.nan
    frame = frame.assign(
        system=predictions.record.name,
        over=predictions.over,
        unit=["share"] * 3 + ["points"] * 2,
        signature=str(signature_of(predictions, conventions, draws=draws, seed=seed)),
    )
    return signed(frame)
