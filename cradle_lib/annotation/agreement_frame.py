"""The agreement of a study as a data frame: each team and round, each unit set, each label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

import pandas as pd

from cradle_lib.annotation.agreement import DRAWS, Agreement, agreement
from cradle_lib.annotation.pairs import UNIT_NAMES, UNITS, Units, pairs
from cradle_lib.annotation.table import Annotations
from cradle_lib.labels import LABELS, crisis_type, stage

#: What measures and unit sets are called on a page, by their names in the frame.
AGREEMENT_NAMES: Final[Mapping[str, str]] = MappingProxyType(
    {
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
        **{units: name[0].upper() + name[1:] for units, name in UNIT_NAMES.items()},
    }
)
#: How the rows over all labels together are called.
ALL_LABELS: Final = "all labels"


def agreement_frame(
    annotations: Annotations,
    *,
    by_round: bool = True,
    units: Sequence[Units] = UNITS,
    draws: int = DRAWS,
    seed: int = 0,
) -> pd.DataFrame:
    """Measures how far the two annotators of each team agree.

    Args:
        annotations: Everybody's.
        by_round: Whether rounds are kept apart.
        units: Unit sets; see :mod:`cradle_lib.annotation.pairs`.
        draws: Bootstrap draws of dialogues behind each interval; 0 for none.
        seed: Their seed.

    Returns:
        One row for each team (and round), unit set, label and measure.

        - ``team`` (str), ``round`` (Int64; missing if rounds are not kept apart), ``annotators``
          (str, such as ``A and B``).
        - ``units`` (str): ``labelled``, ``user`` or ``all``; ``dialogues``, ``turns`` (int): how
          many there are in it.
        - ``label`` (categorical): each label, then ``all labels``. ``kind`` (str): ``all labels``,
          ``alert``, ``confirm``, or ``si_passive``, which the paper tells apart.
        - ``both``, ``one``, ``other`` (int): how often both gave the label on the same turn, only
          the first annotator, only the second.
        - ``measure`` (str): a name of :data:`~cradle_lib.annotation.agreement.MEASURES`.
        - ``value``, ``low``, ``high`` (float): the measure and its 95 % interval, in its own unit;
          NaN where it is not defined, or has no interval. ``reason`` (str): why; else empty.

    Raises:
        AnnotationError: If a dialogue does not have two annotators, or there are none.
    """
    groups: Sequence[tuple[str, int | None]] = (
        annotations.groups if by_round else [(team, None) for team in annotations.teams]
    )
    rows = [
        {"team": team, "round": number} | row
        for team, number in groups
        for chosen in [pairs(annotations, team=team, round_=number)]
        for name in units
        for row in _rows(agreement(chosen, units=name, draws=draws, seed=seed))
    ]
    frame = pd.DataFrame(rows).astype({"round": "Int64"})
    return frame.assign(label=pd.Categorical(frame["label"], [*LABELS, ALL_LABELS]))


def _rows(found: Agreement) -> list[dict[str, Any]]:
    both, one, other = (sum(cells[place] for cells in found.given.values()) for place in range(3))
    of = {label: (found.given[label], found.labels[label]) for label in LABELS}
    of |= {ALL_LABELS: ((both, one, other), found.overall)}
    return [
        {
            "annotators": found.annotators,
            "units": found.units,
            "dialogues": found.dialogues,
            "turns": found.turns,
            "label": label,
            "kind": _kind(label),
            **dict(zip(("both", "one", "other"), given, strict=True)),
            "measure": measure,
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "reason": estimate.reason,
        }
        for label, (given, estimates) in of.items()
        for measure, estimate in estimates.items()
    ]


def _kind(label: str) -> str:
    if label == ALL_LABELS:
        return label
    return "si_passive" if crisis_type(label) == "SI_passive" else stage(label)
