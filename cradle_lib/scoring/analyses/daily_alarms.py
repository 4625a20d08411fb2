"""Projects the alarms of a day: how many conversations a system flags, and how many it misses.

A conversation is *flagged* if a label is predicted on any of its turns, and has a *disclosure* if
it has a gold label. With N conversations a day, a share q of them with a disclosure, and a system
that flags a share s of those and a share f of the others, there are N q s true and N (1 - q) f
false alarms. The projection assumes that s and f stay the same elsewhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.arguments import Share, checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.scoring.analyses.alarm_burden import burden_counts, predictive_value
from cradle_lib.scoring.analyses.thresholds import turn_probabilities
from cradle_lib.scoring.scores import ENOUGH
from cradle_lib.statistics.rates import Floats, ratio


@dataclass(frozen=True)
class DailyAlarms:
    """The alarms of a day.

    Attributes:
        alarms: Conversations that are flagged.
        hours: Hours to review them.
        missed: Conversations with a disclosure that are not flagged.
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
            conversations in the order of their probability.

    Returns:
        One row for each run's own predictions, and one for each threshold of the runs that stored
        probabilities. A conversation's probability is the highest of its turns.

        - ``system`` (str): the model's name.
        - ``threshold`` (float): a probability, descending; NaN for the own predictions.
        - ``found``, ``false`` (float): flagged share of the dialogues with and without gold labels;
          NaN with fewer than 20 such dialogues.
    """
    rows = []
    for run in (run.labelled for run in runs):
        counts = burden_counts(run)
        positive = counts["gold_turns"] > 0
        flagged = counts["tags"] > 0
        rows.append({"system": run.record.name, "threshold": np.nan, **_shares(flagged, positive)})
        values = _highest(run)
        if values is None:
            continue
        levels = np.unique(np.quantile(values, np.linspace(0, 1, most), method="nearest"))
        for level in levels[::-1]:
            shares = _shares(values >= level, positive)
            rows.append({"system": run.record.name, "threshold": float(level), **shares})
    return pd.DataFrame(rows, columns=["system", "threshold", "found", "false"])


@checked
def daily_alarms(
    found: Share, false: Share, *, conversations: float, share: Share, minutes: float
) -> DailyAlarms:
    """Projects the alarms of a day from two rates of :func:`alarm_rates`.

    Args:
        found: Flagged share of the conversations with a disclosure.
        false: Flagged share of the others.
        conversations: Conversations a day.
        share: Share of them with a disclosure.
        minutes: Minutes to review an alarm.
    """
    alarms = conversations * (share * found + (1 - share) * false)
    precision = predictive_value(*map(np.asarray, (found, false, share)))
    return DailyAlarms(
        alarms=alarms,
        hours=alarms * minutes / 60,
        missed=conversations * share * (1 - found),
        precision=float(precision),
    )


def _highest(run: Predictions) -> Floats | None:
    """The highest probability of any label in each dialogue; ``None`` if a dialogue has none."""
    found = turn_probabilities(run)
    if found is None:
        return None
    values, dialogue_of = found
    highest = np.full(len(run.corpus), -np.inf)
    np.maximum.at(highest, dialogue_of, values)
    return highest if np.isfinite(highest).all() else None


def _shares(flagged: NDArray[np.bool_], positive: NDArray[np.bool_]) -> dict[str, float]:
    counts = [(flagged & chosen).sum() for chosen in (positive, ~positive)]
    sizes = np.array([chosen.sum() for chosen in (positive, ~positive)])
    shares = np.where(sizes < ENOUGH, np.nan, ratio(np.array(counts), sizes))
    return dict(zip(("found", "false"), map(float, shares), strict=True))
