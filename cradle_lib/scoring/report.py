"""Frames and evaluations as rows of strict JSON, for ``--json`` and for bundles."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pandas as pd

from cradle_lib.scoring.conventions import Level
from cradle_lib.scoring.evaluate import Evaluation


def json_rows(frame: pd.DataFrame) -> list[dict[str, Any]]:
    """Makes a frame of numbers, texts and categories ready for strict JSON, row by row.

    ``None`` stands for what is missing or undefined, ``"inf"`` and ``"-inf"`` for what has no end.
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
    """Makes a run's evaluations at each level ready for strict JSON."""
    return {
        level: {
            "signature": str(found.signature),
            "turns": found.turns,
            "of_turns": found.of_turns,
            "outcomes": found.outcomes,
            "cleaned": found.cleaned,
            "scores": json_rows(found.to_frame()),
        }
        for level, found in results.items()
    }
