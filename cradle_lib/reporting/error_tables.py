"""Tables of errors: profiles in the terms of Sec 6.1, and confusions of Appendix D.3."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from cradle_lib.detection.predictions import Predictions
from cradle_lib.published import published_table
from cradle_lib.reporting.published import SYSTEMS, published_cell, published_systems
from cradle_lib.reporting.runs import comparable
from cradle_lib.reporting.tables import (
    MISSING,
    MISSING_NOTE,
    UNDEFINED_NOTE,
    Cell,
    Column,
    Row,
    Table,
    count,
    percent,
    text,
)
from cradle_lib.scoring.confusion import CELLS, confusion, normalize_rows
from cradle_lib.scoring.errors import profile

_PUBLISHED: Final = "Published by the paper, on the real test split"
# Title, and key in the published values.
_PROFILE: Final = (
    ("False positives", "fp"),
    ("False alert_ongoing", "fp_alert_ongoing"),
    ("Flagged without gold (%)", "gold_negative_turns_flagged"),
    ("False negatives", "fn"),
    ("Alert given no tag", "alert_to_none"),
    ("Alert taken for a confirm", "alert_to_confirm"),
    ("Ongoing and past swapped", "temporal"),
)
_SWAP: Final = ("alert_ongoing", "confirm_SI_passive_ongoing")
# Title, key in the published values, gold label and predicted label.
_CONFUSIONS: Final = (
    ("alert_ongoing found", "alert_ongoing.alert_ongoing", "alert_ongoing", "alert_ongoing"),
    ("alert_past found", "alert_past.alert_past", "alert_past", "alert_past"),
    (
        "SI_passive_ongoing found",
        "confirm_SI_passive_ongoing.confirm_SI_passive_ongoing",
        "confirm_SI_passive_ongoing",
        "confirm_SI_passive_ongoing",
    ),
    ("CA_ongoing given no tag", "confirm_CA_ongoing.none", "confirm_CA_ongoing", "none"),
    (
        "DV_ongoing taken for DV_past",
        "confirm_DV_ongoing.confirm_DV_past",
        "confirm_DV_ongoing",
        "confirm_DV_past",
    ),
)


def error_table(runs: Sequence[Predictions]) -> Table:
    """Shows how each model errs, at turn level.

    Args:
        runs: What to look at. A false positive is a tag that is not gold on its turn, even if
            another label is.

    Returns:
        One row for each run, then one for each system of which the paper states a number.
    """
    rows = []
    for heading, group in comparable(runs, runs):
        for run, _ in group:
            found = profile(run.corpus.gold, run.masks)
            matrix = confusion(run.corpus.gold, run.masks)
            cells = (
                count(found.false_positives),
                count(found.false_positives_of["alert_ongoing"]),
                percent(found.flagged_negatives),
                count(found.false_negatives),
                count(found.alert_to_none),
                count(found.alert_to_confirm),
                count(sum(found.temporal_swaps.values())),
                count(int(matrix[tuple(map(CELLS.index, _SWAP))])),
            )
            rows.append(Row((text(run.record.name), *cells), group=heading))
    for system in published_systems("errors."):
        stated = [published_cell(f"errors.{key}.{system}") for _, key in _PROFILE]
        name = text(SYSTEMS[system])
        rows.append(Row((name, *stated, Cell(MISSING)), group=_PUBLISHED, published=True))
    low, high = (f"errors.alert_ongoing_to_si_passive_ongoing_{end}" for end in ("low", "high"))
    return Table(
        "How each model errs at turn level (Sec 6.1 of the paper).",
        (
            Column("Model", "text"),
            *(Column(title) for title, _ in _PROFILE),
            Column(f"{_SWAP[0]} taken for {_SWAP[1].removeprefix('confirm_')}"),
        ),
        tuple(rows),
        (
            MISSING_NOTE,
            f"Of the last column the paper says {published_cell(low).text} to "
            f"{published_cell(high).text} for {published_table()[low].note}.",
            "Most of the paper's figures are counts over 600 dialogues: compare them only with "
            "counts over as many.",
        ),
    )


def confusion_table(runs: Sequence[Predictions]) -> Table:
    """Shows the cells of the confusion matrix that the paper states in words.

    Args:
        runs: What to look at.

    Returns:
        One row for each cell, as a share of its gold label in percent; one column for each
        run and for each system of which the paper states numbers. A label that never is
        gold has no share.
    """
    systems = published_systems("confusion.")
    matrices = [normalize_rows(confusion(run.corpus.gold, run.masks)) for run in runs]
    rows = []
    for title, key, gold, predicted in _CONFUSIONS:
        place = CELLS.index(gold), CELLS.index(predicted)
        here = [percent(float(matrix[place]), digits=0) for matrix in matrices]
        stated = [_share(f"confusion.{key}.{system}") for system in systems]
        rows.append(Row((text(title), *here, *stated)))
    return Table(
        "Confusions that the paper states in words, in percent of the gold label (Appendix D.3).",
        (
            Column("Gold label", "text"),
            *(Column(f"{run.record.name} ({len(run.corpus):,} dialogues)") for run in runs),
            *(Column(f"Published: {SYSTEMS[system]}", "published") for system in systems),
        ),
        tuple(rows),
        (MISSING_NOTE, UNDEFINED_NOTE),
    )


def _share(key: str) -> Cell:
    stated = published_cell(key).value
    return percent(stated, digits=0)
