"""Writes and reads plans as CSV files.

The column ``tags`` has the turn (from 1), stage and events of each labelled turn: ``5 alert
SH.ongoing; 7 confirm SH.ongoing DV.past``. ``rows`` has one letter for each turn: ``U`` for the
User, ``L`` for the Listener.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, cast

import pandas as pd

from cradle_extras.construction.plan import Event, Plan, Step
from cradle_lib import paths
from cradle_lib.corpus.tables import read_columns
from cradle_lib.errors import CorpusError
from cradle_lib.labels import format_mask

COLUMNS: Final = (
    "dialogue", "post", "kind", "labels", "scenario", "timing", "rows", "tags",
)  # fmt: skip


def plan_text(plans: Sequence[Plan]) -> str:
    """Writes plans as CSV."""
    frame = pd.DataFrame([_cells(plan) for plan in plans], columns=list(COLUMNS))
    return frame.to_csv(index=False, lineterminator="\n")


def plan_fingerprint(plans: Sequence[Plan]) -> str:
    """Computes a hash of the plans: twelve hexadecimal digits."""
    return hashlib.sha256(plan_text(plans).encode()).hexdigest()[:12]


def file_fingerprint(path: Path) -> str:
    """Computes the :func:`plan_fingerprint` of the plans that were written to a file."""
    # Files of earlier versions have columns that are not read any more.
    return hashlib.sha256(path.read_bytes()).hexdigest()[:12]


def read_plans(path: Path) -> list[Plan]:
    """Reads a file of plans.

    Raises:
        CorpusError: If the file can't be read, lacks a column, or has an invalid row; the message
            names the row.
    """
    columns = read_columns(path, COLUMNS)
    plans = []
    for row in range(len(columns["dialogue"])):
        cells = {name: columns[name][row] for name in COLUMNS}
        try:
            plans.append(_plan(cells))
        except (ValueError, TypeError, KeyError) as error:
            problem = f"the row is not a valid plan ({error})"
            hint = "Restore the file that `cradle construct` wrote."
            raise CorpusError(problem, path=paths.shown(path), row=row, hint=hint) from None
    return plans


def _cells(plan: Plan) -> dict[str, str]:
    tags = (
        f"{place + 1} {step.stage} {' '.join(event.key for event in step.events)}"
        for place, step in zip(plan.places, plan.steps, strict=True)
    )
    return {
        "dialogue": plan.dialogue,
        "post": plan.post,
        "kind": plan.kind,
        "labels": format_mask(plan.mask),
        "scenario": plan.scenario,
        "timing": plan.timing,
        "rows": plan.rows,
        "tags": "; ".join(tags),
    }


def _plan(cells: dict[str, str]) -> Plan:
    values: dict[str, Any] = dict(cells)
    del values["labels"], values["tags"]
    tags = [tag.split(" ") for tag in cells["tags"].split("; ") if tag]
    plan = Plan(
        **values,
        steps=tuple(
            Step(cast(Any, stage), tuple(Event(*key.split(".")) for key in keys))
            for _, stage, *keys in tags
        ),
        places=tuple(int(turn) - 1 for turn, *_ in tags),
    )
    if _cells(plan) != cells:
        raise ValueError(f"labels and tags of dialogue {plan.dialogue} contradict each other")
    return plan
