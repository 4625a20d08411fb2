"""Tables of an annotation: the interface, statistics, agreement and unit sets (Tables 9, 10)."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

from cradle_lib.annotation.agreement import MEASURES, Agreement, Estimate, agreement
from cradle_lib.annotation.interface import DEFINITIONS, HOTKEYS, meaning, title
from cradle_lib.annotation.pairs import UNIT_NAMES, UNITS, Units, pairs
from cradle_lib.annotation.table import Annotations
from cradle_lib.labels import ALERT_MASK, BITS, LABELS, crisis_type, short
from cradle_lib.published import published
from cradle_lib.reporting.tables import (
    DASH,
    MISSING,
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
INTERVALS: Final = (
    "Small figures are 95 % intervals over resampled dialogues. There is none where the draws are "
    "all alike, or lack the label too often."
)
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
    """Lists what the interface offers: a button for each key, and what it stands for."""
    rows = [
        Row(
            (
                text(title(ongoing).removesuffix(": ongoing")),
                text(HOTKEYS[ongoing]),
                text(HOTKEYS[past]),
                text(meaning(ongoing)),
            )
        )
        for ongoing, past in zip(LABELS[::2], LABELS[1::2], strict=True)
    ]
    return Table(
        "Labels of the interface, their keys, and what an annotator is told about them.",
        tuple(Column(name, "text") for name in ("Button", "Ongoing", "Past", "Meaning")),
        tuple(rows),
        tuple(f"{state.capitalize()}: {DEFINITIONS[state]}" for state in ("ongoing", "past")),
    )


def exact_match_cell(found: Agreement) -> Cell:
    """Makes the cell of an exact match over all labels, in percent with its interval."""
    estimate = found.overall["exact_match"]
    return percent(estimate.value, (estimate.low, estimate.high), digits=2)


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
                        text(short(label)),
                        count(both),
                        text(f"{first:,} / {second:,}"),
                        *(
                            estimate_cell(cells[name])
                            for name in ("jaccard", "kappa", "f1", "within_1")
                        ),
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
                    *(
                        estimate_cell(found.overall[name])
                        for name in ("jaccard", "kappa", "f1", "within_1")
                    ),
                    text(f"\N{GREEK SMALL LETTER KAPPA} {stated_range('annotation.kappa')}"),
                ),
                group=heading,
            )
        )
    units = next(iter(groups.values())).units
    return Table(
        f"Agreement on each label, over {UNIT_NAMES[units]} (the paper's Table 10).",
        (
            Column("Label", "text"),
            Column("Both"),
            Column("Only one / other"),
            Column("Jaccard"),
            Column("Kappa"),
            Column("F1"),
            Column("F1 within a turn"),
            Column("Published", "published"),
        ),
        tuple(rows),
        (
            INTERVALS,
            f"{MISSING} not defined: neither gave the label.",
            "F1 within a turn: the same label at most one user turn away counts. Published are "
            "ranges of Jaccard, passive ideation apart, and one of kappa.",
        ),
    )


def _stated_jaccard(label: str, heading: str) -> str:
    if crisis_type(label) == "SI_passive":
        return stated_range("annotation.si_passive_jaccard")
    stage = "alert" if BITS[label] & ALERT_MASK else "confirm"
    team = _key(heading).split("_")[0]
    return stated_range(f"annotation.{team}_{stage}_jaccard")


def stated_range(key: str) -> str:
    """Writes what the paper states: a value, a range, or a dash."""
    value, low, high = (published(key + end) for end in ("", "_low", "_high"))
    if value is not None:
        return f"{value:.2f}"
    return MISSING if low is None or high is None else f"{low:.2f}{DASH}{high:.2f}"


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
                *(estimate_cell(by_units[units][heading].overall[name]) for units in UNITS),
            ),
            group=f"{heading}: "
            + " / ".join(f"{by_units[units][heading].turns:,}" for units in UNITS)
            + " turns",
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
        (INTERVALS, "Beside each team stands how many turns each set has."),
    )


def estimate_cell(estimate: Estimate) -> Cell:
    """Makes the cell of a measure, a dash if it is not defined."""
    if math.isnan(estimate.value):
        return Cell(MISSING, value=math.nan)
    shown = f"{estimate.value:.2f}"
    if math.isnan(estimate.low):
        return Cell(shown, value=estimate.value)
    bounds = (estimate.low, estimate.high)
    return Cell(shown, estimate.value, bounds, f"{bounds[0]:.2f}{DASH}{bounds[1]:.2f}")
