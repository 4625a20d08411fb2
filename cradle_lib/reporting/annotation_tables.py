"""Tables of an annotation: the interface, statistics, agreement and unit sets (Tables 9 and 10)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from cradle_lib.annotation.agreement import MEASURES, Agreement, Estimate, agreement
from cradle_lib.annotation.interface import HOTKEYS, definition, title
from cradle_lib.annotation.pairs import UNIT_NAMES, UNITS, Units, pairs
from cradle_lib.annotation.table import Annotations
from cradle_lib.labels import ALERT_MASK, BITS, LABELS, crisis_type
from cradle_lib.published import published
from cradle_lib.reporting.published import published_cell
from cradle_lib.reporting.tables import (
    DASH,
    MISSING,
    MISSING_NOTE,
    Cell,
    Column,
    Row,
    Table,
    count,
    percent,
    text,
)

#: How each measure is called on a page.
MEASURE_NAMES: Final[Mapping[str, str]] = {
    "exact_match": "Exact match",
    "jaccard": "Jaccard",
    "kappa": "Cohen's kappa",
    "f1": "F1 (positive agreement)",
    "pabak": "PABAK",
    "ac1": "Gwet's AC1",
    "alpha": "Krippendorff's alpha, nominal",
    "alpha_masi": "Krippendorff's alpha, MASI",
    "within_1": "F1 within one user turn",
    "within_2": "F1 within two user turns",
}
_INTERVALS: Final = "Small figures are 95 % intervals over resampled dialogues."
Groups = Mapping[str, Agreement]


def agreement_by_group(
    annotations: Annotations,
    *,
    by_round: bool = True,
    units: Units = "labelled",
    draws: int = 10_000,
    seed: int = 0,
) -> dict[str, Agreement]:
    """Measures agreement for each team, and for each of its rounds.

    Args:
        annotations: Everybody's.
        by_round: Whether rounds are kept apart.
        units: The unit set.
        draws: Bootstrap draws of dialogues.
        seed: Their seed.

    Returns:
        Agreement by heading, such as ``Team 1, round 2``.
    """
    groups: Sequence[tuple[str, int | None]] = (
        annotations.groups if by_round else [(team, None) for team in annotations.teams]
    )
    return {
        f"Team {team}" + ("" if number is None else f", round {number}"): agreement(
            pairs(annotations, team=team, round_=number), units=units, draws=draws, seed=seed
        )
        for team, number in groups
    }


def interface_table() -> Table:
    """Lists the labels of the interface with their keys and definitions."""
    rows = [
        Row((text(title(label)), text(HOTKEYS[label]), text(label), text(definition(label))))
        for label in LABELS
    ]
    return Table(
        "Labels of the interface, their keys, and what an annotator is told about them.",
        tuple(Column(name, "text") for name in ("Button", "Key", "In the export", "Meaning")),
        tuple(rows),
    )


def annotation_table(annotations: Annotations) -> Table:
    """Makes Table 9: what each team gave in each round, and how often both gave the same.

    Args:
        annotations: Everybody's.

    Returns:
        One row for each team and round, published exact match beside ours.
    """
    everything = agreement_by_group(annotations, units="all", draws=0)
    user = agreement_by_group(annotations, units="user", draws=0)
    labelled = agreement_by_group(annotations, units="labelled", draws=0)
    rows = []
    for heading, found in everything.items():
        given = found.given.values()
        first, second = (sum(g[0] + g[i] for g in given) for i in (1, 2))
        alerts = [
            sum(g[0] + g[i] for label, g in found.given.items() if BITS[label] & ALERT_MASK)
            for i in (1, 2)
        ]
        rows.append(
            Row(
                (
                    text(heading),
                    text(found.annotators),
                    count(found.dialogues),
                    count(found.turns),
                    text(f"{first:,} and {second:,}"),
                    text(f"{alerts[0]:,} and {alerts[1]:,}"),
                    count(found.turns - labelled[heading].turns),
                    percent(found.overall["exact_match"].value, digits=2),
                    percent(user[heading].overall["exact_match"].value, digits=2),
                    published_cell(f"annotation.{_key(heading)}_exact_match", 2),
                )
            )
        )
    return Table(
        "What the annotators gave, and on how many turns both gave the same (the paper's Table 9).",
        (
            Column("Team and round", "text"),
            Column("Annotators", "text"),
            Column("Dialogues"),
            Column("Turns"),
            Column("Labels"),
            Column("Of these alerts"),
            Column("Turns that both left without"),
            Column("Exact match, all turns (%)"),
            Column("Exact match, user turns (%)"),
            Column("Published (%)", "published"),
        ),
        tuple(rows),
        (
            MISSING_NOTE,
            "Listener turns carry no labels, so that counting them raises exact match. The "
            "published values are compared with the one over all turns.",
        ),
    )


def _key(heading: str) -> str:
    return heading.lower().replace("team ", "team").replace(", round ", "_round")


def agreement_table(groups: Groups) -> Table:
    """Makes Table 10: agreement on each label.

    Args:
        groups: Agreement by heading, as :func:`agreement_by_group` gives it.

    Returns:
        One block for each group, one row for each label, and the pooled values last.
    """
    rows = []
    for heading, found in groups.items():
        for label in LABELS:
            both, first, second = found.given[label]
            cells = found.labels[label]
            rows.append(
                Row(
                    (
                        text(label),
                        count(both),
                        text(f"{first:,} / {second:,}"),
                        *(_cell(cells[name]) for name in ("jaccard", "kappa", "f1", "within_1")),
                        text(_stated_jaccard(label, heading)),
                    ),
                    group=heading,
                )
            )
        whole = [sum(given[i] for given in found.given.values()) for i in range(3)]
        rows.append(
            Row(
                (
                    text("all labels"),
                    count(whole[0]),
                    text(f"{whole[1]:,} / {whole[2]:,}"),
                    *(_cell(found.overall[n]) for n in ("jaccard", "kappa", "f1", "within_1")),
                    Cell(MISSING),
                ),
                group=heading,
            )
        )
    units = next(iter(groups.values())).units
    low, high = published("annotation.kappa_low"), published("annotation.kappa_high")
    return Table(
        f"Agreement on each label, over {UNIT_NAMES[units]} (the paper's Table 10).",
        (
            Column("Label", "text"),
            Column("Both"),
            Column("Only one / only the other"),
            Column("Jaccard"),
            Column("Kappa"),
            Column("F1"),
            Column("F1 within one user turn"),
            Column("Published Jaccard", "published"),
        ),
        tuple(rows),
        (
            _INTERVALS,
            f"{MISSING} not defined, or not stated in the text of the paper: a label that neither "
            "annotator gave has no agreement.",
            f"The paper states a kappa of {low:.2f} to {high:.2f} on labelled turns, and ranges of "
            "Jaccard for alerts and for confirms; passive ideation apart.",
        ),
    )


def _stated_jaccard(label: str, heading: str) -> str:
    if crisis_type(label) == "SI_passive":
        return f"{published('annotation.si_passive_jaccard'):.2f}"
    stage = "alert" if BITS[label] & ALERT_MASK else "confirm"
    team = _key(heading).split("_")[0]
    ends = [published(f"annotation.{team}_{stage}_jaccard_{end}") for end in ("low", "high")]
    if any(end is None for end in ends):
        return MISSING
    return f"{ends[0]:.2f}{DASH}{ends[1]:.2f}"


def units_table(annotations: Annotations, *, draws: int = 10_000, seed: int = 0) -> Table:
    """Shows what each measure becomes under each unit set.

    Args:
        annotations: Everybody's.
        draws: Bootstrap draws of dialogues.
        seed: Their seed.

    Returns:
        One block for each team, one row for each measure, one column for each unit set.
    """
    by_units = {
        units: agreement_by_group(annotations, by_round=False, units=units, draws=draws, seed=seed)
        for units in UNITS
    }
    rows = [
        Row(
            (
                text(MEASURE_NAMES[name]),
                *(_cell(by_units[units][heading].overall[name]) for units in UNITS),
            ),
            group=f"{heading}: " + ", ".join(f"{by_units[u][heading].turns:,} {u}" for u in UNITS),
        )
        for heading in by_units["labelled"]
        for name in MEASURES
    ]
    return Table(
        "The same annotations under three unit sets.",
        (
            Column("Measure", "text"),
            *(Column(UNIT_NAMES[units][0].upper() + UNIT_NAMES[units][1:]) for units in UNITS),
        ),
        tuple(rows),
        (_INTERVALS, "The number of units stands beside each team."),
    )


def _cell(estimate: Estimate) -> Cell:
    if math.isnan(estimate.value):
        return Cell(MISSING, value=math.nan)
    shown = f"{estimate.value:.2f}"
    if math.isnan(estimate.low):
        return Cell(shown, value=estimate.value)
    bounds = (estimate.low, estimate.high)
    return Cell(shown, estimate.value, bounds, f"{bounds[0]:.2f}{DASH}{bounds[1]:.2f}")
