"""Tables of time and of alarms: when labels are tagged, and what that costs those who look."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import LABELS, short
from cradle_lib.reporting.runs import comparable
from cradle_lib.reporting.tables import (
    UNDEFINED,
    Cell,
    Column,
    Row,
    Table,
    count,
    percent,
    text,
)
from cradle_lib.scoring.burden import Burden
from cradle_lib.scoring.evaluate import Estimate
from cradle_lib.scoring.occurrences import SCOPES, STAGES
from cradle_lib.scoring.onset import FATES
from cradle_lib.scoring.timing import LEADS, Timing

_SCOPE_NAMES: Final = {"any": "All labels", "alert": "Alerts", "confirm": "Confirms"}


def onset_table(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Table:
    """Shows what became of the onsets, for all labels and the two stages.

    Args:
        runs: The runs.
        timings: Their timing, in the same order.

    Returns:
        One row for each run and stage; the four shares of a row add up to 100 %.
    """
    rows = [
        Row(
            (
                text(f"{run.record.name}: {_SCOPE_NAMES[scope].lower()}"),
                *_onset_cells(timing, list(SCOPES).index(scope)),
            ),
            group=heading,
        )
        for heading, group in comparable(runs, timings)
        for run, timing in group
        for scope in STAGES
    ]
    return Table(
        "What became of each label's first gold occurrence, with 95 % intervals.",
        (
            Column("Run", "text"),
            Column("Onsets"),
            Column("Premature (%)"),
            Column("On time (%)"),
            Column("Late (%)"),
            Column("Never (%)"),
            Column("Median delay"),
        ),
        tuple(rows),
        (
            "Premature: the label was tagged on an earlier turn. The delay, in user turns, is "
            "estimated by Kaplan and Meier over the other onsets, those that were never tagged "
            "included; not reached means that fewer than half ever were.",
            *_signatures(timings),
        ),
    )


def onset_label_table(run: Predictions, timing: Timing) -> Table:
    """Shows what became of the onsets of each label, for one run."""
    rows = [
        Row((text(short(label)), *_onset_cells(timing, list(SCOPES).index(label))))
        for label in LABELS
    ]
    return Table(
        f"{run.record.name}: onsets by label, with 95 % intervals.",
        (
            Column("Label", "text"),
            Column("Onsets"),
            *(Column(f"{name.replace('_', ' ').capitalize()} (%)") for name in FATES),
            Column("Median delay"),
        ),
        tuple(rows),
        (f"{UNDEFINED} the label is never gold in these dialogues, or in too many draws.",),
    )


def lead_table(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Table:
    """Shows how long before the first gold confirm the first tag came.

    Args:
        runs: The runs.
        timings: Their timing, in the same order.

    Returns:
        One row for each run, over the dialogues with both a gold alert and a gold confirm.
    """
    rows = [
        Row(
            (
                text(run.record.name),
                count(timing.lead_dialogues),
                *(share(timing.lead.estimate(i)) for i in range(len(LEADS))),
                turns(timing.median_lead.estimate(), "no tag"),
            ),
            group=heading,
        )
        for heading, group in comparable(runs, timings)
        for run, timing in group
    ]
    return Table(
        "The first tag of any kind against the first gold confirm, with 95 % intervals.",
        (
            Column("Run", "text"),
            Column("Dialogues with both"),
            Column("Before (%)"),
            Column("Same turn (%)"),
            Column("After (%)"),
            Column("No tag (%)"),
            Column("Median lead"),
        ),
        tuple(rows),
        ("Lead in user turns, positive if the first tag came before the disclosure.",),
    )


def early_table(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Table:
    """Shows the early-detection measures that other work reports.

    Args:
        runs: The runs.
        timings: Their timing, in the same order.

    Returns:
        One row for each run and stage.
    """
    rows = []
    for heading, group in comparable(runs, timings):
        for run, timing in group:
            for place, scope in enumerate(STAGES):
                early = timing.early
                erdes = [early[f"erde_{o}"] for o in timing.signature.erde]
                rows.append(
                    Row(
                        (
                            text(f"{run.record.name}: {_SCOPE_NAMES[scope].lower()}"),
                            count(int(timing.positives[place])),
                            *(share(measured.estimate(place)) for measured in erdes),
                            share(early["latency_f1"].estimate(place)),
                            turns(early["latency"].estimate(place)),
                        ),
                        group=heading,
                    )
                )
    orders = timings[0].signature.erde
    return Table(
        "Early-detection measures, one decision per dialogue, with 95 % intervals.",
        (
            Column("Run", "text"),
            Column("Positive dialogues"),
            *(Column(f"ERDE {o} (%), lower is better") for o in orders),
            Column("Latency-weighted F1 (%)"),
            Column("Median turn of a hit"),
        ),
        tuple(rows),
        (
            "Both measures count from the first user turn and not from the onset, and so reward "
            "tags that come before there is anything to see.",
        ),
    )


def burden_table(runs: Sequence[Predictions], burdens: Sequence[Burden]) -> Table:
    """Shows the alarm burden of each run.

    Args:
        runs: The runs.
        burdens: Their burden, in the same order.

    Returns:
        One row for each run.
    """
    rows = []
    for heading, group in comparable(runs, burdens):
        for run, burden in group:
            found = burden.estimates
            rows.append(
                Row(
                    (
                        text(run.record.name),
                        turns(found["false_tags_per_dialogue"]),
                        turns(found["flagged_per_100"], digits=1),
                        share(found["quiet_flagged"]),
                        turns(found["needed_to_evaluate"], "no hit"),
                        turns(found["repeats_per_alarm"]),
                    ),
                    group=heading,
                )
            )
    return Table(
        "Alarm burden, with 95 % intervals.",
        (
            Column("Run", "text"),
            Column("False tags per dialogue"),
            Column("Flagged per 100 turns without gold"),
            Column("Dialogues without gold flagged (%)"),
            Column("Tags to look at per hit"),
            Column("Repeats per alarm"),
        ),
        tuple(rows),
        (
            "A corpus has no timestamps, so alarms per hour can't be computed. "
            f"{UNDEFINED} there is nothing to divide by: a run without tags has no alarms.",
            *(
                f"Signature `{line}`."
                for line in dict.fromkeys(str(burden.signature) for burden in burdens)
            ),
        ),
    )


def share(estimate: Estimate) -> Cell:
    """Makes a cell of a share with its interval, in percent."""
    value, low, high = estimate
    return percent(value, None if low is None or high is None else (low, high))


def turns(estimate: Estimate, endless: str = "not reached", *, digits: int = 2) -> Cell:
    """Makes a cell of a number with its interval.

    Args:
        estimate: The number; infinity is shown as words, NaN as ``n/a``.
        endless: The words.
        digits: Decimals, cut off where they are zeros.

    Returns:
        The cell.
    """
    value, low, high = estimate
    if math.isnan(value):
        return Cell(UNDEFINED, value)
    shown = _plain(value, endless, digits)
    if low is None or high is None or math.isnan(low) or math.isnan(high):
        return Cell(shown, value)
    span = f"{_plain(low, endless, digits)} to {_plain(high, endless, digits)}"
    return Cell(shown, value, (low, high), span)


def _plain(value: float, endless: str, digits: int) -> str:
    if math.isinf(value):
        return endless
    fixed = f"{value:,.{digits}f}"
    return fixed.rstrip("0").rstrip(".") if value == int(value) else fixed


def _onset_cells(timing: Timing, place: int) -> list[Cell]:
    return [
        count(int(timing.onsets[place])),
        *(share(timing.fates.estimate(place, i)) for i in range(len(FATES))),
        turns(timing.delay.estimate(place)),
    ]


def _signatures(timings: Sequence[Timing]) -> list[str]:
    lines = dict.fromkeys(str(timing.signature) for timing in timings)
    return [f"Signature `{line}`: p is the rate of the latency penalty." for line in lines]
