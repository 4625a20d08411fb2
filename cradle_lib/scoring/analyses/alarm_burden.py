"""Alarm burden: how many predictions people would have to review, and how many are wrong.

A model that predicts every label on every turn finds everything and is useless. These metrics
measure the effort of reviewing a model's predictions, and how much of it is wasted. A corpus has no
timestamps, so alarms per hour can't be computed.

Metrics, from predictions at turn level:
    ``false_tags_per_dialogue``: predictions that are not gold on their turn, per dialogue.
    ``flagged_per_100``: user turns with a prediction but without a gold label, per 100 user turns
        without a gold label.
    ``gold_flagged``: share of the user turns with a gold label that have a prediction of any label.
    ``quiet_flagged``: share of the dialogues without gold labels that have a prediction.
    ``needed_to_evaluate``: predictions to review for each correct one.
    ``repeats_per_alarm``: repeats divided by alarms. An alarm is the first prediction of a label in
        a dialogue, a repeat a later prediction of it on a turn where it is not gold. The protocol
        asks for no repeats.

References:
    Romero-Brufau et al., "Why the C-statistic Is Not Informative to Evaluate Early Warning
    Scores and What Metrics to Use", Critical Care 19, 2015 (number needed to evaluate).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.arguments import Seed, Share, checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.scores import ENOUGH
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.occurrences import first_only
from cradle_lib.statistics.rates import Floats, ratio

# For each metric its numerator, denominator, scale and unit.
_RATIOS: Final = {
    "false_tags_per_dialogue": ("false_tags", "dialogues", 1.0, "number"),
    "flagged_per_100": ("flagged_turns", "negative_turns", 100.0, "number"),
    "gold_flagged": ("flagged_gold", "gold_turns", 1.0, "share"),
    "quiet_flagged": ("flagged_dialogues", "quiet_dialogues", 1.0, "share"),
    "needed_to_evaluate": ("tags", "correct_tags", 1.0, "number"),
    "repeats_per_alarm": ("repeats", "alarms", 1.0, "number"),
}
# Below this prevalence there is no interval: the sampling error is small against the uncertainty
# whether the rates of this corpus apply there.
_RARE: Final = 0.01


@checked
def alarm_burden(predictions: Predictions, *, draws: int = DRAWS, seed: Seed = 0) -> pd.DataFrame:
    """Measures the alarm burden of a run.

    Args:
        predictions: The predictions for every user turn of a corpus.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each metric.

        - ``system``, ``coverage`` (str): the model's name; the dialogues of the run, as a heading;
          ``dialogues`` (int): their number.
        - ``measure`` (str): the name of a metric of this module.
        - ``value``, ``low``, ``high`` (float): the metric and its 95 % interval. Infinite for
          ``needed_to_evaluate`` without a correct prediction; NaN for 0/0 and if not computed.
        - ``unit`` (str): ``share`` (0 to 1), or ``number``.
        - ``signature`` (str): the scoring settings.
    """
    predictions = predictions.labelled
    estimate = _estimate(predictions, lambda tally: [*_metrics(tally).values()], draws, seed)
    frame = pd.DataFrame(
        {
            "system": predictions.record.name,
            "coverage": predictions.coverage,
            "dialogues": len(predictions.corpus),
            "measure": list(_RATIOS),
            **estimate,
            "unit": [unit for *_, unit in _RATIOS.values()],
            "signature": str(signature_of(predictions, draws=draws, seed=seed)),
        }
    )
    return signed(frame)


@checked
def projected_precision(
    predictions: Predictions,
    prevalences: Sequence[Share] = (0.1, 0.01, 0.001),
    *,
    draws: int = DRAWS,
    seed: Seed = 0,
) -> pd.DataFrame:
    """Projects precision, the share of flagged turns with a gold label, to rarer crises.

    A benchmark contains far more crises than everyday conversations. With s the share of gold turns
    that are flagged, f the share of other turns that are flagged, and q the share of turns with a
    gold label, precision is s q / (s q + f (1 - q)). The projection assumes that s and f do not
    change.

    Args:
        predictions: The predictions for every user turn of a corpus.
        prevalences: Shares of turns with a gold label to project to.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for the corpus' own prevalence and one for each given prevalence.

        - ``system``, ``coverage`` (str): the model's name; the dialogues of the run.
        - ``prevalence`` (float): share of turns with a gold label; ``observed`` (bool): whether
          it is the corpus' own.
        - ``value``, ``low``, ``high`` (float): precision, 0 to 1; NaN for a run that flags nothing,
          and except for the corpus' own prevalence with fewer than 20 turns with or without labels.
          The 95 % interval at a given prevalence takes it as fixed, and is NaN below 1 %. At the
          corpus' own prevalence it includes the variation of the prevalence.
        - ``signature`` (str): the scoring settings.
    """
    predictions = predictions.labelled
    own = float(np.mean(predictions.corpus.gold != 0)) if len(predictions.masks) else np.nan

    def statistics(tally: Mapping[str, Floats]) -> list[Floats]:
        rates = _metrics(tally)
        found, wrong = rates["gold_flagged"], rates["flagged_per_100"] / 100
        observed = ratio(tally["gold_turns"], tally["gold_turns"] + tally["negative_turns"])
        shares = [observed, *map(np.asarray, prevalences)]
        return [predictive_value(found, wrong, q) for q in shares]

    frame = pd.DataFrame(
        {
            "system": predictions.record.name,
            "coverage": predictions.coverage,
            "prevalence": [own, *prevalences],
            "observed": [True, *[False] * len(prevalences)],
            **_estimate(predictions, statistics, draws, seed),
            "signature": str(signature_of(predictions, draws=draws, seed=seed)),
        }
    )
    rare = ~frame["observed"] & (frame["prevalence"] < _RARE)
    frame.loc[rare, ["low", "high"]] = np.nan
    labelled = np.count_nonzero(predictions.corpus.gold)
    if min(labelled, len(predictions.masks) - labelled) < ENOUGH:
        frame.loc[~frame["observed"], ["value", "low", "high"]] = np.nan
    return signed(frame)


def predictive_value(found: Floats, false: Floats, share: Floats) -> Floats:
    """Computes the share of flags that are true; NaN without flags. Shapes broadcast.

    ``found`` is the flagged share of the cases that should be flagged, ``false`` that of the
    others, and ``share`` the share of all cases that should be flagged.
    """
    right = share * found
    return ratio(right, right + (1 - share) * false)


def burden_counts(run: Predictions) -> dict[str, NDArray[np.int64]]:
    """Counts the numerators and denominators of all metrics in each dialogue."""
    gold, tags, dialogue_of = run.corpus.gold, run.masks, run.corpus.dialogue_of
    first, flagged, positive = first_only(tags, dialogue_of), tags != 0, gold != 0
    n = len(run.corpus)

    def per_dialogue(values: NDArray[Any]) -> NDArray[np.int64]:
        return np.bincount(dialogue_of, weights=values, minlength=n).astype(np.int64)

    quiet = per_dialogue(positive) == 0
    return {
        "dialogues": np.ones(n, dtype=np.int64),
        "tags": per_dialogue(np.bitwise_count(tags)),
        "correct_tags": per_dialogue(np.bitwise_count(tags & gold)),
        "false_tags": per_dialogue(np.bitwise_count(tags & ~gold)),
        "negative_turns": per_dialogue(~positive),
        "gold_turns": per_dialogue(positive),
        "flagged_turns": per_dialogue(~positive & flagged),
        "flagged_gold": per_dialogue(positive & flagged),
        "quiet_dialogues": quiet.astype(np.int64),
        "flagged_dialogues": (quiet & (per_dialogue(flagged) > 0)).astype(np.int64),
        "alarms": per_dialogue(np.bitwise_count(first)),
        "repeats": per_dialogue(np.bitwise_count(tags & ~first & ~gold)),
    }


def _estimate(
    run: Predictions,
    statistics: Callable[[Mapping[str, Floats]], list[Floats]],
    draws: int,
    seed: int,
) -> dict[str, Floats]:
    """Computes statistics with intervals from the summed counts, which are passed by name."""
    counts = burden_counts(run)

    def stacked(totals: Floats) -> dict[str, Floats]:
        tally = dict(zip(counts, np.moveaxis(totals, -1, 0), strict=True))
        return {"all": np.stack(statistics(tally), axis=-1)}

    rows = np.stack([*counts.values()], axis=-1)
    return bootstrap(rows, stacked, draws=draws, seed=seed)["all"]._asdict()


def _metrics(tally: Mapping[str, Floats]) -> dict[str, Floats]:
    # x / 0 gives infinity and 0 / 0 gives NaN, as documented.
    with np.errstate(divide="ignore", invalid="ignore"):
        return {
            name: np.asarray(scale * tally[above] / tally[below])
            for name, (above, below, scale, _) in _RATIOS.items()
        }
