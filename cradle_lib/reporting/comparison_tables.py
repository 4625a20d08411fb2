"""Tables of comparisons: differences with intervals and tests, and leaderboards of tie groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from cradle_lib.detection.predictions import Predictions
from cradle_lib.labels import short
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.runs import comparable, with_same_dialogues
from cradle_lib.reporting.tables import DASH, Cell, Column, Row, Table, count, percent, text
from cradle_lib.scoring.comparison import SCORES, Comparison
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.difference import ENOUGH, Difference

LEVEL_NAMES: Final = {
    "turn": "Turn level",
    "dialogue": "Dialogue level",
    "confirm": "Dialogue level, confirms only",
}
SCORE_NAMES: Final = {
    "micro_f1": "micro F1",
    "macro_f1": "macro F1",
    "exact_match": "exact match",
    "jaccard": "Jaccard",
    "f1": "F1",
}
_VERDICTS: Final = {
    "different": "different",
    "not shown": "no difference shown",
    "insufficient": "insufficient",
}


def run_sets(runs: Sequence[Predictions], baseline: str = "") -> list[list[Predictions]]:
    """Puts runs into sets that may be compared.

    Args:
        runs: Whole runs and runs over samples of the same corpus.
        baseline: Id of the model that comes first in every set in which it is.

    Returns:
        The sets of two runs or more over the same dialogues, the largest first; for a sample
        the whole runs are restricted to its dialogues. Beside the largest set none of fewer
        than 20 dialogues, where nothing could be tested.
    """
    extended = with_same_dialogues(runs)
    groups = [
        sorted((run for run, _ in group), key=lambda run: run.record.model != baseline)
        for _, group in comparable(extended, extended)
    ]
    several = [group for group in groups if len(group) > 1]
    return several[:1] + [group for group in several[1:] if len(group[0].corpus) >= ENOUGH]


def difference_table(comparison: Comparison) -> Table:
    """Shows the declared family: every run against the baseline in the three settings.

    Args:
        comparison: The comparison.

    Returns:
        One row for each run and score, under one heading for each setting; differences in
        points, with 95 % intervals.
    """
    ordered = sorted(comparison.family, key=lambda d: LEVELS.index(d.level))
    exact = [_row(d, "Dialogue level, exact match (McNemar)") for d in comparison.exact_match]
    rows = [*(_row(d, LEVEL_NAMES[d.level]) for d in ordered), *exact]
    return Table(
        f"Differences from {comparison.names[0]}, in points with 95 % intervals.",
        _columns("Gold labels"),
        tuple(rows),
        (
            f"p by swapping whole dialogues, {comparison.permutations:,} times; adjusted by Holm "
            "over all rows but those of exact match, which have a family of their own. "
            "No difference shown does not mean equal.",
            comparison.power_note,
            *(f"Signature `{s}`: {s.long()}." for s in comparison.signatures.values()),
        ),
    )


def label_difference_table(comparison: Comparison) -> Table | Notice:
    """Shows the F1 of each label against the baseline, at turn level.

    Args:
        comparison: The comparison.

    Returns:
        One row for each label under one heading for each run; a notice if no label is gold.
    """
    if nothing := without_labels(comparison):
        return nothing
    rows = [_row(d, d.system, short(d.label or "")) for d in comparison.labels]
    return Table(
        f"F1 of each label at turn level against {comparison.names[0]}, in points with 95 % "
        "intervals.",
        _columns("Gold labels"),
        tuple(rows),
        (
            "Exploratory: p adjusted by Benjamini and Hochberg over the labels of one run. "
            f"Under {ENOUGH} gold labels there is no test, and the verdict is insufficient.",
        ),
    )


def leaderboard_table(comparison: Comparison) -> Table | Notice:
    """Shows tie groups instead of ranks.

    Args:
        comparison: The comparison.

    Returns:
        One row for each run, under one heading for each setting and score; a notice if no
        label is gold.
    """
    if nothing := without_labels(comparison):
        return nothing
    rows = []
    for level in LEVELS:
        for score in SCORES:
            estimates = comparison.estimates[level, score]
            for standing in comparison.leaderboards[level, score]:
                value, low, high = estimates[standing.system]
                span = None if low is None or high is None else (low, high)
                places = f"{standing.best}"
                if standing.worst != standing.best:
                    places = f"{standing.best}{DASH}{standing.worst}"
                rows.append(
                    Row(
                        (
                            text(comparison.names[standing.system]),
                            count(standing.group),
                            Cell(places),
                            percent(value, span),
                        ),
                        group=f"{LEVEL_NAMES[level]}, {SCORE_NAMES[score]}",
                    )
                )
    return Table(
        "Leaderboard of tie groups: within a group the order means nothing.",
        (Column("Run", "text"), Column("Tie group"), Column("Places"), Column("Score (%)")),
        tuple(rows),
        (
            "A new group begins where every run above differs from every run below, after "
            "Holm's correction over all pairs. Places: what a run's place could be.",
        ),
    )


def without_labels(comparison: Comparison) -> Notice | None:
    """Gives a notice if no F1 could tell the runs apart, because no label is gold."""
    if any(difference.support for difference in comparison.family):
        return None
    return Notice("No user turn has a gold label: F1 can't tell the runs apart.")


def _columns(support: str) -> tuple[Column, ...]:
    return (
        Column("Run", "text"),
        Column("Baseline"),
        Column("Run's score"),
        Column("Difference"),
        Column("p"),
        Column("Adjusted p"),
        Column(support),
        Column("Verdict", "text"),
    )


def _row(d: Difference, group: str, title: str | None = None) -> Row:
    name = title or f"{d.system}: {SCORE_NAMES[d.score]}"
    return Row(
        (
            text(name),
            *(percent(value) for value in d.values),
            points(d),
            _chance(d.p),
            _chance(d.adjusted),
            count(d.support),
            text(_VERDICTS[d.verdict]),
        ),
        group=group,
    )


def points(d: Difference) -> Cell:
    """Makes a cell of a difference in points, with its sign."""
    value, low, high = d.estimate
    if math.isnan(value):
        return percent(value)
    if low is None or high is None:
        return Cell(f"{100 * value:+.1f}", 100 * value)
    shown = f"{100 * low:+.1f} to {100 * high:+.1f}"
    return Cell(f"{100 * value:+.1f}", 100 * value, (100 * low, 100 * high), shown)


def _chance(p: float | None) -> Cell:
    if p is None:
        return Cell("not tested")
    return Cell("< 0.001" if p < 0.001 else f"{p:.3f}", p)
