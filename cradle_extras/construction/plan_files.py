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
from cradle_lib.corpus.text_formats import read_csv
from cradle_lib.errors import CorpusError
from cradle_lib.files import replacing
from cradle_lib.labels import CRISIS_TYPES, TEMPORAL_STATES, format_mask

COLUMNS: Final = (
    "dialogue", "post", "kind", "labels", "scenario", "timing", "voice", "rows", "tags",
)  # fmt: skip
_TAG: Final = re.compile(r"(\d+) (alert|confirm)((?: \w+\.\w+)+)")
_ALLOWED: Final[dict[str, tuple[str, ...]]] = {
    "kind": KINDS,
    "scenario": tuple(SCENARIOS),
    "timing": TIMINGS,
    "voice": VOICES,
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
    with replacing(path) as part:
        part.write_text(plan_text(plans), encoding="utf-8")


def read_plans(path: str | Path) -> list[Plan]:
    """Reads plans from a CSV file, which may have been changed by hand.

    Raises:
        CorpusError: If the file can't be read, lacks a column, or a row is no plan; the message
            names the row.
    """
    path = Path(path)
    try:
        columns = read_csv(path, COLUMNS)
    except CorpusError as error:
        raise CorpusError(
            error.problem,
            path=paths.shown(path),
            row=error.row,
            hint=error.hint if error.row is not None else "Make it with `cradle construct plan`.",
        ) from None
    plans, seen = [], set()
    for row, cells in enumerate(zip(*(columns[name] for name in COLUMNS), strict=True)):
        try:
            plan = _plan(dict(zip(COLUMNS, cells, strict=True)))
            if plan.dialogue in seen:
                raise ValueError(f"dialogue {plan.dialogue!r} stands twice")
        except (ValueError, IndexError) as error:
            raise CorpusError(
                str(error), path=paths.shown(path), row=row, hint="Correct the row."
            ) from None
        seen.add(plan.dialogue)
        plans.append(plan)
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
        "voice": plan.voice,
        "rows": plan.rows,
        "tags": "; ".join(tags),
    }


def _plan(cells: dict[str, str]) -> Plan:
    values: dict[str, Any] = {name: cells[name].strip() for name in COLUMNS}
    labels, tags = values.pop("labels"), values.pop("tags")
    for name, allowed in _ALLOWED.items():
        if values[name] not in allowed:
            raise ValueError(f"{name} is {values[name]!r}, expected one of {', '.join(allowed)}")
    if not values["dialogue"]:
        raise ValueError("the plan has no dialogue id")
    if not re.fullmatch(r"(?:Uu*|Ll*)+", values["rows"]):
        raise ValueError(f"rows is {values['rows']!r}, expected such as ULULU")
    steps, places = [], []
    for tag in filter(None, (part.strip() for part in tags.split(";"))):
        found = _TAG.fullmatch(tag)
        if not found or not 1 <= int(found[1]) <= len(values["rows"]):
            raise ValueError(f"tag {tag!r}: expected such as '7 confirm SH.ongoing' of a turn")
        steps.append(_step(found[2], found[3].split(), tag))
        places.append(int(found[1]) - 1)
    plan = Plan(**values, steps=tuple(steps), places=tuple(places))
    if format_mask(plan.mask) != labels:
        raise ValueError(f"labels is {labels!r}, and the tags confirm {format_mask(plan.mask)!r}")
    return plan


def _step(stage: str, keys: list[str], tag: str) -> Step:
    events = []
    for key in keys:
        crisis, _, state = key.partition(".")
        known = crisis in CRISIS_TYPES or (stage == "alert" and crisis == "any")
        if not known or state not in TEMPORAL_STATES:
            raise ValueError(f"tag {tag!r}: no event {key!r}")
        events.append(Event(crisis, state))
    return Step("confirm" if stage == "confirm" else "alert", tuple(events))
