"""Counts dialogues by the order of their stages: alert before confirm, or not.

An event may be hinted at before it becomes explicit, or be explicit from the start. Each dialogue
has exactly one order in the gold labels and one in a run's predictions, given by the first alert
and the first confirm of any type. The table of both shows how a run predicts escalation.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
import pandas as pd

from cradle_lib.arguments import checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.labels import ALERT_MASK, CONFIRM_MASK
from cradle_lib.scoring.analyses.confusion import pair_counts
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.signature import signed

ORDERS: Final = (
    "neither",
    "alert_only",
    "confirm_only",
    "alert_first",
    "same_turn",
    "confirm_first",
)


def order_of(masks: Sequence[int]) -> str:
    """Gives the order of the stages, of :data:`ORDERS`, in the masks of one dialogue's turns."""
    alerts = [place for place, mask in enumerate(masks) if mask & ALERT_MASK]
    confirms = [place for place, mask in enumerate(masks) if mask & CONFIRM_MASK]
    if not alerts or not confirms:
        return "alert_only" if alerts else "confirm_only" if confirms else "neither"
    if alerts[0] == confirms[0]:
        return "same_turn"
    return "alert_first" if alerts[0] < confirms[0] else "confirm_first"


@checked
def stage_orders(run: Predictions) -> pd.DataFrame:
    """Counts the dialogues of a run by the order of their stages, as a tidy data frame.

    Args:
        run: The predictions for every user turn of a corpus.

    Returns:
        One row for each pair of orders. Each dialogue is counted in exactly one row.

        - ``system`` (str): the model's name.
        - ``gold``, ``predicted`` (categorical): the order in the gold labels and in the
          predictions, of :data:`ORDERS`.
        - ``dialogues`` (int): dialogues with this order in the gold labels.
        - ``value`` (int): the number of these with this order in the predictions.

        ``attrs["signature"]`` states the scoring settings.
    """
    run = run.labelled
    starts = np.searchsorted(run.corpus.dialogue_of, np.arange(1, len(run.corpus)))
    gold, predicted = (
        # Without dialogues there is still one part.
        [order_of(masks.tolist()) for masks in np.split(side, starts)[: len(run.corpus)]]
        for side in (run.corpus.gold, run.masks)
    )
    frame = pair_counts(zip(gold, predicted, strict=True), gold=ORDERS, predicted=ORDERS)
    frame.insert(0, "system", run.record.name)
    frame.insert(3, "dialogues", frame.groupby("gold", observed=False)["count"].transform("sum"))
    return signed(frame.rename(columns={"count": "value"}), signature_of(run))
