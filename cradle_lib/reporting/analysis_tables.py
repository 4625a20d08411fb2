"""Tables of what goes wrong: categories, dominant labels, escalation, and consequences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np

from cradle_lib.corpus import Corpus
from cradle_lib.detection.predictions import Predictions, load_predictions
from cradle_lib.detection.registry import load_registry
from cradle_lib.detection.runs import find_journal
from cradle_lib.labels import ALERT_MASK, CRISIS_TYPES, LABELS, short
from cradle_lib.record import History
from cradle_lib.reporting.estimate_cells import share
from cradle_lib.reporting.notice import Notice, lacking
from cradle_lib.reporting.tables import (
    MISSING,
    Cell,
    Column,
    Kind,
    Row,
    Table,
    count,
    percent,
    text,
)
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
        One row for each category and one for all, one column for each run.
    """
    found = [analyse(run) for run in runs]
    rows = {
        CATEGORY_NAMES[category]: [count(each.categories[category]) for each in found]
        for category in Category
    }
    rows["All errors"] = [count(sum(each.categories.values())) for each in found]
    return _by_run(
        "Every error at turn level, in exactly one category.",
        "Category",
        runs,
        rows,
        "Tags and gold labels are paired as in the confusion matrix. A tag without a partner is "
        "too early if its label is gold only later in the dialogue, too late if it was gold before "
        "and this is its first tag (the gold label is then a miss as well), repeated if it was "
        "gold and tagged before, and unfounded if it is never gold.",
    )


def dominant_table(runs: Sequence[Predictions]) -> Table:
    """Shows which labels a run makes up and misses most, and what it takes them for.

    Args:
        runs: What to look at.

    Returns:
        One column for each run, in the terms of Sec 6.1.
    """
    found = [analyse(run) for run in runs]
    return _by_run(
        "What each run makes up, misses and mistakes most, at turn level.",
        "Of each run",
        runs,
        {
            "False positives": [count(each.profile.false_positives) for each in found],
            "mostly": [_label(each.made_up_most) for each in found],
            "False negatives": [count(each.profile.false_negatives) for each in found],
            "mostly ": [_label(each.missed_most) for each in found],
            "Turns without gold flagged (%)": [
                percent(each.profile.flagged_negatives) for each in found
            ],
            "Alerts most often taken for": [
                _label(next(iter(each.confirmed_alerts.items()), None)) for each in found
            ],
            "Types most often confused": [_types(each) for each in found],
        },
        "Counts in brackets; of equal ones the first in the order of the labels.",
        kind="text",
    )


def swap_table(runs: Sequence[Predictions]) -> Table:
    """Shows how often ongoing and past are taken for each other, for each crisis type."""
    swaps = [analyse(run).profile.temporal_swaps for run in runs]
    kinds = ("alert", *CRISIS_TYPES)
    return _by_run(
        "Ongoing and past taken for each other, by crisis type.",
        "Crisis type",
        runs,
        {kind: [count(each[kind]) for each in swaps] for kind in kinds},
    )


def alert_table(runs: Sequence[Predictions]) -> Table | Notice:
    """Shows what became of the gold alerts: no tag, the other alert, or which confirm.

    Args:
        runs: What to look at.

    Returns:
        One column for each run; what became of the alerts adds up to their number. A notice if
        there is none.
    """
    if nothing := lacking(runs, "alerts", "none could be found or missed"):
        return nothing
    found = [analyse(run) for run in runs]
    alerts = [int(np.bitwise_count(run.corpus.gold & np.uint16(ALERT_MASK)).sum()) for run in runs]
    confirmed = {
        short(label): [each.confirmed_alerts.get(label, 0) for each in found] for label in LABELS
    }
    parts = {
        "No tag": [each.categories[Category.MISSED_ALERT] for each in found],
        "The other alert": [each.profile.temporal_swaps["alert"] for each in found],
        **{name: line for name, line in confirmed.items() if any(line)},
    }
    wrong = np.sum(list(parts.values()), axis=0)
    numbers = {"Alerts": alerts, "Found": [int(n) for n in alerts - wrong], **parts}
    return _by_run(
        "What became of the gold alerts, at turn level.",
        "Tagged as",
        runs,
        {name: [count(number) for number in line] for name, line in numbers.items()},
        "Labels that no run took an alert for are left out.",
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


def _by_run(
    caption: str,
    what: str,
    runs: Sequence[Predictions],
    rows: Mapping[str, Sequence[Cell]],
    *notes: str,
    kind: Kind = "num",
) -> Table:
    """One column for each run: there may be many things to say of a run, and few runs."""
    most = max(len(run.corpus) for run in runs)
    titles = [
        run.record.name
        if len(run.corpus) == most
        else f"{run.record.name} ({len(run.corpus):,} dialogues)"
        for run in runs
    ]
    parts = ("Only columns over the same dialogues can be compared.",)
    return Table(
        caption,
        (Column(what, "text"), *(Column(title, kind) for title in titles)),
        tuple(Row((text(name), *cells)) for name, cells in rows.items()),
        (*notes, *(parts if any(len(run.corpus) < most for run in runs) else ())),
    )


def _label(found: tuple[str, int] | None) -> Cell:
    return Cell(MISSING) if found is None else text(f"{short(found[0])} ({found[1]:,})")


def _types(found: ErrorAnalysis) -> Cell:
    if not found.wrong_types:
        return Cell(MISSING)
    (gold, tagged), times = next(iter(found.wrong_types.items()))
    return text(f"{gold} as {tagged} ({times:,})")
