"""Tables of scenarios and reveal timing: Tables 1 and 8, and Sec 3.1 of the paper.

The release does not say which scenario or timing a dialogue has, and our copy of the paper
lacks both tables. What is not known is a dash, and a note says so.
"""

from __future__ import annotations

from collections.abc import Mapping

from cradle_lib.corpus.disclosure import scenario_names
from cradle_lib.corpus.statistics import Statistics
from cradle_lib.labels import LABELS, TEMPORAL_STATES, short, stage, temporal
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.published import published_cell
from cradle_lib.reporting.tables import (
    MISSING,
    Column,
    Row,
    Table,
    count,
    decimal,
    text,
)


def scenario_table(statistics: Statistics, corpus: str) -> Table:
    """Makes Table 1: the scenarios and how many dialogues each has.

    Args:
        statistics: What was counted.
        corpus: Name of the corpus.

    Returns:
        One row for each scenario of the paper, then for the corpus' own; a dash where the corpus
        does not say.
    """
    found = statistics.scenarios
    rows = []
    for scenario, name in scenario_names(found or ()).items():
        here = (found or {}).get(scenario, 0)
        rows.append(
            Row(
                (
                    text(scenario),
                    text(name),
                    count(None if found is None else here),
                    decimal(None if found is None else statistics.share(here), 1),
                    published_cell(f"scenario.{scenario}"),
                )
            )
        )
    notes = ["The definitions in the paper's Table 1 are not in our copy of its text."]
    if found is None:
        notes.append(f"{MISSING} not known: {corpus} does not say which scenario a dialogue has.")
    return Table(
        f"Scenarios of {corpus} (the paper's Table 1).",
        (
            Column("Scenario", "text"),
            Column("Name", "text"),
            Column("Dialogues"),
            Column("Share (%)"),
            Column("Published", "published"),
        ),
        tuple(rows),
        tuple(notes),
    )


def mapping_table(found: Mapping[str, Mapping[str, int]] | None, corpus: str) -> Table | Notice:
    """Makes what stands for Table 8: which crisis types occur in which scenario.

    Args:
        found: Dialogues by scenario and label; ``None`` if the corpus does not say.
        corpus: Name of the corpus.

    Returns:
        One row for each confirm, ongoing ones first; a notice if the corpus does not say.
    """
    if found is None:
        return Notice(f"{corpus} does not say which scenario a dialogue has.")
    scenarios = list(scenario_names(found))
    rows = [
        Row(
            (
                text(short(label)),
                *(count(found.get(s, {}).get(label, 0)) for s in scenarios),
            ),
            group=state,
        )
        for state in TEMPORAL_STATES
        for label in LABELS
        if stage(label) == "confirm" and temporal(label) == state
    ]
    notes = [
        "This is what the corpus holds. The mapping that the paper's authors planned with, its "
        "Table 8, is not in our copy of its text; its Sec 3.1 says that past crises avoid S4 "
        "and S5."
    ]
    return Table(
        f"Dialogues of {corpus} with a confirm of each kind, by scenario (compare Table 8).",
        (Column("Confirm", "text"), *map(Column, scenarios)),
        tuple(rows),
        tuple(notes),
    )


def timing_table(statistics: Statistics, corpus: str) -> Table | Notice:
    """Shows how many dialogues have which reveal timing; a notice if the corpus does not say."""
    timings = statistics.timings
    if timings is None:
        return Notice(f"{corpus} does not say when its dialogues were meant to disclose.")
    rows = [
        Row((text(name), count(dialogues), decimal(statistics.share(dialogues), 1)))
        for name, dialogues in timings.items()
    ]
    return Table(
        f"Reveal timing in {corpus} (Sec 3.1 of the paper: three groups of equal size).",
        (Column("Timing", "text"), Column("Dialogues"), Column("Share (%)")),
        tuple(rows),
    )
