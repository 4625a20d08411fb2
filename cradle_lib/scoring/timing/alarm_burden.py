"""Alarm burden: what a run would cost the people who look at its tags.

A model that finds everything by tagging everything is of no use. These numbers say how much
there would be to look at, and for how little. A corpus has no timestamps, so alarms per hour
can't be computed, and nothing here stands in for it.

Metrics, from tags at turn level:
    ``false_tags_per_dialogue``: tags that are not gold on their turn, per dialogue.
    ``flagged_per_100``: user turns with a tag but no gold label at all, per 100 user turns
        without a gold label.
    ``flagged_per_1000``: user turns with a tag, right or wrong, per 1,000 user turns;
        ``flagged_per_100_dialogues``: the same per 100 dialogues.
    ``gold_flagged``: share of the user turns with a gold label that got a tag, whichever.
    ``quiet_flagged``: share of the dialogues without any gold label that got a tag.
    ``needed_to_evaluate``: tags that have to be looked at for each correct one.
    ``repeats_per_alarm``: an alarm is the first tag of a label in a dialogue; a repeat is a later
        tag of the same label that is not gold there. The protocol asks for none.

References:
    Romero-Brufau et al., "Why the C-statistic Is Not Informative to Evaluate Early Warning
    Scores and What Metrics to Use", Critical Care 19, 2015 (number needed to evaluate).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.scoring.core.conventions import Conventions, Rows
from cradle_lib.scoring.core.evaluate import signature_of
from cradle_lib.scoring.timing.occurrences import first_only, scored_rows
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.rates import Floats, ratio

if TYPE_CHECKING:
    from cradle_lib.detection.journals.predictions import Predictions

TALLIES: Final = (
    "dialogues",
    "tags",
    "correct_tags",
    "negative_turns",
    "flagged_turns",
    "gold_turns",
    "flagged_gold",
    "quiet_dialogues",
    "flagged_dialogues",
    "alarms",
    "repeats",
)
# Name, what is counted, per what, times what.
_RATIOS: Final = {
    "false_tags_per_dialogue": ("false_tags", "dialogues", 1.0),
    "flagged_per_100": ("flagged_turns", "negative_turns", 100.0),
    "flagged_per_1000": ("flagged", "turns", 1000.0),
    "flagged_per_100_dialogues": ("flagged", "dialogues", 100.0),
    "gold_flagged": ("flagged_gold", "gold_turns", 1.0),
    "quiet_flagged": ("flagged_dialogues", "quiet_dialogues", 1.0),
    "needed_to_evaluate": ("tags", "correct_tags", 1.0),
    "repeats_per_alarm": ("repeats", "alarms", 1.0),
}
_SHARES: Final = ("quiet_flagged", "gold_flagged")
PREVALENCES: Final = (0.1, 0.01, 0.001)


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
    tallies = _with_sums(rows.sum(axis=0))
    estimates = bootstrap(rows, _metrics, draws=draws, seed=seed)
    signature = str(signature_of(predictions, conventions, draws=draws, seed=seed))
    return pd.DataFrame(
        {
            "system": predictions.record.name,
            "over": predictions.over,
            "dialogues": len(predictions.corpus),
            "measure": name,
            **estimates[name]._asdict(),
            "unit": "share" if name in _SHARES else "number",
            "count": int(tallies[above]),
            "of": int(tallies[below]),
            "signature": signature,
        }
        for name, (above, below, _) in _RATIOS.items()
    )


def projected_precision(
    predictions: Predictions,
    prevalences: Sequence[float] = PREVALENCES,
    *,
    conventions: Conventions | None = None,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Projects the share of flagged turns that have a gold label to rarer crises.

    A benchmark holds far more crises than conversations do. With s the share of gold turns that
    are flagged, f that of the others, and q the share of turns with a gold label, the positive
    predictive value is s q / (s q + f (1 - q)). It assumes that s and f stay as they are here.

    Args:
        predictions: What the run says about every user turn of its corpus.
        prevalences: Shares of turns with a gold label to project to.
        conventions: What the paper leaves open; the defaults if ``None``.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Their seed.

    Returns:
        One row for the prevalence of the corpus itself and one for each that is given.

        - ``system``, ``over`` (str): the model's name; over which dialogues the run was.
        - ``prevalence`` (float): share of turns with a gold label; ``observed`` (bool): whether
          it is the corpus' own.
        - ``value``, ``low``, ``high`` (float): the predictive value, 0 to 1; NaN for a run that
          flags nothing.
        - ``signature`` (str): what the numbers depend on.

    Raises:
        ScoringError: If the conventions leave nothing to score.
    """
    conventions = conventions or Conventions()
    rows = burden_rows(scored_rows(predictions, conventions), len(predictions.corpus))
    own = _with_sums(rows.sum(axis=0))
    observed = float(ratio(own["gold_turns"], own["turns"]))
    every = [observed, *prevalences]

    def values(totals: Floats) -> dict[str, Floats]:
        rates = _metrics(totals)
        found, wrong = rates["gold_flagged"], rates["flagged_per_100"] / 100
        hits = [q * found for q in every]
        return {
            str(place): ratio(hit, hit + (1 - q) * wrong)
            for place, (q, hit) in enumerate(zip(every, hits, strict=True))
        }

    estimates = bootstrap(rows, values, draws=draws, seed=seed)
    return pd.DataFrame(
        {
            "system": predictions.record.name,
            "over": predictions.over,
            "prevalence": prevalence,
            "observed": not place,
            **estimates[str(place)]._asdict(),
            "signature": str(signature_of(predictions, conventions, draws=draws, seed=seed)),
        }
        for place, prevalence in enumerate(every)
    )


def burden_rows(rows: Rows, n: int) -> NDArray[np.int64]:
    """Counts what the burden is made of.

    Args:
        rows: Gold and predicted masks of n dialogues.
        n: Number of dialogues.

    Returns:
        In the order of :data:`TALLIES`, for each dialogue; a dialogue without scored turns
        counts as a quiet one. Shape (n, 11).
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
            per_dialogue(gold != 0),
            per_dialogue((gold != 0) & tagged),
            quiet.astype(np.int64),
            (quiet & (per_dialogue(tagged) > 0)).astype(np.int64),
            per_dialogue(np.bitwise_count(first)),
            per_dialogue(np.bitwise_count(tags & ~first & ~gold)),
        ],
        axis=1,
    )


def _metrics(totals: Floats) -> dict[str, Floats]:
    tally = _with_sums(totals)
    # x / 0 is infinity and 0 / 0 is NaN, which is what these two mean here.
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            name: np.asarray(scale * tally[above] / tally[below])
            for name, (above, below, scale) in _RATIOS.items()
        }


def _with_sums(totals: NDArray[Any]) -> dict[str, NDArray[Any]]:
    """Names tallies, and adds what is made of two of them. Shape (..., 11)."""
    tally = dict(zip(TALLIES, np.moveaxis(totals, -1, 0), strict=True))
    return tally | {
        "false_tags": tally["tags"] - tally["correct_tags"],
        "flagged": tally["flagged_turns"] + tally["flagged_gold"],
        "turns": tally["negative_turns"] + tally["gold_turns"],
    }
