"""The timing of one run as a result: by name, as a data frame, and ready for JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from cradle_lib.scoring.core.signature import Signature
from cradle_lib.scoring.timing.occurrences import SCOPES, STAGES
from cradle_lib.scoring.timing.onset import OUTCOMES
from cradle_lib.statistics.bootstrap import Estimate
from cradle_lib.statistics.rates import Floats

# Name of a curve, shape of its windows, and whether repeated occurrences are dropped.
CURVES: Final = {
    "either": ("either", False),
    "either_first": ("either", True),
    "late": ("late", False),
}
LEADS: Final = ("before", "same_turn", "after", "never")
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
        erde: The o of each ERDE.
        p: Rate of the latency penalty, from the corpus; NaN where nothing can be late.
    """

    scored: Signature
    widths: tuple[float, ...]
    erde: tuple[int, ...]
    p: float

    def __str__(self) -> str:
        """The signature of a score with ``win``, ``erde`` and ``p`` before the version."""
        head, _, version = str(self.scored).rpartition("|")
        widths = ",".join(f"{width:g}" for width in self.widths)
        orders = ",".join(map(str, self.erde))
        rate = "none" if math.isnan(self.p) else f"{self.p:.4g}"
        return f"{head}|win:{widths}|erde:{orders}|p:{rate}|{version}"


@dataclass(frozen=True)
class Timing:
    """The timing of one run. G is 19 scopes: any, alert, confirm, and the sixteen labels.

    Attributes:
        signature: What all of it depends on.
        curves: F1 for each width, by name of the curve (``either``, ``either_first``,
            ``late``). Shape (widths, G) each.
        outcomes: Share of the onsets that were tagged prematurely, on time, late or never, in
            this order. Shape (G, 4).
        delay: Median delay in user turns; infinity where fewer than half of the onsets
            are ever tagged on their turn or later. Shape (G,).
        detected: Share of the onsets tagged at most d turns late, for any label and for the
            two stages. Shape (3, K).
        onsets: Number of onsets. Shape (G,).
        lead: Shares of dialogues whose first tag comes before, with or after the first gold
            confirm, or never. Shape (4,).
        median_lead: Median lead in user turns, minus infinity for never. Shape ().
        lead_dialogues: Number of dialogues with both a gold alert and a gold confirm.
        early: ``erde_2``, ``erde_5``, ``latency_f1`` (NaN where nothing can be late) and
            ``latency``. Shape (G,) each.
        positives: Number of dialogues that are positive for each scope. Shape (G,).
        system: Name of the model that made the run; empty if nobody said it.
        over: Over which dialogues it was, as a heading.
    """

    signature: TimingSignature
    curves: dict[str, Estimate]
    outcomes: Estimate
    delay: Estimate
    detected: Estimate
    onsets: Floats
    lead: Estimate
    median_lead: Estimate
    lead_dialogues: int
    early: dict[str, Estimate]
    positives: Floats
    system: str = ""
    over: str = ""

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences to put under these numbers: the conditions, and what the corpus lacks."""
        said = ["In the signature p is the rate of the latency penalty."]
        if not self.positives[: len(STAGES)].all():
            said.append("A dash: no label of this stage is gold in these dialogues.")
        if math.isnan(self.signature.p):
            said.append(
                "Half of the dialogues or more have fewer than two user turns, so that nothing "
                "can be late: latency-weighted F1 is not defined."
            )
        return tuple(said)

    def f1(self, name: str, width: float, scope: str = "any") -> Estimate:
        """Looks up a point of a curve.

        Args:
            name: Name of the curve.
            width: One of the signature's widths.
            scope: ``any``, ``alert``, ``confirm`` or a label.

        Returns:
            F1 with its interval.
        """
        place = self.signature.widths.index(width), list(SCOPES).index(scope)
        return self.curves[name].at(*place)

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
        scopes, widths = list(SCOPES), self.signature.widths
        parts = [
            m.to_frame(turns=widths, scope=scopes).assign(view="window", measure=name)
            for name, m in self.curves.items()
        ]
        parts += [
            self.outcomes.to_frame(scope=scopes, measure=OUTCOMES).assign(view="onset"),
            self.delay.to_frame(scope=scopes).assign(view="onset", measure="median_delay"),
        ]
        parts += [
            self.detected.to_frame(
                scope=STAGES, turns=np.arange(self.detected.value.shape[1])
            ).assign(view="delay", measure="detected"),
            self.lead.to_frame(measure=LEADS).assign(view="lead", scope="any"),
            self.median_lead.to_frame(measure=["median_lead"]).assign(view="lead", scope="any"),
        ]
        parts += [
            m.to_frame(scope=scopes).assign(view="early", measure=name)
            for name, m in self.early.items()
        ]
        frame = pd.concat(parts, ignore_index=True)
        places = frame["scope"].map(scopes.index)
        support = pd.Series(self.positives[places])
        of_onsets = frame["view"].isin(["onset", "delay"])
        support = support.mask(of_onsets, pd.Series(self.onsets[places]))
        support = support.mask(frame["view"] == "lead", self.lead_dialogues)
        frame.loc[support == 0, ["value", "low", "high"]] = math.nan
        in_turns = frame["measure"].isin(["median_delay", "median_lead", "latency"])
        frame = frame.assign(
            system=self.system,
            over=self.over,
            dialogues=self.signature.scored.dialogues,
            unit=np.where(in_turns, "number", "share"),
            support=support.astype(int),
            signature=str(self.signature),
        )
        return frame[list(_COLUMNS)].astype({"turns": float})
