"""Tables of what goes wrong: categories, dominant labels, escalation, and consequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.detection.registry import load_registry
from cradle_lib.labels import ALERT_MASK, CRISIS_TYPES, LABELS, short, stage
from cradle_lib.record import History
from cradle_lib.reporting.runs import comparable, find_journal
from cradle_lib.reporting.tables import MISSING, Cell, Column, Row, Table, count, percent, text
from cradle_lib.reporting.timing_tables import share
from cradle_lib.scoring.categories import Category, ErrorAnalysis, analyse
from cradle_lib.scoring.comparison import common_dialogues
from cradle_lib.scoring.consequence import STATES, Consequence
from cradle_lib.scoring.escalation import ORDERS, escalation

CATEGORY_NAMES: Final[Mapping[Category, str]] = {
    Category.MISSED_ALERT: "Missed alert",
    Category.MISSED_CONFIRM: "Missed confirm",
    Category.OVER_CONFIRMED: "Confirm for an alert",
    Category.UNDER_CONFIRMED: "Alert for a confirm",
    Category.TEMPORAL_SWAP: "Ongoing and past swapped",
    Category.WRONG_TYPE: "Wrong crisis type",
    Category.TOO_EARLY: "Tag too early",
    Category.TOO_LATE: "Tag too late",
    Category.REPEATED: "Tag repeated",
    Category.UNFOUNDED: "Tag unfounded",
}
_ORDER_NAMES: Final = {
    "neither": "Neither",
    "alert_only": "Alert only",
    "confirm_only": "Confirm only",
    "alert_first": "Alert, then confirm",
    "same_turn": "Both on one turn",
    "confirm_first": "Confirm, then alert",
}
_OTHERS: Final[tuple[History, ...]] = ("gold", "none")
_STATE_NAMES: Final = {
    "right": "History right",
    "extra": "A tag that is not gold",
    "lacking": "A gold label not tagged",
    "both": "Both",
}


def category_table(runs: Sequence[Predictions]) -> Table:
    """Shows every error in exactly one category, with the totals that they add up to.

    Args:
        runs: What to look at.

    Returns:
        One row for each run.
    """
    rows = []
    for heading, group in comparable(runs, [analyse(run) for run in runs]):
        for run, found in group:
            cells = [count(found.categories[category]) for category in Category]
            total = count(sum(found.categories.values()))
            rows.append(Row((text(run.record.name), *cells, total), group=heading))
    return Table(
        "Every error at turn level, in exactly one category.",
        (
            Column("Run", "text"),
            *(Column(CATEGORY_NAMES[category]) for category in Category),
            Column("All errors"),
        ),
        tuple(rows),
        (
            "Tags and gold labels are paired as in the confusion matrix. A tag without a partner "
            "is too early if its label is gold only later in the dialogue, too late if it was gold "
            "before and this is its first tag (the gold label is then a miss as well), repeated "
            "if it was gold and tagged before, and unfounded if it is never gold.",
        ),
    )


def dominant_table(runs: Sequence[Predictions]) -> Table:
    """Shows which labels a run makes up and misses most, and what it takes them for.

    Args:
        runs: What to look at.

    Returns:
        One row for each run, in the terms of Sec 6.1.
    """
    rows = []
    for heading, group in comparable(runs, [analyse(run) for run in runs]):
        for run, found in group:
            cells = (
                count(found.profile.false_positives),
                _label(found.made_up_most),
                count(found.profile.false_negatives),
                _label(found.missed_most),
                percent(found.profile.flagged_negatives),
                _label(next(iter(found.confirmed_alerts.items()), None)),
                _types(found),
            )
            rows.append(Row((text(run.record.name), *cells), group=heading))
    return Table(
        "What each run makes up, misses and mistakes most, at turn level.",
        (
            Column("Run", "text"),
            Column("False positives"),
            Column("Mostly", "text"),
            Column("False negatives"),
            Column("Mostly ", "text"),
            Column("Turns without gold flagged (%)"),
            Column("Alerts most often taken for", "text"),
            Column("Types most often confused", "text"),
        ),
        tuple(rows),
        ("Counts in brackets; of equal ones the first in the order of the labels.",),
    )


def swap_table(runs: Sequence[Predictions]) -> Table:
    """Shows how often ongoing and past are taken for each other, for each crisis type."""
    kinds = ("alert", *CRISIS_TYPES)
    rows = [
        Row(
            (text(run.record.name), *(count(found.profile.temporal_swaps[k]) for k in kinds)),
            group=heading,
        )
        for heading, group in comparable(runs, [analyse(run) for run in runs])
        for run, found in group
    ]
    return Table(
        "Ongoing and past taken for each other, by crisis type.",
        (Column("Run", "text"), *map(Column, kinds)),
        tuple(rows),
    )


def alert_table(runs: Sequence[Predictions]) -> Table:
    """Shows what became of the gold alerts: no tag, the other alert, or which confirm.

    Args:
        runs: What to look at.

    Returns:
        One row for each run; what became of the alerts adds up to their number.
    """
    confirms = [label for label in LABELS if stage(label) == "confirm"]
    rows = []
    for heading, group in comparable(runs, [analyse(run) for run in runs]):
        for run, found in group:
            alerts = int(np.bitwise_count(run.corpus.gold & np.uint16(ALERT_MASK)).sum())
            swapped = found.profile.temporal_swaps["alert"]
            confirmed = [found.confirmed_alerts.get(label, 0) for label in confirms]
            unseen = found.categories[Category.MISSED_ALERT]
            right = alerts - swapped - sum(confirmed) - unseen
            cells = (alerts, right, unseen, swapped, *confirmed)
            rows.append(Row((text(run.record.name), *map(count, cells)), group=heading))
    return Table(
        "What became of the gold alerts, at turn level.",
        (
            Column("Run", "text"),
            Column("Alerts"),
            Column("Found"),
            Column("No tag"),
            Column("The other alert"),
            *(Column(short(label)) for label in confirms),
        ),
        tuple(rows),
    )


def type_table(run: Predictions) -> Table:
    """Shows which crisis type a run took for which, whatever the temporal states."""
    found = analyse(run).wrong_types
    rows = [
        Row((text(gold), *(count(found.get((gold, tagged), 0)) for tagged in CRISIS_TYPES)))
        for gold in CRISIS_TYPES
    ]
    return Table(
        f"{run.record.name}: crisis types taken for each other, at turn level.",
        (Column("Gold type", "text"), *(Column(f"As {tagged}") for tagged in CRISIS_TYPES)),
        tuple(rows),
    )


def escalation_table(run: Predictions) -> Table:
    """Shows the order of alert and confirm in a run's tags, against that in gold.

    Args:
        run: What to look at.

    Returns:
        Rows are the orders in gold, columns those of the run; each dialogue is in one cell.
    """
    corpus = run.corpus
    matrix = escalation(corpus.gold, run.masks, corpus.dialogue_of, len(corpus))
    rows = [
        Row((text(_ORDER_NAMES[order]), count(int(line.sum())), *(count(int(n)) for n in line)))
        for order, line in zip(ORDERS, matrix, strict=True)
    ]
    return Table(
        f"{run.record.name}: order of the stages, in dialogues.",
        (
            Column("In gold", "text"),
            Column("Dialogues"),
            *(Column(f"Tagged: {_ORDER_NAMES[order].lower()}") for order in ORDERS),
        ),
        tuple(rows),
    )


def history_runs(runs: Sequence[Predictions], corpus: Corpus) -> list[dict[History, Predictions]]:
    """Finds, for each run, the same model's runs with other histories.

    Args:
        runs: Runs with the history ``self``.
        corpus: The corpus that they were made for.

    Returns:
        Runs by history over the same dialogues, for each model that has more than one.
    """
    found = []
    registry = load_registry()
    for run in runs:
        model = registry.get(run.record.model)
        if model is None:
            continue
        histories: dict[History, Predictions] = {"self": run}
        for history in _OTHERS:
            path = find_journal(model, corpus, history)
            if path is not None:
                histories[history] = load_predictions(path, corpus, partial=True)
        if len(histories) > 1:
            shared = common_dialogues(list(histories.values()))
            found.append(dict(zip(histories, shared, strict=True)))
    return found


def consequence_table(name: str, found: Consequence) -> Table:
    """Shows what a model's own wrong tags did to its later turns.

    Args:
        name: Name of the model.
        found: The comparison of its histories.

    Returns:
        One row for each state of the history.
    """
    others = found.histories[1:]
    rows = [
        Row(
            (
                text(_STATE_NAMES[state]),
                count(int(found.turns[i])),
                *(share(found.wrong.estimate(i, j)) for j in range(len(found.histories))),
                *(share(found.change.estimate(i, j)) for j in range(1, len(found.histories))),
            )
        )
        for i, state in enumerate(STATES)
    ]
    return Table(
        f"{name}: wrong turns by what its own tags had put into the history, in percent.",
        (
            Column("History before the turn", "text"),
            Column("User turns"),
            *(Column(f"Wrong with {history}") for history in found.histories),
            *(Column(f"self minus {history}") for history in others),
        ),
        tuple(rows),
        (
            "Where the history was right, self and gold were asked the same question; elsewhere "
            "the difference is the consequence of the model's own wrong tags.",
        ),
    )


def _label(found: tuple[str, int] | None) -> Cell:
    return Cell(MISSING) if found is None else text(f"{short(found[0])} ({found[1]:,})")


def _types(found: ErrorAnalysis) -> Cell:
    if not found.wrong_types:
        return Cell(MISSING)
    (gold, tagged), times = next(iter(found.wrong_types.items()))
    return text(f"{gold} as {tagged} ({times:,})")
