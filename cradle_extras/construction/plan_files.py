"""Plans as a file: CSV that people read and change.

A line of ``tags`` says which turn (from 1) carries what: ``5 alert SH.ongoing; 7 confirm
SH.ongoing DV.past``. ``rows`` has one letter for each turn: ``U`` for the User, ``L`` for the
Listener.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import pandas as pd

from cradle_extras.construction.plan import KINDS, TIMINGS, VOICES, Event, Plan, Step
from cradle_extras.construction.scenarios import SCENARIOS
from cradle_lib import paths
from cradle_lib.corpus.tables import read_columns
from cradle_lib.errors import CorpusError
from cradle_lib.files import write_text
from cradle_lib.labels import CRISIS_TYPES, TEMPORAL_STATES, format_mask

COLUMNS: Final = (
    "dialogue", "post", "kind", "labels", "scenario", "timing", "voice", "rows", "tags",
)  # fmt: skip
_EVENT: Final = rf"(?:any|{'|'.join(CRISIS_TYPES)})\.(?:{'|'.join(TEMPORAL_STATES)})"
_TAG: Final = re.compile(rf"(\d+) (alert|confirm)((?: {_EVENT})+)")
# What a cell must look like, as regular expressions.
_ALLOWED: Final = {
    "dialogue": ".+",
    "kind": "|".join(KINDS),
    "scenario": "|".join(SCENARIOS),
    "timing": "|".join(TIMINGS),
    "voice": "|".join(VOICES),
    "rows": "(?:Uu*|Ll*)+",
}


def plan_frame(plans: Sequence[Plan]) -> pd.DataFrame:
    """Gives plans as a frame.

    Args:
        plans: Any number of them.

    Returns:
        One row for each, with the columns of the file (str).
    """
    return pd.DataFrame([_cells(plan) for plan in plans], columns=list(COLUMNS), dtype=str)


def plan_text(plans: Sequence[Plan]) -> str:
    """Writes plans as CSV."""
    return plan_frame(plans).to_csv(index=False, lineterminator="\n")


def plan_fingerprint(plans: Sequence[Plan]) -> str:
    """Twelve hexadecimal digits that change with anything in the plans."""
    return hashlib.sha256(plan_text(plans).encode()).hexdigest()[:12]


def write_plans(plans: Sequence[Plan], path: Path) -> None:
    """Writes plans to a CSV file."""
    write_text(path, plan_text(plans))


def read_plans(path: str | Path) -> list[Plan]:
    """Reads plans from a CSV file, which may have been changed by hand.

    Raises:
        CorpusError: If the file can't be read, lacks a column, or a row is no plan; the message
            names the row.
    """
    path = Path(path)
    try:
        columns = read_columns(path, COLUMNS)
    except CorpusError as error:
        hint = error.hint if error.row is not None else "Make it with `cradle construct plan`."
        raise CorpusError(error.problem, path=paths.shown(path), row=error.row, hint=hint) from None
    plans: dict[str, Plan] = {}
    for row, cells in enumerate(zip(*(columns[name] for name in COLUMNS), strict=True)):
        try:
            plan = _plan(dict(zip(COLUMNS, map(str.strip, cells), strict=True)))
            if plan.dialogue in plans:
                raise ValueError(f"dialogue {plan.dialogue!r} occurs twice")
        except ValueError as error:
            raise CorpusError(
                str(error), path=paths.shown(path), row=row, hint="Correct the row."
            ) from None
        plans[plan.dialogue] = plan
    return [*plans.values()]


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
        "voice": plan.voice,
        "rows": plan.rows,
        "tags": "; ".join(tags),
    }


def _plan(cells: dict[str, str]) -> Plan:
    for name, pattern in _ALLOWED.items():
        if not re.fullmatch(pattern, cells[name]):
            raise ValueError(f"{name} is {cells[name]!r}, expected {pattern}")
    values: dict[str, Any] = dict(cells)
    labels, tags = values.pop("labels"), values.pop("tags")
    steps, places = [], []
    for tag in filter(None, (part.strip() for part in tags.split(";"))):
        found = _TAG.fullmatch(tag)
        if not found or not 1 <= int(found[1]) <= len(values["rows"]):
            raise ValueError(f"tag {tag!r}: expected such as '7 confirm SH.ongoing' of a turn")
        stage: Any = found[2]
        events = tuple(Event(*key.split(".")) for key in found[3].split())
        if stage == "confirm" and any(event.type == "any" for event in events):
            raise ValueError(f"tag {tag!r}: a confirm needs a crisis type")
        steps.append(Step(stage, events))
        places.append(int(found[1]) - 1)
    plan = Plan(**values, steps=tuple(steps), places=tuple(places))
    if format_mask(plan.mask) != labels:
        raise ValueError(f"labels is {labels!r}, and the tags confirm {format_mask(plan.mask)!r}")
    return plan
