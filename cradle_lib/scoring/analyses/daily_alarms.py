"""Projects the alarms of a day: how many conversations a system flags, and how many it misses.

A turn is *flagged* if a label is predicted on it. A conversation has a *disclosure* if it has a
gold label, be it only an alert. An alarm is true if the first labelled turn or a later one is
flagged. It is false if a turn before the first labelled one is flagged, or any turn of a
conversation without a disclosure. A conversation raises at most one alarm of each kind.

With N conversations a day, a share q of them with a disclosure, and a system that flags a share s
of those from the first labelled turn on, a share e of those before it, and a share f of the others,
there are N q s true and N (q e + (1 - q) f) false alarms; N q (1 - s) conversations are missed. The
projection assumes that s, e and f stay the same elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.arguments import Share, checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.scoring.analyses.alarm_burden import burden_counts
from cradle_lib.scoring.analyses.thresholds import turn_probabilities
from cradle_lib.scoring.scores import ENOUGH
from cradle_lib.statistics.rates import Floats


@dataclass(frozen=True)
class DailyAlarms:
    """The alarms of a day.

    Attributes:
        alarms: True and false alarms.
        hours: Hours to review them.
        missed: Conversations with a disclosure that are not flagged from its first turn on.
        precision: Share of the alarms that are true, 0 to 1; NaN without alarms.
    """

    alarms: float
    hours: float
    missed: float
    precision: float


@checked
def alarm_rates(runs: Sequence[Predictions], *, most: int = 60) -> pd.DataFrame:
    """Gives the shares of conversations that systems flag, also at other thresholds.

    Args:
        runs: Runs over the dialogues of one corpus.
        most: The highest number of thresholds for each system, evenly spaced among the
            probabilities of conversations.

    Returns:
        One row for each run's own predictions, and one for each threshold of the runs that stored
        probabilities. A conversation's probability is the highest of its turns, before the first
        labelled turn and from it on.

        - ``system`` (str): the model's name.
        - ``threshold`` (float): a probability, descending; NaN for the own predictions.
        - ``found``, ``early`` (float): share of the dialogues with gold labels that are flagged
          from the first labelled turn on, and before it; ``false`` (float): flagged share of the
          other dialogues. NaN with fewer than 20 such dialogues.
    """
    rows = []
    for run in (run.labelled for run in runs):
        positive = burden_counts(run)["gold_turns"] > 0
        own = _highest(run, (run.masks != 0).astype(float)) == 1
        rows.append({"system": run.record.name, "threshold": np.nan, **_shares(own, positive)})
        values = turn_probabilities(run)
        if values is None:
            continue
        highest = _highest(run, values)
        known = np.isfinite(highest)
        if not known.any(axis=0).all():
            continue
        levels = np.unique(np.quantile(highest[known], np.linspace(0, 1, most), method="nearest"))
        for level in levels[::-1]:
            shares = _shares(highest >= level, positive)
            rows.append({"system": run.record.name, "threshold": float(level), **shares})
    return pd.DataFrame(rows, columns=["system", "threshold", "found", "early", "false"])


@checked
def daily_alarms(
    found: Share,
    early: Share,
    false: Share,
    *,
    conversations: float,
    share: Share,
    minutes: float,
) -> DailyAlarms:
    """Projects the alarms of a day from the rates of :func:`alarm_rates`.

    Args:
        found: Share of the conversations with a disclosure that are flagged from its first turn on.
        early: Share of them that are flagged before it.
        false: Flagged share of the others.
        conversations: Conversations a day.
        share: Share of them with a disclosure.
        minutes: Minutes to review an alarm.
    """
    right = conversations * share * found
    alarms = right + conversations * (share * early + (1 - share) * false)
    return DailyAlarms(
        alarms=alarms,
        hours=alarms * minutes / 60,
        missed=conversations * share * (1 - found),
        precision=right / alarms if alarms else np.nan,
    )


def _highest(run: Predictions, values: Floats) -> Floats:
    """Gives the highest value in each dialogue before its first labelled turn, and from it on.

    ``values`` has one for each user turn. Shape (2, dialogues); minus infinity without such turns.
    """
    dialogue_of, n = run.corpus.dialogue_of, len(run.corpus)
    labelled = np.flatnonzero(run.corpus.gold)
    first = np.full(n, len(values))
    np.minimum.at(first, dialogue_of[labelled], labelled)
    begun = np.arange(len(values)) >= first[dialogue_of]
    highest = np.full((2, n), -np.inf)
    np.maximum.at(highest, (begun.astype(int), dialogue_of), values)
    return highest


def _shares(flagged: NDArray[np.bool_], positive: NDArray[np.bool_]) -> dict[str, float]:
    """Gives the shares of dialogues, from the flags before and from the first labelled turn on."""
    before, later = flagged
    groups = {"found": (later, positive), "early": (before, positive), "false": (before, ~positive)}
    return {
        name: float(flags[chosen].mean()) if chosen.sum() >= ENOUGH else np.nan
        for name, (flags, chosen) in groups.items()
    }
