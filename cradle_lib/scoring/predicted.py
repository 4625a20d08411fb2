"""How often a run predicts each label: all that can be said without gold labels."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd

from cradle_lib.labels import BITS
from cradle_lib.statistics.rates import ratio

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

ANY: Final = "any label"


def predicted_rates(run: Predictions) -> pd.DataFrame:
    """Counts the predictions of a run, for dialogues with or without gold labels.

    Args:
        run: The predictions for every user turn of a corpus. Unusable answers predict nothing.

    Returns:
        One row for all labels together, then one for each label that was predicted, in their order.

        - ``system`` (str): the model's name.
        - ``label`` (str): ``any label``, or one of the sixteen.
        - ``turns``, ``dialogues`` (int): user turns and dialogues with this prediction.
        - ``per_100`` (float): predictions per 100 user turns; NaN without a user turn.
    """
    masks = run.masks
    found = {ANY: masks != 0} | {label: (masks & bit) != 0 for label, bit in BITS.items()}
    rows = [
        {
            "system": run.record.name,
            "label": label,
            "turns": int(turns.sum()),
            "dialogues": len(np.unique(run.corpus.dialogue_of[turns])),
            "per_100": float(ratio(100.0 * turns.sum(), np.array(len(masks)))),
        }
        for label, turns in found.items()
        if label == ANY or turns.any()
    ]
    return pd.DataFrame(rows)
