"""Tables of what scores depend on: conventions, and parts of the corpus."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from cradle_lib.detection.predictions import Predictions
from cradle_lib.reporting.comparison_tables import SCORE_NAMES
from cradle_lib.reporting.estimate_cells import share
from cradle_lib.reporting.notice import Notice, lacking
from cradle_lib.reporting.runs import comparable
from cradle_lib.reporting.tables import (
    UNDEFINED,
    Column,
    Row,
    Table,
    count,
    decimal,
    percent,
    text,
)
from cradle_lib.scoring.cohorts import Cohorts
from cradle_lib.scoring.sensitivity import Sensitivity

_BY: Final = {
    "timing": "reveal timing",
    "scenario": "scenario",
    "length": "length of the dialogue",
    "position": "position in the dialogue",
    "stage": "stage",
}


def sensitivity_table(found: Sensitivity, score: str = "macro_f1") -> Table:
    """Shows one score of all runs under every variant.

    Args:
        found: The scores.
        score: Which of them.

    Returns:
        One row for each variant, in percent; how many pairs of runs change their order, and
        how well the ranking agrees with the default's.
    """
    values, flips, agreement = found.of(score), found.flips(score), found.agreement(score)
    rows = [
        Row(
            (
                text(variant.name),
                *(percent(float(value)) for value in values[v]),
                count(int(flips[v])),
                decimal(float(agreement[v])),
            )
        )
        for v, variant in enumerate(found.variants)
    ]
    return Table(
        f"{SCORE_NAMES[score].capitalize()} at {found.signature.level} level under each convention "
        "that the paper leaves open, in percent.".replace("f1", "F1"),
        (
            Column("Convention", "text"),
            *map(Column, found.names),
            Column("Pairs turned round"),
            Column("Kendall's tau"),
        ),
        tuple(rows),
        (
            f"Each row changes one thing against the default, whose signature is "
            f"`{found.signature}`. {UNDEFINED} the score, or the order, is not defined.",
        ),
    )


def widest_table(found: Sensitivity) -> Table:
    """Shows, for every score, how far it moves over the variants at most.

    Args:
        found: The scores.

    Returns:
        One row for each score: the largest change of any run in points, by which variant,
        and the most pairs of runs that any variant turns round.
    """
    rows = []
    for score, title in SCORE_NAMES.items():
        if score == "f1":
            continue
        values = found.of(score)
        if np.isnan(values).all():
            rows.append(Row((text(title), decimal(math.nan), text("none"), count(0))))
            continue
        moved = np.nan_to_num(np.abs(values - values[0]))
        worst, flips = moved.max(axis=1), found.flips(score)
        place = int(worst.argmax())
        rows.append(
            Row(
                (
                    text(title),
                    decimal(100 * float(worst[place]), 1),
                    text(found.variants[place].name if worst[place] else "none"),
                    count(int(flips.max())),
                )
            )
        )
    return Table(
        f"How far each score depends on the conventions, at {found.signature.level} level.",
        (
            Column("Score", "text"),
            Column("Largest change (points)"),
            Column("By", "text"),
            Column("Pairs turned round at most"),
        ),
        tuple(rows),
    )


def cohort_table(runs: Sequence[Predictions], found: Sequence[Cohorts]) -> Table | Notice:
    """Shows the scores of the parts of a corpus.

    Args:
        runs: The runs.
        found: Their cohorts, all by the same division, in the same order.

    Returns:
        One row for each part and run; a notice if the corpus does not know the division, or
        has nothing to divide.

    Raises:
        ValueError: If divisions are mixed.
    """
    if len({cohorts.by for cohorts in found}) != 1:
        raise ValueError("a table of cohorts needs one division")
    if nothing := lacking(runs, "user turns", "there is no part to score"):
        return nothing
    if not any(cohorts.cohorts for cohorts in found):
        return Notice(f"{runs[0].corpus.name} does not say the {_BY[found[0].by]} of a dialogue.")
    rows = [
        Row(
            (
                text(f"{cohort.name}: {run.record.name}"),
                count(cohort.dialogues),
                count(cohort.units),
                count(cohort.support),
                *(
                    share(cohort.estimates[name])
                    for name in ("micro_precision", "micro_recall", "micro_f1")
                ),
            ),
            group=heading,
        )
        for heading, group in comparable(runs, found)
        for place in range(len(group[0][1].cohorts))
        for run, cohorts in group
        for cohort in (cohorts.cohorts[place],)
    ]
    level = found[0].signature.level
    return Table(
        f"Scores by {_BY[found[0].by]} at {level} level, in percent with 95 % intervals.",
        (
            Column("Part", "text"),
            Column("Dialogues"),
            Column("User turns" if level == "turn" else "Units"),
            Column("Gold labels"),
            Column("Precision"),
            Column("Recall"),
            Column("F1"),
        ),
        tuple(rows),
        (
            "Micro-averaged over the labels.",
            *(
                [f"{UNDEFINED} no label is gold in this part."]
                if any(not cohort.support for cohorts in found for cohort in cohorts.cohorts)
                else []
            ),
        ),
    )
