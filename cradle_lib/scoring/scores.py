"""Computes scores from summed counts: exact match, Jaccard, precision, recall and F1.

Conventions:
    Scores are between 0 and 1; only displays show percent. Every function takes totals with any
    leading axes, so that ten thousand bootstrap draws are scored in one call.

Metrics (Tables 4, 5 and 11 of the paper), from true positives tp, false positives fp and
false negatives fn of each label:
    Label: precision tp / (tp + fp), recall tp / (tp + fn), F1 2 tp / (2 tp + fp + fn).
    Micro: the same after summing tp, fp and fn over labels.
    Macro: the plain mean of the label values. Macro F1 is the mean of the label F1s, unless the
    convention asks for the harmonic mean of macro precision and macro recall.
    Exact match: share of units whose predicted set equals the gold set. The paper reports it
    at turn level only.
    Jaccard: mean over units of the size of the intersection over that of the union.

References:
    CRADLE-Dialogue (arXiv 2606.10380), Sec 4; for the two macro F1s, Opitz and Burst,
    "Macro F1 and Macro F1" (arXiv 1911.03347).
"""

from __future__ import annotations

from typing import Final, NamedTuple

import numpy as np

from cradle_lib.labels import BITS, CONFIRM_MASK, LABELS
from cradle_lib.scoring.conventions import Level, MacroF1
from cradle_lib.statistics.rates import Floats, ratio


class Scores(NamedTuple):
    """The scores of one total or of many: :data:`OVERALL`, then :data:`PER_LABEL`.

    Overall scores have the shape of the totals' leading axes, (...), and scores per label (..., L).
    L is 16, or 14 at level ``confirm``, which leaves out alerts. Exact match and Jaccard are NaN
    without units. Each precision, recall and F1 is ``zero_division`` where its denominator is 0.
    """

    exact_match: Floats
    jaccard: Floats
    micro_precision: Floats
    micro_recall: Floats
    micro_f1: Floats
    macro_precision: Floats
    macro_recall: Floats
    macro_f1: Floats
    precision: Floats
    recall: Floats
    f1: Floats


# Minimum number of gold labels; scores from fewer depend mostly on chance.
ENOUGH: Final = 20
# The scores over all labels, then those of each label.
_FIRST_OF_LABEL: Final = Scores._fields.index("precision")
OVERALL: Final = Scores._fields[:_FIRST_OF_LABEL]
PER_LABEL: Final = Scores._fields[_FIRST_OF_LABEL:]


def labels_at(level: Level) -> tuple[str, ...]:
    """Gives the labels that are scored at a level, in order: 16, or the 14 confirms."""
    if level == "confirm":
        return tuple(label for label in LABELS if BITS[label] & CONFIRM_MASK)
    return LABELS


def scores(
    total: Floats,
    *,
    level: Level = "turn",
    zero_division: float = 0.0,
    macro_f1: MacroF1 = "mean",
) -> Scores:
    """Computes all scores from summed counts, as :attr:`.Counts.total`, with any leading axes.

    The harmonic mean of two zeros is ``zero_division``.
    """
    tallies = tallies_at(total, level)
    units, exact, jaccard = np.moveaxis(total[..., -1, :], -1, 0)
    micro = precision_recall_f1(tallies.sum(axis=-2), zero_division)
    by_label = precision_recall_f1(tallies, zero_division)
    macro = [each.mean(axis=-1) for each in by_label]
    if macro_f1 == "harmonic":
        macro[2] = ratio(2 * macro[0] * macro[1], macro[0] + macro[1], zero_division)
    return Scores(
        exact_match=ratio(exact, units),
        jaccard=ratio(jaccard, units),
        micro_precision=micro[0],
        micro_recall=micro[1],
        micro_f1=micro[2],
        macro_precision=macro[0],
        macro_recall=macro[1],
        macro_f1=macro[2],
        precision=by_label[0],
        recall=by_label[1],
        f1=by_label[2],
    )


def tallies_at(rows: Floats, level: Level) -> Floats:
    """Gives true positives, false positives and false negatives of the labels of a level.

    Takes rows or totals of :class:`.Counts`, shape (..., 17, 3), and gives shape (..., L, 3).
    """
    # Alerts come first in the order of the labels.
    return rows[..., len(LABELS) - len(labels_at(level)) : -1, :]


def precision_recall_f1(tallies: Floats, zero_division: float) -> tuple[Floats, Floats, Floats]:
    """Computes precision, recall and F1, shape (...) each, of tallies of shape (..., 3)."""
    tp, fp, fn = tallies[..., 0], tallies[..., 1], tallies[..., 2]
    return (
        ratio(tp, tp + fp, zero_division),
        ratio(tp, tp + fn, zero_division),
        ratio(2 * tp, 2 * tp + fp + fn, zero_division),
    )
