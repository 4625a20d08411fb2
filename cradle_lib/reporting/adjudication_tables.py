"""Tables of an adjudication: how dialogues ended, who decided, the trail, slips on the way."""

from __future__ import annotations

from collections import Counter

from cradle_lib.annotation.adjudication import Adjudication
from cradle_lib.annotation.voting import PUBLISHED_KEYS, Outcome
from cradle_lib.labels import LABELS, short
from cradle_lib.reporting.published import published_cell
from cradle_lib.reporting.tables import MISSING, Column, Row, Table, count, text


def outcome_counts_table(result: Adjudication) -> Table:
    """Shows how the dialogues ended, by team, beside the published counts.

    Args:
        result: The adjudication.

    Returns:
        One row for each category of the paper's Appendix B.3.
    """
    teams = {name: entries[0].team for name, entries in result.annotations.by_dialogue.items()}
    found = Counter((outcome, teams[name]) for name, outcome in result.outcomes.items())
    names = result.annotations.teams
    rows = [
        Row(
            (
                text(outcome[0].upper() + outcome[1:]),
                *(count(found[outcome, team]) for team in names),
                count(result.counts[outcome]),
                published_cell(PUBLISHED_KEYS[outcome]),
            )
        )
        for outcome in Outcome
    ]
    return Table(
        "How the dialogues ended (Appendix B.3 of the paper).",
        (
            Column("Outcome", "text"),
            *(Column(f"Team {team}") for team in names),
            Column("All"),
            Column("Published", "published"),
        ),
        tuple(rows),
    )


def decision_table(result: Adjudication) -> Table:
    """Shows by whom each gold label was decided, and what was rejected."""
    found: Counter[tuple[str, str]] = Counter(
        (item.label, item.by if item.gold else "rejected") for item in result.decisions
    )
    ways = ("agreement", "majority", "senior", "rejected")
    rows = [
        Row((text(short(label)), *(count(found[label, way]) for way in ways))) for label in LABELS
    ]
    sums = (count(sum(found[label, way] for label in LABELS)) for way in ways)
    rows.append(Row((text("all labels"), *sums)))
    return Table(
        "Who decided each gold label, and how often a label was rejected.",
        (
            Column("Label", "text"),
            Column("Both annotators"),
            Column("Majority of three"),
            Column("Senior"),
            Column("Rejected"),
        ),
        tuple(rows),
    )


def trail_table(result: Adjudication) -> Table:
    """Shows the audit trail of the first dialogue whose vote left a whole turn to the senior.

    Returns:
        One row for each label that anybody gave to it; no rows if there is no such dialogue.
    """
    chosen = next((n for n, o in result.outcomes.items() if o is Outcome.CONFLICT), "")
    rows = [
        Row(
            (
                text(f"Turn {item.turn_id}"),
                text(short(item.label)),
                text(", ".join(item.voters)),
                text(item.by.capitalize()),
                text("Gold" if item.gold else "Rejected"),
            )
        )
        for item in result.decisions
        if item.dialogue == chosen
    ]
    entries = result.annotations.by_dialogue.get(chosen, ())
    voters = ", ".join(f"{entry.annotator} ({entry.role})" for entry in entries)
    return Table(
        f"The trail of one dialogue ({chosen or 'there is none'}): who gave what, and what became "
        "of it.",
        tuple(
            Column(name, "text") for name in ("Turn", "Label", "Given by", "Decided by", "Result")
        ),
        tuple(rows),
        (
            f"Who voted: {voters or MISSING}.",
            "`cradle annotate adjudicate --audit` writes the trail of all dialogues.",
        ),
    )
