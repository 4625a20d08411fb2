"""All that can be said about *when*, for one run.

Four views, each with intervals over dialogues, for everything, each stage and each label. Shares
and F1 of a single label, which may have few occurrences, have Wilson's interval:

    curves: F1 with a tolerance (``windows``), for windows to both sides
        and for late-only ones, and with only the first occurrences of a label.
    onsets: premature, on time, late or never, and the delay (``onset``).
    lead: how long before the first gold confirm the first tag came.
    early: ERDE and latency-weighted F1 (``early``).

There are no timestamps in a corpus: all times are user turns.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from cradle_lib.scoring.core.conventions import Conventions, Rows
from cradle_lib.scoring.core.evaluate import signature_of
from cradle_lib.scoring.timing.early import (
    ERDE_TURNS,
    decision_rows,
    erde,
    latency,
    latency_f1,
    penalty_rate,
    prevalence,
)
from cradle_lib.scoring.timing.occurrences import STAGES, scored_rows
from cradle_lib.scoring.timing.onset import (
    detected,
    lead_rows,
    lead_values,
    longest_dialogue,
    median_delay,
    onset_outcomes,
    onset_rows,
)
from cradle_lib.scoring.timing.timing_result import CURVES, Timing, TimingSignature
from cradle_lib.scoring.timing.windows import WIDTHS, by_scope, curve, window_tallies
from cradle_lib.statistics.bootstrap import DRAWS, Estimate, bootstrap, histogram_median
from cradle_lib.statistics.proportions import wilson, wilson_f1
from cradle_lib.statistics.rates import Floats, f1, ratio

if TYPE_CHECKING:
    from cradle_lib.detection.journals.predictions import Predictions


def timing(
    predictions: Predictions,
    *,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
    widths: tuple[float, ...] = WIDTHS,
) -> Timing:
    """Measures when a run tags what it tags.

    Args:
        predictions: What the run says about every user turn of its corpus.
        conventions: What the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.
        widths: Widths of the windows in user turns, ascending.

    Returns:
        The timing.

    Raises:
        ScoringError: If the conventions leave nothing to score.
    """
    conventions = conventions or Conventions()
    scored = signature_of(predictions, conventions, draws=draws, seed=seed)
    rows, n = scored_rows(predictions, conventions), len(predictions.corpus)
    lengths = np.bincount(rows.dialogue_of, minlength=n)
    signature = TimingSignature(scored, widths, ERDE_TURNS, penalty_rate(lengths))
    found = time_rows(rows, n, signature=signature)
    return replace(found, system=predictions.record.name, over=predictions.over)


def time_rows(rows: Rows, n: int, *, signature: TimingSignature) -> Timing:
    """Does the work of :func:`timing` on arrays.

    Args:
        rows: Gold and predicted masks of n dialogues.
        n: Number of dialogues.
        signature: What to compute, and with which draws.

    Returns:
        The timing.
    """
    draws, seed = signature.scored.draws, signature.scored.seed
    # One column at least, in which nothing stands if there is no user turn.
    longest, zero = max(longest_dialogue(rows), 1), signature.scored.zero_division
    shapes = [curve(shape, first=f, widths=signature.widths) for shape, f in CURVES.values()]
    windows = tuple(window for shape in shapes for window in shape)
    pairs = by_scope(np.concatenate(window_tallies(rows, n, windows), axis=1))
    which = [len(windows) + window.first for window in windows]
    drawn = partial(bootstrap, draws=draws, seed=seed)
    curves = drawn(pairs, lambda t: {"f1": f1(t[..., : len(windows), :], t[..., which, :], zero)})[
        "f1"
    ]
    size, resampled = len(signature.widths), bool(draws) and n > 1
    if resampled:
        tp, gold_and_tagged = pairs[:, : len(windows)], pairs[:, which]
        curves = _of_few(curves, *wilson_f1(tp, gold_and_tagged - 2 * tp))

    onsets = by_scope(onset_rows(rows, n, longest).transpose(0, 2, 1)).transpose(0, 2, 1)
    onset = drawn(
        onsets,
        lambda t: {
            "outcomes": onset_outcomes(t),
            "delay": median_delay(t),
            "detected": detected(t[..., : len(STAGES), :]),
        },
    )
    if resampled:
        of = onsets.sum(axis=-1, keepdims=True)
        hits = np.nan_to_num(onset_outcomes(onsets.astype(np.float64)) * of)
        ends = wilson(hits, np.broadcast_to(of, hits.shape))
        onset["outcomes"] = _of_few(onset["outcomes"], *ends, axis=0)
    leads = lead_rows(rows, n, longest)
    lead = drawn(
        leads,
        lambda t: {
            "lead": _lead_shares(t, longest),
            "median_lead": histogram_median(t, lead_values(longest)),
        },
    )
    decisions = decision_rows(rows, n, longest)
    total = decisions.sum(axis=0, dtype=np.float64)
    cost = np.nan_to_num(prevalence(total))
    early = drawn(
        decisions,
        lambda t: {
            **{f"erde_{o}": erde(t, o, cost) for o in signature.erde},
            "latency_f1": latency_f1(t, signature.p),
            "latency": latency(t),
        },
    )
    return Timing(
        signature=signature,
        curves={name: curves.at(slice(i * size, (i + 1) * size)) for i, name in enumerate(CURVES)},
        outcomes=onset["outcomes"],
        delay=onset["delay"],
        detected=onset["detected"],
        lead=lead["lead"],
        median_lead=lead["median_lead"],
        onsets=onsets.sum(axis=(0, 2), dtype=np.float64),
        lead_dialogues=int(leads.sum()),
        early=early,
        positives=total[:, :longest].sum(axis=1) + total[:, longest + 1],
    )


def _of_few(found: Estimate, low: Floats, high: Floats, axis: int = -1) -> Estimate:
    """Gives the labels other ends, which hold where few occurrences are; scopes along an axis."""
    ends = [np.array(end) for end in (found.low, found.high)]
    for end, other in zip(ends, (low, high), strict=True):
        np.moveaxis(end, axis, 0)[len(STAGES) :] = np.moveaxis(other, axis, 0)[len(STAGES) :]
    return Estimate(found.value, *ends)


def _lead_shares(totals: Floats, longest: int) -> Floats:
    counts = np.stack(
        [
            totals[..., longest + 1 :].sum(axis=-1),
            totals[..., longest],
            totals[..., 1:longest].sum(axis=-1),
            totals[..., 0],
        ],
        axis=-1,
    )
    return ratio(counts, counts.sum(axis=-1, keepdims=True))
