"""In which order a dialogue's stages come: alert before confirm, or not.

The Alert-Confirm protocol expects an alert first and a confirm later. Each dialogue has exactly
one order in the gold labels and exactly one in a run's tags, by the first alert and the first
confirm of any type; a table of the one against the other shows what a run makes of escalation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.labels import ALERT_MASK, CONFIRM_MASK
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.scoring.counts import Masks
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.occurrences import first_positions, scored_rows
from cradle_lib.scoring.signature import signed

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

ORDERS: Final = (
    "neither",
    "alert_only",
    "confirm_only",
    "alert_first",
    "same_turn",
    "confirm_first",
)


def orders_of(masks: Masks, dialogue_of: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Finds the order of the stages in each of ``n`` dialogues, as a position in :data:`ORDERS`."""
    alert, confirm = first_positions(masks, dialogue_of, n, (ALERT_MASK, CONFIRM_MASK)).T
    both = np.isfinite(alert) & np.isfinite(confirm)
    found = np.isfinite(alert) + 2 * np.isfinite(confirm)
    # The difference of two missing ones is no order.
    sign = np.sign(np.where(both, confirm, 0.0) - np.where(both, alert, 0.0))
    return np.where(both, 4 - sign, found).astype(np.int64)


def stage_orders(run: Predictions, conventions: Conventions | None = None) -> pd.DataFrame:
    """Counts the dialogues of a run by the order of their stages, as a tidy data frame.

    Args:
        run: What it says about every user turn of its corpus.
        conventions: ``orphans`` and ``unparsed`` matter here; the defaults if ``None``.

    Returns:
        One row for each pair of orders; every dialogue is in one of them.

        - ``system`` (str): the run.
        - ``gold``, ``tagged`` (categorical): the order in gold and in the tags, of
          :data:`ORDERS`.
        - ``dialogues`` (int): dialogues with this order in gold.
        - ``value`` (int): those of them with this order in the tags.

        ``attrs["signature"]`` is what the run was measured under.

    Raises:
        ScoringError: If the conventions leave nothing to score.
    """
    conventions = conventions or Conventions()
    rows, n = scored_rows(run, conventions), len(run.corpus)
    size = len(ORDERS)
    gold, tagged = (orders_of(m, rows.dialogue_of, n) for m in (rows.gold, rows.predicted))
    values = np.bincount(size * gold + tagged, minlength=size * size).reshape(size, size)
    frame = pd.DataFrame(
        {
            "system": run.record.name,
            "gold": pd.Categorical(np.repeat(ORDERS, size), ORDERS),
            "tagged": pd.Categorical(np.tile(ORDERS, size), ORDERS),
            "dialogues": np.repeat(values.sum(axis=1), size),
            "value": values.ravel(),
        }
    )
    return signed(frame, signature_of(run, conventions))
