"""Alarm burden: what a run would cost the people who look at its tags.

A model that finds everything by tagging everything is of no use. These numbers say how much
there would be to look at, and for how little. A corpus has no timestamps, so alarms per hour
can't be computed, and nothing here stands in for it.

Metrics, from tags at turn level:
    ``false_tags_per_dialogue``: tags that are not gold on their turn, per dialogue.
    ``flagged_per_100``: user turns with a tag but no gold label at all, per 100 user turns
        without a gold label.
    ``quiet_flagged``: share of the dialogues without any gold label that got a tag.
    ``needed_to_evaluate``: tags that have to be looked at for each correct one.
    ``repeats_per_alarm``: an alarm is the first tag of a label in a dialogue; a repeat is a later
        tag of the same label that is not gold there. The protocol asks for none.

References:
    Romero-Brufau et al., "Why the C-statistic Is Not Informative to Evaluate Early Warning
    Scores and What Metrics to Use", Critical Care 19, 2015 (number needed to evaluate).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.scoring.core.conventions import Conventions, Rows
from cradle_lib.scoring.core.evaluate import signature_of
from cradle_lib.scoring.timing.occurrences import first_only, scored_rows
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.rates import Floats

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

TALLIES: Final = (
    "dialogues",
    "tags",
    "correct_tags",
    "negative_turns",
    "flagged_turns",
    "quiet_dialogues",
    "flagged_dialogues",
    "alarms",
    "repeats",
)
# Name, what is counted, per what, times what.
_RATIOS: Final = {
    "false_tags_per_dialogue": ("false_tags", "dialogues", 1.0),
    "flagged_per_100": ("flagged_turns", "negative_turns", 100.0),
    "quiet_flagged": ("flagged_dialogues", "quiet_dialogues", 1.0),
    "needed_to_evaluate": ("tags", "correct_tags", 1.0),
    "repeats_per_alarm": ("repeats", "alarms", 1.0),
}


def alarm_burden(
    predictions: Predictions,
    *,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Measures the alarm burden of a run.

    Args:
        predictions: What the run says about every user turn of its corpus.
        conventions: What the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        One row for each metric.

        - ``system``, ``over`` (str): the model's name; over which dialogues the run was, as a
          heading; ``dialogues`` (int): how many these are.
        - ``measure`` (str): a metric, as the module lists them.
        - ``value``, ``low``, ``high`` (float): the metric and its 95 % interval. Infinite
          where alarms find nothing; NaN where there is nothing to divide by, and for what was
          not computed.
        - ``unit`` (str): ``share`` (0 to 1), or ``number``.
        - ``count``, ``of`` (int): what is divided by what.
        - ``signature`` (str): what the numbers depend on.

    Raises:
        ScoringError: If the conventions leave nothing to score.
    """
    conventions = conventions or Conventions()
    rows = burden_rows(scored_rows(predictions, conventions), len(predictions.corpus))
    tallies = dict(zip(TALLIES, rows.sum(axis=0).tolist(), strict=True))
    tallies["false_tags"] = tallies["tags"] - tallies["correct_tags"]
    estimates = bootstrap(rows, _metrics, draws=draws, seed=seed)
    signature = str(signature_of(predictions, conventions, draws=draws, seed=seed))
    return pd.DataFrame(
        {
            "system": predictions.record.name,
            "over": predictions.over,
            "dialogues": len(predictions.corpus),
            "measure": name,
            **estimates[name]._asdict(),
            "unit": "share" if name == "quiet_flagged" else "number",
            "count": tallies[above],
            "of": tallies[below],
            "signature": signature,
        }
        for name, (above, below, _) in _RATIOS.items()
    )


def burden_rows(rows: Rows, n: int) -> NDArray[np.int64]:
    """Counts what the burden is made of.

    Args:
        rows: Gold and predicted masks of n dialogues.
        n: Number of dialogues.

    Returns:
        In the order of :data:`TALLIES`, for each dialogue; a dialogue without scored turns
        counts as a quiet one. Shape (n, 9).
    """
    gold, tags = rows.gold, rows.predicted
    first = first_only(tags, rows.dialogue_of)
    negative, tagged = (gold == 0) & rows.answered, tags != 0

    def per_dialogue(values: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(rows.dialogue_of, weights=values, minlength=n).astype(np.int64)

    quiet = per_dialogue(gold != 0) == 0
    return np.stack(
        [
            np.ones(n, dtype=np.int64),
            per_dialogue(np.bitwise_count(tags)),
            per_dialogue(np.bitwise_count(tags & gold)),
            per_dialogue(negative),
            per_dialogue(negative & tagged),
            quiet.astype(np.int64),
            (quiet & (per_dialogue(tagged) > 0)).astype(np.int64),
            per_dialogue(np.bitwise_count(first)),
            per_dialogue(np.bitwise_count(tags & ~first & ~gold)),
        ],
        axis=1,
    )


def _metrics(totals: Floats) -> dict[str, Floats]:
    tally = dict(zip(TALLIES, np.moveaxis(totals, -1, 0), strict=True))
    tally["false_tags"] = tally["tags"] - tally["correct_tags"]
    # x / 0 is infinity and 0 / 0 is NaN, which is what these two mean here.
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            name: np.asarray(scale * tally[above] / tally[below])
            for name, (above, below, scale) in _RATIOS.items()
        }
