"""What the paper states about agreement, beside what these annotations come to.

The paper gives ranges and leaves open how they were taken. Each range is measured here as this
project reads it, and then as it could be read otherwise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Final

from cradle_lib.annotation.agreement import Agreement
from cradle_lib.annotation.noise import CLEAR
from cradle_lib.annotation.table import Annotations
from cradle_lib.labels import ALERT_MASK, BITS, LABELS
from cradle_lib.published import published
from cradle_lib.reporting.annotation_tables import (
    INTERVALS,
    agreement_by_group,
    estimate_cell,
    exact_match_cell,
    stated_range,
)
from cradle_lib.reporting.tables import DASH, MISSING, Cell, Column, Row, Table, text

_ALERTS: Final = tuple(label for label in LABELS if BITS[label] & ALERT_MASK)
_CONFIRMS: Final = tuple(LABELS[index] for index in CLEAR)
_READ: Final = "As the ranges are read here"
_OTHERWISE: Final = "Read otherwise"


def ranges_table(annotations: Annotations, *, draws: int = 10_000, seed: int = 0) -> Table:
    """Sets every range of agreement that the paper states beside what is found.

    Args:
        annotations: Everybody's.
        draws: Bootstrap draws of dialogues.
        seed: Their seed.

    Returns:
        One row for each statement; one column for each team and round, and the stated
        value of each team.
    """
    everything, user, labelled = (
        agreement_by_group(annotations, units=units, draws=draws, seed=seed)
        for units in ("all", "user", "labelled")
    )
    teams = annotations.teams
    ongoing, past = "confirm_SI_passive_ongoing", "confirm_SI_passive_past"

    def row(group: str, name: str, cells: Iterable[Cell], stated: Iterable[str]) -> Row:
        return Row((text(name), *cells, *map(text, stated)), group=group)

    exact = [_percentage(f"annotation.team{team}_round1_exact_match") for team in teams]
    kappa = [stated_range("annotation.kappa")] * len(teams)
    passive = [stated_range("annotation.si_passive_jaccard")] * len(teams)
    alerts, confirms = (
        [stated_range(f"annotation.team{team}_{stage}_jaccard") for team in teams]
        for stage in ("alert", "confirm")
    )
    rows = (
        row(_READ, "Exact match, all turns (%)", map(exact_match_cell, everything.values()), exact),
        row(_READ, "Kappa, labels pooled", _overall(labelled, "kappa"), kappa),
        row(_READ, "Jaccard of alerts", _spread(labelled, "jaccard", _ALERTS), alerts),
        row(
            _READ,
            "Jaccard of confirms but passive",
            _spread(labelled, "jaccard", _CONFIRMS),
            confirms,
        ),
        row(_READ, "Jaccard of passive, ongoing", _single(labelled, ongoing), passive),
        row(_OTHERWISE, "Exact match, user turns (%)", map(exact_match_cell, user.values()), exact),
        row(_OTHERWISE, "Kappa of each label", _spread(labelled, "kappa", LABELS), kappa),
        row(_OTHERWISE, "Jaccard of passive, past", _single(labelled, past), passive),
    )
    return Table(
        "Agreement that the paper states, beside what is found, under two readings.",
        (
            Column("Stated", "text"),
            *(Column(heading) for heading in everything),
            *(Column(f"Published, team {team}", "published") for team in teams),
        ),
        rows,
        (
            f"{INTERVALS} Of several labels the lowest and the highest value are shown, without "
            "labels that neither gave.",
            "The paper states the exact match of the first round only; the second stands beside "
            "the same value. Kappa and Jaccard are over turns that either annotator labelled.",
        ),
    )


def _percentage(key: str) -> str:
    value = published(key)
    return MISSING if value is None else f"{value:.2f}"


def _overall(groups: Mapping[str, Agreement], measure: str) -> list[Cell]:
    return [estimate_cell(found.overall[measure]) for found in groups.values()]


def _single(groups: Mapping[str, Agreement], label: str) -> list[Cell]:
    return [estimate_cell(found.labels[label]["jaccard"]) for found in groups.values()]


def _spread(groups: Mapping[str, Agreement], measure: str, labels: Iterable[str]) -> list[Cell]:
    chosen = tuple(labels)
    cells = []
    for found in groups.values():
        values = [found.labels[label][measure].value for label in chosen]
        kept = [value for value in values if not math.isnan(value)]
        cells.append(text(f"{min(kept):.2f}{DASH}{max(kept):.2f}" if kept else MISSING))
    return cells
