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

import math
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
import pandas as pd

from cradle_lib.detection.journals.predictions import Predictions
from cradle_lib.scoring.core.conventions import Conventions, Rows
from cradle_lib.scoring.core.evaluate import signature_of
from cradle_lib.scoring.core.signature import Signature, signed
from cradle_lib.scoring.timing.early import (
    ERDE_TURNS,
    decision_rows,
    erde,
    latency,
    latency_f1,
    penalty_rate,
    positives,
)
from cradle_lib.scoring.timing.occurrences import SCOPES, STAGES, scored_rows
from cradle_lib.scoring.timing.onset import (
    LEADS,
    OUTCOMES,
    detected,
    lead_rows,
    leads,
    longest_dialogue,
    median_delay,
    onset_outcomes,
    onset_rows,
)
from cradle_lib.scoring.timing.windows import CURVES, WIDTHS, by_scope, curve, window_tallies
from cradle_lib.statistics.bootstrap import DRAWS, Estimate, bootstrap
from cradle_lib.statistics.proportions import wilson, wilson_f1
from cradle_lib.statistics.rates import Floats, f1, ratio

_EARLY: Final = (*(f"erde_{o}" for o in ERDE_TURNS), "latency_f1", "latency")
_IN_TURNS: Final = ("median_delay", "median_lead", "latency")
_COLUMNS: Final = (
    "system", "over", "dialogues", "view", "measure", "scope", "turns", "value", "low", "high",
    "unit", "support", "signature",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class TimingSignature:
    """What a timing measure depends on.

    Attributes:
        scored: What every score depends on.
        widths: Widths of the windows in user turns.
        p: Rate of the latency penalty, from the corpus; NaN where nothing can be late.
    """

    scored: Signature
    widths: tuple[float, ...]
    p: float

    def __str__(self) -> str:
        """The signature of a score with ``win``, ``erde`` and ``p`` before the version."""
        head, _, version = str(self.scored).rpartition("|")
        widths = ",".join(f"{width:g}" for width in self.widths)
        orders = ",".join(map(str, ERDE_TURNS))
        rate = "none" if math.isnan(self.p) else f"{self.p:.4g}"
        return f"{head}|win:{widths}|erde:{orders}|p:{rate}|{version}"


@dataclass(frozen=True)
class Timing:
    """The timing of one run.

    Attributes:
        signature: What all of it depends on.
        numbers: As :meth:`to_frame` gives them.
    """

    signature: TimingSignature
    numbers: pd.DataFrame

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences to put under these numbers: the conditions, and what the corpus lacks."""
        said = ["In the signature p is the rate of the latency penalty."]
        early = self.numbers[self.numbers["view"] == "early"]
        if (early.loc[early["scope"].isin(STAGES), "support"] == 0).any():
            said.append("A dash: no label of this stage is gold in these dialogues.")
        if math.isnan(self.signature.p):
            said.append(
                "Half of the dialogues or more have fewer than two user turns, so that nothing "
                "can be late: latency-weighted F1 is not defined."
            )
        return tuple(said)

    def to_frame(self) -> pd.DataFrame:
        """Gives all of it as one tidy data frame.

        Returns:
            One row for each number.

            - ``system``, ``over`` (str): the model's name; over which dialogues the run was, as a
              heading; ``dialogues`` (int): how many these are.
            - ``view`` (str) and ``measure`` (str): ``window`` (F1 within ``turns`` user turns;
              the name of a curve), ``onset`` (shares ``premature``, ``on_time``, ``late``,
              ``never``, and ``median_delay``), ``delay`` (share ``detected`` at most ``turns``
              user turns late), ``lead`` (shares ``before``, ``same_turn``, ``after``,
              ``never``, and ``median_lead``) or ``early`` (``erde_2``, ``erde_5``,
              ``latency_f1``, ``latency``).
            - ``scope`` (str): ``any``, ``alert``, ``confirm`` or a label.
            - ``turns`` (float): infinite for an endless window; NaN where it has no meaning.
            - ``value``, ``low``, ``high`` (float): the number and its 95 % interval. Infinite
              where fewer than half are ever tagged, on their turn or later. NaN where nothing
              within the scope is gold, whatever 0/0 counts as elsewhere, and for what was not
              computed.
            - ``unit`` (str): ``share`` (0 to 1), or ``number`` for user turns.
            - ``support`` (int): dialogues with a gold label of the scope; its onsets, for
              ``onset`` and ``delay``; dialogues with both stages, for ``lead``.
            - ``signature`` (str): what the numbers depend on.
        """
        return self.numbers.copy()


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
    signature = TimingSignature(scored, widths, penalty_rate(lengths))
    numbers = time_rows(rows, n, signature=signature).assign(
        system=predictions.record.name,
        over=predictions.over,
        dialogues=scored.dialogues,
        signature=str(signature),
    )
    return Timing(signature, signed(numbers[list(_COLUMNS)]))


def time_rows(rows: Rows, n: int, *, signature: TimingSignature) -> pd.DataFrame:
    """Does the work of :func:`timing` on gold and predicted masks of n dialogues.

    Gives the columns of :meth:`Timing.to_frame` that say nothing of the run.
    """
    draws, widths, scopes = signature.scored.draws, signature.widths, list(SCOPES)
    drawn = partial(bootstrap, draws=draws, seed=signature.scored.seed)
    # One column at least, in which nothing stands if there is no user turn.
    longest, zero = max(longest_dialogue(rows), 1), signature.scored.zero_division
    windows = tuple(window for name in CURVES for window in curve(name, widths))
    pairs = by_scope(np.concatenate(window_tallies(rows, n, windows), axis=1))
    which = [len(windows) + window.first for window in windows]
    found = drawn(pairs, lambda t: {"f1": f1(t[..., : len(windows), :], t[..., which, :], zero)})
    onsets = by_scope(onset_rows(rows, n, longest).transpose(0, 2, 1)).transpose(0, 2, 1)
    found |= drawn(
        onsets,
        lambda t: {
            "outcomes": onset_outcomes(t),
            "delay": median_delay(t),
            "detected": detected(t[..., : len(STAGES), :]),
        },
    )
    if draws and n > 1:
        tp, gold_and_tagged = pairs[:, : len(windows)], pairs[:, which]
        found["f1"] = _of_few(found["f1"], *wilson_f1(tp, gold_and_tagged - 2 * tp))
        of = onsets.sum(axis=-1, keepdims=True)
        hits = np.nan_to_num(onset_outcomes(onsets.astype(np.float64)) * of)
        ends = wilson(hits, np.broadcast_to(of, hits.shape))
        found["outcomes"] = _of_few(found["outcomes"], *ends, axis=0)
    lead = lead_rows(rows, n, longest)
    found |= drawn(lead, lambda t: {"lead": leads(t)})
    decisions = decision_rows(rows, n, longest)
    total = decisions.sum(axis=0, dtype=np.float64)
    cost = np.nan_to_num(ratio(positives(total), total.sum(axis=-1)))

    def early(t: Floats) -> dict[str, Floats]:
        risk = (erde(t, o, cost) for o in ERDE_TURNS)
        return {"early": np.stack([*risk, latency_f1(t, signature.p), latency(t)], axis=-2)}

    found |= drawn(decisions, early)
    curves = (end.reshape(len(CURVES), len(widths), -1) for end in found["f1"])
    delay, late = found["delay"].to_frame(scope=scopes), found["detected"]
    frame = pd.concat(
        [
            Estimate(*curves)
            .to_frame(measure=CURVES, turns=widths, scope=scopes)
            .assign(view="window"),
            found["outcomes"].to_frame(scope=scopes, measure=OUTCOMES).assign(view="onset"),
            delay.assign(view="onset", measure="median_delay"),
            late.to_frame(scope=STAGES, turns=range(longest)).assign(
                view="delay", measure="detected"
            ),
            found["lead"].to_frame(measure=LEADS).assign(view="lead", scope="any"),
            found["early"].to_frame(measure=_EARLY, scope=scopes).assign(view="early"),
        ],
        ignore_index=True,
    )
    places = frame["scope"].map(scopes.index)
    support = np.where(
        frame["view"].isin(["onset", "delay"]),
        onsets.sum(axis=(0, 2))[places],
        np.where(frame["view"] == "lead", lead.sum(), positives(total)[places]),
    )
    frame.loc[support == 0, ["value", "low", "high"]] = math.nan
    unit = np.where(frame["measure"].isin(_IN_TURNS), "number", "share")
    return frame.assign(unit=unit, support=support.astype(int)).astype({"turns": float})


def _of_few(found: Estimate, low: Floats, high: Floats, axis: int = -1) -> Estimate:
    """Gives the labels other ends, which hold where few occurrences are; scopes along an axis."""
    ends = [np.array(end) for end in (found.low, found.high)]
    for end, other in zip(ends, (low, high), strict=True):
        np.moveaxis(end, axis, 0)[len(STAGES) :] = np.moveaxis(other, axis, 0)[len(STAGES) :]
    return Estimate(found.value, *ends)
