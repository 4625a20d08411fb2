"""Measures when a run predicts its labels: F1 with a tolerance, onsets, detection curve.

Times are counted in user turns, because a corpus has no timestamps. Everything is measured for all
labels, for alerts and for confirms.

F1 with a tolerance. Within each dialogue and label, gold occurrences and predictions are matched
one to one, as many as possible; a pair fits if the prediction comes at most ``early`` user turns
before the gold label and at most ``late`` after it. True positives are pairs, unmatched occurrences
are false positives and false negatives. With a window of 0 this is the turn-level micro F1 of the
paper's Table 4. With an unlimited window, after dropping repeated occurrences of a label in a
dialogue, it is the dialogue-level micro F1.

Onsets. The onset of a label is its first gold occurrence in a dialogue. Its outcome is
``premature`` (the first prediction of this label is on an earlier turn), ``on_time``, ``late`` (on
a later turn, not before) or ``never``.

Detection curve. D(d) is the share of all onsets whose first prediction comes 0 to d turns after
them: a cumulative incidence with three final states. An onset without a prediction by the end of
its dialogue is never detected, because no further turn exists, and stays in the denominator, as
does a premature one. Nothing is censored, so the estimator of Kaplan and Meier does not apply:
it would treat onsets near the end of a dialogue as if more turns followed.

References:
    Mesaros, Heittola and Virtanen, "Metrics for Polyphonic Sound Event Detection", Applied
    Sciences 6(6), 2016 (event-based F1 with a collar); Putter, Fiocco and Geskus, "Tutorial in
    Biostatistics: Competing Risks and Multi-State Models", Statistics in Medicine 26, 2007
    (cumulative incidence).
"""

from __future__ import annotations

import math
from functools import partial
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.arguments import Seed, checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.labels import LABELS
from cradle_lib.scoring.conventions import STAGES
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.occurrences import label_positions, match, members, positions
from cradle_lib.statistics.rates import Floats, f1, ratio


class Window(NamedTuple):
    """A tolerance: the user turns that a prediction may be early or late, each 0 to infinity.

    ``measure`` is the name of F1 under this window; ``once`` says whether only each label's first
    occurrence in a dialogue counts, on both sides.
    """

    measure: str
    early: float
    late: float
    once: bool = False


# Tolerances in user turns; the unlimited one is the end of the curve.
WIDTHS: Final = (0.0, 1.0, 2.0, 3.0, 4.0, 5.0, math.inf)
WINDOWS: Final = (
    *(Window("either", width, width) for width in WIDTHS),
    Window("either_first", math.inf, math.inf, once=True),
    Window("late", 0, 2),
)
# The labels of each stage.
_MEMBERS: Final = members(STAGES.values())
ONSET_OUTCOMES: Final = ("premature", "on_time", "late", "never")
_COLUMNS: Final = (
    "system", "coverage", "dialogues", "view", "measure", "scope", "turns", "value", "low", "high",
    "unit", "support", "signature",
)  # fmt: skip


@checked
def timing(predictions: Predictions, *, draws: int = DRAWS, seed: Seed = 0) -> pd.DataFrame:
    """Measures when a run predicts its labels.

    Args:
        predictions: The predictions for every user turn of a corpus.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each number.

        - ``system``, ``coverage`` (str): the model's name; the dialogues of the run, as a heading;
          ``dialogues`` (int): their number.
        - ``view`` (str) and ``measure`` (str): ``window`` (F1 within ``turns`` user turns:
          ``either``, early or late; ``late``; ``either_first``, where each label counts once per
          dialogue), ``onset`` (shares :data:`ONSET_OUTCOMES`, and ``median_delay``) or
          ``delay`` (share ``detected`` at most ``turns`` user turns late).
        - ``scope`` (str): ``any``, ``alert`` or ``confirm``.
        - ``turns`` (float): infinite for an unlimited window; NaN where it does not apply.
        - ``value``, ``low``, ``high`` (float): the number and its 95 % interval. A median delay
          is infinite if fewer than half of the onsets are detected. NaN if the scope has no gold
          label, and if not computed.
        - ``unit`` (str): ``share`` (0 to 1), or ``number`` for user turns.
        - ``support`` (int): dialogues with a gold label of the scope, or its onsets for ``onset``
          and ``delay``.
        - ``signature`` (str): the scoring settings.
    """
    predictions = predictions.labelled
    corpus = predictions.corpus
    resampled = partial(bootstrap, draws=draws, seed=seed)
    scored = resampled(_MEMBERS @ window_counts(predictions), lambda t: {"f1": _window_f1(t)})
    windows = scored["f1"].to_frame(window=range(len(WINDOWS)), scope=STAGES)
    windows = windows.join(pd.DataFrame(WINDOWS), on="window").rename(columns={"late": "turns"})
    # One turn at least, so that the frame has a row also for a corpus without user turns.
    longest = int(positions(corpus.dialogue_of).max(initial=0)) + 1
    onsets = _MEMBERS @ onset_counts(predictions, longest)
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
            windows.assign(view="window"),
            found["outcomes"].to_frame(scope=STAGES, measure=ONSET_OUTCOMES).assign(view="onset"),
            found["delay"].to_frame(scope=STAGES).assign(view="onset", measure="median_delay"),
            detection.assign(view="delay", measure="detected"),
        ],
        ignore_index=True,
    )
    dialogues_with_gold = {
        name: len(np.unique(corpus.dialogue_of[(corpus.gold & np.uint16(mask)) != 0]))
        for name, mask in STAGES.items()
    }
    number_of_onsets = dict(zip(STAGES, onsets.sum(axis=(0, 2)).tolist(), strict=True))
    scope = frame["scope"]
    support = scope.map(dialogues_with_gold).where(
        frame["view"] == "window", scope.map(number_of_onsets)
    )
    frame.loc[support == 0, ["value", "low", "high"]] = math.nan
    signature = str(signature_of(predictions, draws=draws, seed=seed))
    head, _, version = signature.rpartition("|")
    frame = frame.assign(
        system=predictions.record.name,
        coverage=predictions.coverage,
        dialogues=len(corpus),
        unit=np.where(frame["measure"] == "median_delay", "number", "share"),
        support=support.astype(int),
        signature=f"{head}|win:{','.join(f'{width:g}' for width in WIDTHS)}|{version}",
    )
    return signed(frame.astype({"turns": float})[list(_COLUMNS)])


def window_counts(run: Predictions) -> NDArray[np.int64]:
    """Counts matches and occurrences of each label in N dialogues. Shape (N, 16, W + 2).

    The first W columns are the matches under each of :data:`WINDOWS`. The last two are gold
    occurrences plus predictions: all of them, and only the first of each label in the dialogue.
    """
    gold, predicted = _positions(run)
    counts = np.zeros((len(run.corpus), len(LABELS), len(WINDOWS) + 2), dtype=np.int64)
    for slot, places in gold.items():
        sides = places, predicted.get(slot, [])
        firsts = [side[:1] for side in sides]
        counts[slot][:-2] = [
            match(*(firsts if window.once else sides), early=window.early, late=window.late)
            for window in WINDOWS
        ]
    for side in (gold, predicted):
        for slot, places in side.items():
            counts[slot][-2:] += [len(places), 1]
    return counts


def _window_f1(totals: Floats) -> Floats:
    """Computes F1 under each window of counts of shape (..., S, W + 2). Shape (..., W, S)."""
    # The last two columns count all occurrences, and only first ones.
    occurrences = totals[..., [len(WINDOWS) + window.once for window in WINDOWS]]
    return f1(totals[..., : len(WINDOWS)], occurrences, 0.0).swapaxes(-1, -2)


def onset_counts(run: Predictions, longest: int) -> NDArray[np.int64]:
    """Counts the onsets of each of N dialogues and each label by their outcome.

    K (``longest``) is the number of user turns of the longest dialogue. Columns are: detected after
    0, 1, ... K-1 turns, never, premature; at most one of them is 1. Shape (N, 16, K + 2).
    """
    gold, predicted = _positions(run)
    counts = np.zeros((len(run.corpus), len(LABELS), longest + 2), dtype=np.int64)
    for (dialogue, label), places in gold.items():
        answers = predicted.get((dialogue, label))
        delay = longest if answers is None else answers[0] - places[0]
        counts[dialogue, label, delay if delay >= 0 else longest + 1] = 1
    return counts


def _positions(run: Predictions) -> tuple[dict[tuple[int, int], list[int]], ...]:
    """Gives the positions of gold labels and of predictions."""
    return tuple(label_positions(m, run.corpus.dialogue_of) for m in (run.corpus.gold, run.masks))


def onset_outcomes(totals: Floats) -> Floats:
    """Gives the shares of the onsets by :data:`ONSET_OUTCOMES`. Shape (..., K + 2) to (..., 4)."""
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
