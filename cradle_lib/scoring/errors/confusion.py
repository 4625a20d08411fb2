"""Which label was written in place of which (Figures 13 and 14 of the paper).

A turn can hold several labels on both sides, so a confusion matrix needs to know which
prediction answers which gold label. The paper does not say how it pairs them. Here, turn by
turn:

1. Labels on both sides are paired with themselves: the diagonal.
2. The remaining gold labels are paired one to one with the remaining predictions, as many as
   possible, so that the summed similarity is the greatest possible. Two labels are the more
   similar the more they share: the same crisis type (two alerts count as such) weighs 4,
   the same stage 2, the same temporal state 1. A swap of ongoing and past is therefore
   preferred to a wrong crisis type, and that to a wrong stage.
3. If several pairings are equally good, the first gold label, in the order of the labels,
   gets the first prediction it can get in any of them, then the second, and so on; having
   none comes last.
4. A gold label that is left over goes to the ``none`` column, a prediction that is left over
   to the ``none`` row. A turn with neither gold label nor prediction is one ``none``-``none``.

Every gold label lands in exactly one cell, so a row sums to its label's occurrences; every
predicted label lands in exactly one cell too. On the test split nearly every labelled turn
has one label, where all of this amounts to reading off the two labels.
"""

from __future__ import annotations

from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS, NONE, crisis_type, stage, temporal
from cradle_lib.scoring.core.counts import Masks, label_counts

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

CELLS: Final = (*LABELS, NONE)
NONE_CELL: Final = len(LABELS)


def similarity(gold: str, predicted: str) -> int:
    """Says how much two labels share, from 0 (nothing) to 7 (they are the same)."""
    return (
        4 * (crisis_type(gold) == crisis_type(predicted))
        + 2 * (stage(gold) == stage(predicted))
        + (temporal(gold) == temporal(predicted))
    )


_SIMILARITY: Final = tuple(tuple(similarity(g, p) for p in LABELS) for g in LABELS)


@lru_cache(maxsize=1 << 16)
def pair(gold: int, predicted: int) -> tuple[tuple[int, int], ...]:
    """Pairs the labels of one turn as the module describes.

    Args:
        gold: Mask of the gold labels.
        predicted: Mask of the predicted labels.

    Returns:
        Pairs (gold, predicted) of positions in :data:`CELLS`: for each gold label in order
        one, then one for each prediction that is left over. Two empty masks give one pair of
        ``none`` and ``none``.
    """
    golds = [i for i in range(len(LABELS)) if gold & ~predicted & 1 << i]
    spare = predicted & ~gold

    @cache
    def best(position: int, free: int) -> tuple[int, tuple[int, ...]]:
        if position == len(golds):
            return 0, ()
        options = []
        for column in range(len(LABELS)):
            if free & 1 << column:
                score, rest = best(position + 1, free & ~(1 << column))
                options.append((score + _SIMILARITY[golds[position]][column], (column, *rest)))
        if len(golds) - position > free.bit_count():
            score, rest = best(position + 1, free)
            options.append((score, (NONE_CELL, *rest)))
        # max keeps the first of equals, and options stand in the order of rule 3.
        return max(options, key=lambda option: option[0])

    partners = dict(zip(golds, best(0, spare)[1], strict=True))
    pairs = [(i, partners.get(i, i)) for i in range(len(LABELS)) if gold & 1 << i]
    taken = {column for _, column in pairs}
    extra = [(NONE_CELL, i) for i in range(len(LABELS)) if spare & 1 << i and i not in taken]
    return tuple(pairs + extra) or ((NONE_CELL, NONE_CELL),)


def confusion(gold: Masks, predicted: Masks) -> NDArray[np.int64]:
    """Counts which label was predicted for which.

    Args:
        gold: Gold masks of T turns. Shape (T,).
        predicted: Masks of what was tagged; 0 where an answer could not be read, which puts
            its turn's gold labels into the ``none`` column. Shape (T,).

    Returns:
        Rows are gold, columns predicted, both in the order of :data:`CELLS`: the sixteen
        labels, then ``none``. Shape (17, 17).

    Raises:
        ScoringError: If the two shapes differ.
    """
    if gold.shape != predicted.shape:
        raise ScoringError(
            f"{gold.shape} gold masks and {predicted.shape} predicted ones. "
            "There must be one of each per turn."
        )
    matrix = np.zeros((len(CELLS), len(CELLS)), dtype=np.int64)
    same = gold == predicted
    np.fill_diagonal(matrix, [*label_counts(gold[same]), (gold[same] == 0).sum()])
    turns = (gold[~same].astype(np.uint32) << 16) | predicted[~same]
    for turn, times in zip(*np.unique(turns, return_counts=True), strict=True):
        for row, column in pair(int(turn) >> 16, int(turn) & 0xFFFF):
            matrix[row, column] += times
    return matrix


def confusion_frame(predictions: Predictions) -> pd.DataFrame:
    """Counts a run's pairs of gold label and tag, as a tidy data frame.

    Args:
        predictions: The run.

    Returns:
        One row for each cell of the matrix, row by row, those that never occur included.

        - ``system`` (str): the model's name; ``over`` (str): over which dialogues, as a heading.
        - ``gold``, ``tagged`` (categorical): a name of :data:`CELLS`.
        - ``count`` (int): how often the tag answers the gold label; ``support`` (int): the sum of
          the gold label's row.
        - ``value`` (float): their quotient, a share; NaN where the row is empty.
    """
    matrix = confusion(predictions.corpus.gold, predictions.masks)
    gold, tagged = (
        pd.Categorical([CELLS[place] for place in places.ravel()], categories=CELLS)
        for places in np.indices(matrix.shape)
    )
    return pd.DataFrame(
        {
            "system": predictions.record.name,
            "over": predictions.over,
            "gold": gold,
            "tagged": tagged,
            "count": matrix.ravel(),
            "support": np.repeat(matrix.sum(axis=1), len(CELLS)),
            "value": normalize_rows(matrix).ravel(),
        }
    )


def normalize_rows(matrix: NDArray[np.int64]) -> NDArray[np.float64]:
    """Divides each row by its sum, as the paper's figures do.

    Args:
        matrix: As :func:`confusion` gives it. Shape (17, 17).

    Returns:
        Shares. A row without occurrences has no shares and is NaN. Shape (17, 17).
    """
    sums = matrix.sum(axis=1, keepdims=True)
    shares = np.full(matrix.shape, np.nan)
    np.divide(matrix, sums, out=shares, where=sums != 0)
    return shares
