"""Results that commands print: frames and evaluations for strict JSON, and prediction rates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from cradle_lib.labels import BITS
from cradle_lib.scoring.conventions import Level
from cradle_lib.scoring.evaluate import Evaluation

if TYPE_CHECKING:
    import pandas as pd

    from cradle_lib.detection.runs.predictions import Predictions

ANY: Final = "any label"


def json_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Converts a frame of numbers, texts and categories to rows for strict JSON.

    Missing and undefined values become ``None``, infinite ones ``"inf"`` and ``"-inf"``.
    """
    rows = frame.astype(object).where(frame.notna(), None).to_dict("records")
    return [
        {
            str(name): str(value) if isinstance(value, float) and math.isinf(value) else value
            for name, value in row.items()
        }
        for row in rows
    ]


def level_scores(results: Mapping[Level, Evaluation]) -> dict[str, dict[str, Any]]:
    """Converts a run's evaluations at each level to values for strict JSON."""
    return {
        level: {
            "signature": str(found.signature),
            "turns": len(found.run.masks),
            "of_turns": found.run.of_turns,
            "outcomes": found.run.outcome_counts,
            "cleaned": found.run.cleaned,
            "scores": json_rows(found.to_frame()),
        }
        for level, found in results.items()
    }


def predicted_rates(run: Predictions) -> pd.DataFrame:
    """Counts the predictions of a run, for dialogues with or without gold labels.

    Args:
        run: The predictions for every user turn of a corpus. Unusable answers predict nothing.

    Returns:
        One row for all labels together, then one for each predicted label, in the order of labels.

        - ``system`` (str): the model's name.
        - ``label`` (str): ``any label``, or one of the sixteen.
        - ``turns``, ``dialogues`` (int): user turns and dialogues with this prediction.
        - ``per_100`` (float): predictions per 100 user turns; NaN without a user turn.
    """
    import pandas as pd

    found = {ANY: run.masks != 0} | {
        label: (run.masks & bit) != 0 for label, bit in BITS.items() if (run.masks & bit).any()
    }
    rows = [
        {
            "system": run.record.name,
            "label": label,
            "turns": int(turns.sum()),
            "dialogues": len(np.unique(run.corpus.dialogue_of[turns])),
            "per_100": 100.0 * float(turns.sum()) / len(turns) if len(turns) else math.nan,
        }
        for label, turns in found.items()
    ]
    return pd.DataFrame(rows)
