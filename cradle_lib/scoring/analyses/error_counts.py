"""Counts errors at turn level, in the quantities of the paper's Sec 6.1."""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd

from cradle_lib.arguments import checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.labels import LABELS, NONE, stage
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.label_pairs import KINDS, classify, name_unusable
from cradle_lib.scoring.signature import signed

_SHARE: Final = "gold_negative_turns_flagged"
# For each quantity the filter on pairs (for the share: on turns) that it counts, as in links.
_FILTERS: Final[dict[str, dict[str, str]]] = {
    "fp": {"predicted": "any", "category": "any"},
    "fp_alert_ongoing": {"predicted": "alert_ongoing", "category": "any"},
    _SHARE: {"gold": NONE, "predicted": "any", "pairing": "all"},
    "fn": {"gold": "any", "category": "any"},
    "alert_to_none": {"gold": "alert", "predicted": NONE},
    "alert_to_confirm": {"gold": "alert", "predicted": "confirm"},
    "temporal": {"category": "temporal_swap"},
    "alert_ongoing_to_si_passive_ongoing": {
        "gold": "alert_ongoing",
        "predicted": "confirm_SI_passive_ongoing",
    },
}
# Values of filters that stand for several labels or categories.
_GROUPS: Final[dict[str, list[str]]] = {
    "any": [*LABELS, *KINDS],
    "alert": [label for label in LABELS if stage(label) == "alert"],
    "confirm": [label for label in LABELS if stage(label) == "confirm"],
}


@checked
def error_counts(predictions: Predictions) -> pd.DataFrame:
    """Counts a run's errors at turn level in the terms of Sec 6.1, as a tidy data frame.

    Args:
        predictions: The run.

    Returns:
        One row for each quantity.

        - ``system`` (str): the model's name; ``coverage`` (str): its dialogues, as a heading;
          ``dialogues`` (int): their number.
        - ``quantity`` (str): ``fp``, ``fp_alert_ongoing``, ``gold_negative_turns_flagged``, ``fn``,
          ``alert_to_none``, ``alert_to_confirm``, ``temporal`` (ongoing and past swapped), and
          ``alert_ongoing_to_si_passive_ongoing``. As in the paper, a wrong label on a turn is one
          ``fp`` and one ``fn``.
        - ``value`` (float): a number of labels, or a share of the turns without gold labels; NaN
          if there is no such turn, or no dialogue with gold labels.
        - ``unit`` (str): ``count`` or ``share``.
        - ``gold``, ``predicted``, ``category``, ``pairing`` (str): the filter on the counted pairs
          (for the share: on turns): a label, a stage, ``none``, ``any``, a category or a pairing;
          missing without a condition. ``outcome`` (str): ``ok`` if the run has unusable answers
          that the quantity does not count, else missing.

        ``attrs["signature"]`` states the scoring settings.
    """
    predictions = predictions.labelled
    corpus, negative = predictions.corpus, predictions.corpus.gold == 0
    pairs = name_unusable(classify(corpus.gold, predictions.masks, corpus.dialogue_of), predictions)
    all_usable = bool(predictions.ok.all())
    about = {
        "system": predictions.record.name,
        "coverage": predictions.coverage,
        "dialogues": len(corpus),
    }
    rows = []
    for quantity, wanted in _FILTERS.items():
        if quantity == _SHARE:
            value = (predictions.masks[negative] != 0).mean() if negative.any() else np.nan
        else:
            names = {column: _GROUPS.get(name, [name]) for column, name in wanted.items()}
            value = pairs[[*names]].isin(names).all(axis=1).sum() if len(corpus) else np.nan
        unit = "share" if quantity == _SHARE else "count"
        filters = {name: wanted.get(name) for name in ("gold", "predicted", "category", "pairing")}
        usable_only = wanted.get("predicted") == NONE and not all_usable
        found = {"quantity": quantity, "value": float(value), "unit": unit}
        rows.append(about | found | filters | {"outcome": "ok" if usable_only else None})
    return signed(pd.DataFrame(rows), signature_of(predictions))
