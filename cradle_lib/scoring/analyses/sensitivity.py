"""Measures how much scores and rankings depend on choices that the paper leaves open.

Each variant changes one of the defaults: the Jaccard index of two empty sets, the value of 0/0, the
treatment of unusable answers, the treatment of labels on rows about which no model is asked, the
macro F1, whether repeats of a label in a dialogue count, and whether rare labels are part of macro
scores. Repeats within one answer have no effect, because the labels of a turn are a set.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd

from cradle_lib.arguments import checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.scoring.conventions import Conventions, align_rows
from cradle_lib.scoring.counts import count
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.scores import ENOUGH, OVERALL, PER_LABEL, scores
from cradle_lib.scoring.signature import require_comparable, signed
from cradle_lib.statistics.occurrences import first_only

# Scores that differ by less are equal apart from rounding.
_ROUNDING: Final = 1e-12


@dataclass(frozen=True, slots=True)
class Variant:
    """One combination of the choices that the paper leaves open.

    Attributes:
        name: What it changes, in words.
        conventions: The conventions.
        first: Whether only a label's first occurrence in a dialogue counts, on both sides.
        frequent: Whether macro scores are means over labels with at least 20 gold
            occurrences only.
    """

    name: str
    conventions: Conventions = Conventions()  # noqa: RUF009 - frozen
    first: bool = False
    frequent: bool = False


VARIANTS: Final = (
    Variant("Default"),
    Variant("Two empty sets score 0", Conventions(empty_jaccard=0.0)),
    Variant("0/0 is 1", Conventions(zero_division=1.0)),
    Variant("Unusable answers count as none", Conventions(unparsed="none")),
    Variant("Unusable answers are left out", Conventions(unparsed="exclude")),
    Variant("Orphan labels move to a user turn", Conventions(orphans="attach")),
    Variant("Orphan labels count as missed", Conventions(orphans="count")),
    Variant("Macro F1 is from macro precision and recall", Conventions(macro_f1="harmonic")),
    Variant("A label counts once per dialogue", first=True),
    Variant(f"Macro scores use labels with {ENOUGH}+ gold labels", frequent=True),
)


@checked
def sensitivity(runs: Sequence[Predictions]) -> pd.DataFrame:
    """Scores runs at turn level under every variant.

    Args:
        runs: One or more runs over the same dialogues.

    Returns:
        One row for each variant, system and score, in this order. Except for the default, a variant
        has rows only for scores that it changes for some run.

        - ``convention`` (str): the variant; the first one is the default.
        - ``system`` (str): the model's name; ``score`` (str): a name of :data:`.OVERALL`.
        - ``value`` (float): the score, 0 to 1; NaN where it is undefined, as without gold labels.
        - ``change`` (float): ``value`` minus that of the default, -1 to 1.
        - ``turned_round`` (int): pairs of runs whose order by this score is reversed.

        ``attrs["signature"]`` states the default settings.

    Raises:
        ScoringError: If the signatures of the runs differ.
    """
    runs = [run.labelled for run in runs]
    names = [run.record.name for run in runs]
    signature = require_comparable(names, [signature_of(run) for run in runs])
    values = np.array([[_values(run, variant) for run in runs] for variant in VARIANTS])
    order = np.sign(values[:, :, None] - values[:, None])
    turned = (order * order[:1] < 0).sum(axis=(1, 2)) // 2
    near = np.isclose(values, values[:1], rtol=0, atol=_ROUNDING, equal_nan=True)
    same = np.asarray(near.all(axis=1))
    frame = pd.DataFrame(
        {
            "convention": variant.name,
            "system": name,
            "score": score,
            "value": values[v, s, k],
            "change": values[v, s, k] - values[0, s, k],
            "turned_round": turned[v, k],
        }
        for v, variant in enumerate(VARIANTS)
        for s, name in enumerate(names)
        for k, score in enumerate(OVERALL)
        if v == 0 or not same[v, k]
    )
    return signed(frame, signature)


def _values(run: Predictions, variant: Variant) -> list[float]:
    conventions = variant.conventions
    rows = align_rows(run, conventions)
    if variant.first:
        predicted = np.where(rows.answered, rows.predicted, np.uint16(0))
        rows = rows._replace(
            gold=first_only(rows.gold, rows.dialogue_of),
            predicted=first_only(predicted, rows.dialogue_of),
        )
    counts = count(rows, len(run.corpus), conventions=conventions)
    found = scores(
        counts.total, zero_division=conventions.zero_division, macro_f1=conventions.macro_f1
    )._asdict()
    if variant.frequent:
        often = counts.tallies[..., [0, 2]].sum(axis=(0, 2)) >= ENOUGH
        for name in PER_LABEL:
            found[f"macro_{name}"] = found[name][often].mean() if often.any() else np.nan
    if not counts.tallies[..., [0, 2]].any():
        return [np.nan] * len(OVERALL)
    return [float(found[name]) for name in OVERALL]
