"""The table of alarms: what the tags of a run cost those who look at them."""

from __future__ import annotations

from collections.abc import Sequence

from cradle_lib.detection.predictions import Predictions
from cradle_lib.reporting.estimate_cells import share, turns
from cradle_lib.reporting.runs import comparable
from cradle_lib.reporting.tables import UNDEFINED, Column, Row, Table, text
from cradle_lib.scoring.burden import Burden


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
