"""Tables of time: how close, how late, and how early labels are tagged."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import LABELS, short
from cradle_lib.reporting.estimate_cells import share, turns
from cradle_lib.reporting.notice import Notice, lacking
from cradle_lib.reporting.runs import comparable
from cradle_lib.reporting.tables import UNDEFINED, Cell, Column, Row, Table, count, text
from cradle_lib.scoring.occurrences import SCOPES, STAGES
from cradle_lib.scoring.onset import FATES
from cradle_lib.scoring.timing import LEADS, Timing

# Title, curve and width of the windows that a table shows.
_WINDOWS: Final = {
    "Exact turn": ("either", 0.0),
    "1 turn off": ("either", 1.0),
    "2 turns off": ("either", 2.0),
    "1 turn late": ("late", 1.0),
    "2 turns late": ("late", 2.0),
    "Once per dialogue": ("either_first", math.inf),
}
_SCOPE_NAMES: Final = {"any": "All labels", "alert": "Alerts", "confirm": "Confirms"}


def onset_table(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Table | Notice:
    """Shows what became of the onsets, for all labels and the two stages.

    Args:
        runs: The runs.
        timings: Their timing, in the same order.

    Returns:
        One row for each run and stage; the four shares of a row add up to 100 %. A notice if
        no label is gold.
    """
    if nothing := lacking(runs, "labels", "there is no onset to look at"):
        return nothing
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
        _stage_rows(runs, timings, _onset_cells),
        (
            "Premature: the label was tagged on an earlier turn. The delay, in user turns, is "
            "estimated by Kaplan and Meier over the other onsets, those that were never tagged "
            "included; not reached means that fewer than half ever were.",
            *_signatures(timings),
        ),
    )


def onset_label_table(run: Predictions, timing: Timing) -> Table | Notice:
    """Shows what became of the onsets of each label, for one run; a notice if none is gold."""
    if nothing := _no_labels(run):
        return nothing
    rows = [Row((text(short(label)), *_onset_cells(timing, label))) for label in LABELS]
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


def window_table(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Table | Notice:
    """Shows micro F1 under windows of several widths, for all labels and the two stages.

    Args:
        runs: The runs.
        timings: Their timing, in the same order.

    Returns:
        One row for each run and stage, in percent; a notice if no label is gold.
    """
    if nothing := lacking(runs, "labels", "no tag can come close to one"):
        return nothing
    return Table(
        "Micro F1 if a tag may be some user turns off, in percent with 95 % intervals.",
        (Column("Run", "text"), *map(Column, _WINDOWS)),
        _stage_rows(runs, timings, _window_cells),
        (
            "Exact turn: turn-level micro F1. Once per dialogue: any distance, and each label's "
            "first occurrence only, which is dialogue-level micro F1.",
            *_stage_note(timings),
        ),
    )


def window_label_table(run: Predictions, timing: Timing) -> Table | Notice:
    """Shows F1 of each label under windows, and the measures of other work, for one run.

    Args:
        run: The run.
        timing: Its timing.

    Returns:
        One row for each label, without numbers if it is never gold; a notice if none is.
    """
    if nothing := _no_labels(run):
        return nothing
    names = [*(f"erde_{o}" for o in timing.signature.erde), "latency_f1"]
    rows = []
    for label in LABELS:
        place = list(SCOPES).index(label)
        early = [_early(timing, name, place) for name in names]
        support = count(int(timing.positives[place]))
        rows.append(Row((text(short(label)), support, *_window_cells(timing, label), *early)))
    return Table(
        f"{run.record.name}: F1 with a tolerance and early detection by label, in percent with "
        "95 % intervals.",
        (
            Column("Label", "text"),
            Column("Dialogues"),
            *map(Column, _WINDOWS),
            *(Column(f"ERDE {o}") for o in timing.signature.erde),
            Column("Latency F1"),
        ),
        tuple(rows),
        (f"{UNDEFINED} the label is never gold in these dialogues.", *_slow([timing])),
    )


def lead_table(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Table | Notice:
    """Shows how long before the first gold confirm the first tag came.

    Args:
        runs: The runs.
        timings: Their timing, in the same order.

    Returns:
        One row for each run, over the dialogues with both a gold alert and a gold confirm; a
        notice if there is none.
    """
    if nothing := lacking(runs, "both stages", "there is no lead time to show"):
        return nothing
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


def early_table(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Table | Notice:
    """Shows the early-detection measures that other work reports.

    Args:
        runs: The runs.
        timings: Their timing, in the same order.

    Returns:
        One row for each run and stage; a notice if no label is gold.
    """
    if nothing := lacking(runs, "labels", "there is nothing to detect early"):
        return nothing
    rows = []
    for heading, group in comparable(runs, timings):
        for run, timing in group:
            for place, scope in enumerate(STAGES):
                early = timing.early
                rows.append(
                    Row(
                        (
                            text(f"{run.record.name}: {_SCOPE_NAMES[scope].lower()}"),
                            count(int(timing.positives[place])),
                            *(_early(timing, f"erde_{o}", place) for o in timing.signature.erde),
                            _early(timing, "latency_f1", place),
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
            *_stage_note(timings),
            *_slow(timings),
        ),
    )


def _stage_rows(
    runs: Sequence[Predictions],
    timings: Sequence[Timing],
    cells: Callable[[Timing, str], list[Cell]],
) -> tuple[Row, ...]:
    return tuple(
        Row(
            (text(f"{run.record.name}: {_SCOPE_NAMES[scope].lower()}"), *cells(timing, scope)),
            group=heading,
        )
        for heading, group in comparable(runs, timings)
        for run, timing in group
        for scope in STAGES
    )


def _onset_cells(timing: Timing, scope: str) -> list[Cell]:
    place = list(SCOPES).index(scope)
    return [
        count(int(timing.onsets[place])),
        *(share(timing.fates.estimate(place, i)) for i in range(len(FATES))),
        turns(timing.delay.estimate(place)),
    ]


def _window_cells(timing: Timing, scope: str) -> list[Cell]:
    if not timing.positives[list(SCOPES).index(scope)]:
        return [Cell(UNDEFINED, math.nan)] * len(_WINDOWS)
    return [share(timing.f1(name, width, scope)) for name, width in _WINDOWS.values()]


def _early(timing: Timing, name: str, place: int) -> Cell:
    if not timing.positives[place]:
        return Cell(UNDEFINED, math.nan)
    return share(timing.early[name].estimate(place))


def _no_labels(run: Predictions) -> Notice | None:
    return lacking([run], "labels", "there is nothing to show label by label")


def _stage_note(timings: Sequence[Timing]) -> list[str]:
    absent = any(not timing.positives[: len(STAGES)].all() for timing in timings)
    return [f"{UNDEFINED} no label of this stage is gold in these dialogues."] if absent else []


def _slow(timings: Sequence[Timing]) -> list[str]:
    if not any(math.isnan(timing.signature.p) for timing in timings):
        return []
    return [
        "Half of the dialogues or more have fewer than two user turns, so that nothing can be "
        "late: latency-weighted F1 is not defined."
    ]


def _signatures(timings: Sequence[Timing]) -> list[str]:
    lines = dict.fromkeys(str(timing.signature) for timing in timings)
    return [f"Signature `{line}`: p is the rate of the latency penalty." for line in lines]
