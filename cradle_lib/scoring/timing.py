"""When a run predicts its labels: F1 with a tolerance, onsets, and the detection curve.

All times are user turns, because a corpus has no timestamps. Everything is measured for all
labels, for alerts and for confirms.

F1 with a tolerance is described in :mod:`~cradle_lib.scoring.windows`.

Onsets. The onset of a label is its first gold occurrence in a dialogue. Its outcome is
``premature`` (the first prediction of this label is on an earlier turn), ``on_time``, ``late`` (on
a later turn, not before) or ``never``.

Detection curve. D(d) is the share of all onsets whose first prediction comes 0 to d turns after
them: a cumulative incidence with three final states. An onset without a prediction by the end of
its dialogue is never detected, because no turn follows on which it could be, and stays in the
denominator; so does a premature one. Nothing is censored, so the estimator of Kaplan and Meier does
not apply: it would treat onsets near the end of a dialogue as if more turns followed.

References:
    Putter, Fiocco and Geskus, "Tutorial in Biostatistics: Competing Risks and Multi-State Models",
    Statistics in Medicine 26, 2007 (cumulative incidence).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import LABELS
from cradle_lib.scoring.conventions import Conventions, Rows
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.occurrences import SCOPES, STAGES, first_positions, scored_rows
from cradle_lib.scoring.signature import signed
from cradle_lib.scoring.windows import CURVES, WIDTHS, by_stage, curve, window_tallies
from cradle_lib.statistics.bootstrap import DRAWS, Estimate, bootstrap
from cradle_lib.statistics.matching import occurrences, positions
from cradle_lib.statistics.rates import Floats, f1, ratio

OUTCOMES: Final = ("premature", "on_time", "late", "never")
_COLUMNS: Final = (
    "system", "over", "dialogues", "view", "measure", "scope", "turns", "value", "low", "high",
    "unit", "support", "signature",
)  # fmt: skip


def timing(
    predictions: Predictions,
    *,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    widths: tuple[float, ...] = WIDTHS,
) -> pd.DataFrame:
    """Measures when a run predicts its labels.

    Args:
        predictions: What the run says about every user turn of its corpus.
        conventions: What the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.
        widths: Widths of the windows in user turns, ascending.

    Returns:
        One row for each number.

        - ``system``, ``over`` (str): the model's name; over which dialogues the run was, as a
          heading; ``dialogues`` (int): how many these are.
        - ``view`` (str) and ``measure`` (str): ``window`` (F1 within ``turns`` user turns; the
          name of a curve), ``onset`` (shares :data:`OUTCOMES`, and ``median_delay``) or ``delay``
          (share ``detected`` at most ``turns`` user turns late).
        - ``scope`` (str): ``any``, ``alert`` or ``confirm``.
        - ``turns`` (float): infinite for an endless window; NaN where it has no meaning.
        - ``value``, ``low``, ``high`` (float): the number and its 95 % interval. A median delay
          is infinite if fewer than half of the onsets are detected. NaN where nothing within the
          scope is gold, whatever 0/0 counts as elsewhere, and for what was not computed.
        - ``unit`` (str): ``share`` (0 to 1), or ``number`` for user turns.
        - ``support`` (int): dialogues with a gold label of the scope, or its onsets for ``onset``
          and ``delay``.
        - ``signature`` (str): what the numbers depend on.

    Raises:
        ScoringError: If the conventions leave nothing to score.
    """
    conventions = conventions or Conventions()
    rows, n = scored_rows(predictions, conventions), len(predictions.corpus)
    resampled = partial(bootstrap, draws=draws, seed=seed)
    windows = tuple(window for name in CURVES for window in curve(name, widths))
    pairs = by_stage(np.concatenate(window_tallies(rows, n, windows), axis=1))
    sizes = [len(windows) + window.first for window in windows]
    zero = conventions.zero_division
    within = resampled(
        pairs, lambda t: {"f1": f1(t[..., : len(windows), :], t[..., sizes, :], zero)}
    )["f1"]
    curves = Estimate(*(part.reshape(len(CURVES), len(widths), -1) for part in within))
    # One column at least, in which nothing is counted if there is no user turn.
    longest = max(longest_dialogue(rows), 1)
    onsets = by_stage(onset_rows(rows, n, longest).transpose(0, 2, 1)).transpose(0, 2, 1)
    found = resampled(
        onsets,
        lambda t: {
            "outcomes": onset_outcomes(t),
            "delay": median_delay(t),
            "detected": detected(t),
        },
    )
    detection = found["detected"].to_frame(scope=STAGES, turns=range(longest))
    frame = pd.concat(
        [
            curves.to_frame(measure=CURVES, turns=widths, scope=STAGES).assign(view="window"),
            found["outcomes"].to_frame(scope=STAGES, measure=OUTCOMES).assign(view="onset"),
            found["delay"].to_frame(scope=STAGES).assign(view="onset", measure="median_delay"),
            detection.assign(view="delay", measure="detected"),
        ],
        ignore_index=True,
    )
    masks = [SCOPES[name] for name in STAGES]
    dialogues = np.isfinite(first_positions(rows.gold, rows.dialogue_of, n, masks)).sum(axis=0)
    place = frame["scope"].map(STAGES.index)
    of_dialogues = frame["view"] == "window"
    support = np.where(of_dialogues, dialogues[place], onsets.sum(axis=(0, 2))[place])
    frame.loc[support == 0, ["value", "low", "high"]] = math.nan
    head, _, version = str(
        signature_of(predictions, conventions, draws=draws, seed=seed)
    ).rpartition("|")
    frame = frame.assign(
        system=predictions.record.name,
        over=predictions.over,
        dialogues=n,
        unit=np.where(frame["measure"] == "median_delay", "number", "share"),
        support=support.astype(int),
        signature=f"{head}|win:{','.join(f'{width:g}' for width in widths)}|{version}",
    )
    return signed(frame.astype({"turns": float})[list(_COLUMNS)])


def onset_rows(rows: Rows, n: int, longest: int) -> NDArray[np.int32]:
    """Counts the onsets of each of n dialogues and each label by their outcome.

    The longest dialogue has K user turns. Columns are: detected after 0, 1, ... K-1 turns, never,
    premature; at most one of them is 1. Shape (n, 16, K + 2).
    """
    found = np.zeros((n * len(LABELS), longest + 2), dtype=np.int32)
    onset = occurrences(rows.gold, rows.dialogue_of).first()
    predicted = occurrences(rows.predicted, rows.dialogue_of).first()
    first = np.full(n * len(LABELS), -1)
    first[predicted.slot] = predicted.position
    place = first[onset.slot]
    delay = place - onset.position
    late = np.where(delay < 0, longest + 1, delay)
    found[onset.slot, np.where(place < 0, longest, late)] = 1
    return found.reshape(n, len(LABELS), -1)


def onset_outcomes(totals: Floats) -> Floats:
    """Gives the shares of the onsets by :data:`OUTCOMES`. Shape (..., K + 2) to (..., 4)."""
    late = totals[..., 1:-2].sum(axis=-1)
    counts = np.stack([totals[..., -1], totals[..., 0], late, totals[..., -2]], axis=-1)
    return ratio(counts, counts.sum(axis=-1, keepdims=True))


def detected(totals: Floats) -> Floats:
    """Computes D(d) for d = 0, 1, ... K-1. Shape (..., K + 2) to (..., K)."""
    return ratio(totals[..., :-2].cumsum(axis=-1), totals.sum(axis=-1, keepdims=True))


def median_delay(totals: Floats) -> Floats:
    """Finds the smallest d with D(d) at least one half. Shape (..., K + 2) to (...).

    It is infinite if fewer than half of the onsets are ever detected, NaN without onsets.
    """
    found = detected(totals)
    reached = found >= 0.5
    median = np.where(reached.any(axis=-1), reached.argmax(axis=-1), np.inf)
    return np.where(np.isnan(found[..., 0]), np.nan, median)


def longest_dialogue(rows: Rows) -> int:
    """Counts the user turns of the longest dialogue; 0 without any."""
    return int(positions(rows.dialogue_of).max(initial=-1)) + 1
