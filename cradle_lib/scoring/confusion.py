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

The other pairing, ``all``, pairs each gold label of a turn with each tag of the turn, ``none``
standing for an empty set. A row then sums to more than its label's occurrences where a turn has
several tags, and a turn with two labels that are both found counts as confused twice. The
published cells can only have come from rows that are larger than the label counts, as these are.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Final, Literal

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.annotation.pairs import pairs
from cradle_lib.annotation.table import Annotations
from cradle_lib.errors import ScoringError
from cradle_lib.labels import LABELS, NONE, UNUSABLE, crisis_type, stage, temporal
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.scoring.counts import Masks
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.rates import ratio

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

CELLS: Final = (*LABELS, NONE)
NONE_CELL: Final = len(LABELS)
Pairing = Literal["one-to-one", "all"]


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
    """Pairs the labels of one turn's two masks as the module describes.

    Gives pairs (gold, predicted) of positions in :data:`CELLS`: for each gold label in order one,
    then one for each prediction that is left over. Two empty masks give one pair of ``none`` and
    ``none``.
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
    answered = [(i, partners.get(i, i)) for i in range(len(LABELS)) if gold & 1 << i]
    taken = {column for _, column in answered}
    extra = [(NONE_CELL, i) for i in range(len(LABELS)) if spare & 1 << i and i not in taken]
    return tuple(answered + extra) or ((NONE_CELL, NONE_CELL),)


def confusion(
    gold: Masks, predicted: Masks, *, pairing: Pairing = "one-to-one"
) -> NDArray[np.int64]:
    """Counts which label was predicted for which, over two masks for each turn.

    Rows are gold, columns predicted, both in the order of :data:`CELLS`. Shape
    (17, 17). Two shapes that differ are refused.
    """
    if gold.shape != predicted.shape:
        raise ScoringError(
            f"{gold.shape} gold masks and {predicted.shape} predicted ones. "
            "There must be one of each per turn."
        )
    if pairing == "all":
        return _members(gold).T @ _members(predicted)
    matrix = np.zeros((len(CELLS), len(CELLS)), dtype=np.int64)
    turns, times = np.unique((gold.astype(np.uint32) << 16) | predicted, return_counts=True)
    for turn, number in zip(turns.tolist(), times, strict=True):
        for cell in pair(turn >> 16, turn & 0xFFFF):
            matrix[cell] += number
    return matrix


def _members(masks: Masks) -> NDArray[np.int64]:
    """Says which of :data:`CELLS` each turn has. Shape (T, 17)."""
    labels = (masks[:, None] >> np.arange(len(LABELS))) & 1
    return np.column_stack([labels, masks == 0]).astype(np.int64)


def confusion_frame(predictions: Predictions, *, pairing: Pairing = "one-to-one") -> pd.DataFrame:
    """Counts a run's pairs of gold label and predicted label, as a tidy data frame.

    Args:
        predictions: The run.
        pairing: Which labels of a turn meet: ``one-to-one``, or ``all`` with all.

    Returns:
        One row for each cell of the matrix, row by row, those that never occur included. If the run
        has unusable answers, their turns are a last column, ``unusable answer``: each of their gold
        labels counts once, and each turn without gold labels once as ``none``.

        - ``system`` (str): the model's name; ``over`` (str): over which dialogues, as a heading.
        - ``gold`` (categorical): a name of :data:`CELLS`; ``tagged`` (categorical, or text if the
          run has unusable answers): one of these, or ``unusable answer``.
        - ``pairing`` (str): as given. ``outcome`` (str): ``ok`` or ``unusable``; missing if all
          answers of the run are usable.
        - ``count`` (int): how often the tag answers the gold label; ``support`` (int): the sum of
          the gold label's row.
        - ``value`` (float): their quotient, a share; NaN where the row is empty.

        ``attrs["signature"]`` is what the run was measured under.
    """
    gold, usable = predictions.corpus.gold, predictions.ok
    matrix = confusion(gold[usable], predictions.masks[usable], pairing=pairing)
    columns = CELLS
    if not usable.all():
        unusable = _members(gold[~usable]).sum(axis=0)
        matrix, columns = np.column_stack([matrix, unusable]), (*CELLS, UNUSABLE)
    frame = _cells(matrix, "gold", "tagged", columns)
    frame.insert(0, "system", predictions.record.name)
    frame.insert(1, "over", predictions.over)
    frame.insert(4, "pairing", pairing)
    frame.insert(5, "outcome", None)
    if not usable.all():
        # Text, since columns of other categories than gold's can't be compared with it.
        frame["tagged"] = frame["tagged"].astype(str)
        frame["outcome"] = np.where(frame["tagged"] == UNUSABLE, "unusable", "ok")
    support = frame.groupby("gold", observed=True)["count"].transform("sum")
    frame["support"] = support
    frame["value"] = ratio(frame["count"].to_numpy(), support.to_numpy())
    return signed(frame, signature_of(predictions, Conventions()))


def annotator_confusion(annotations: Annotations) -> pd.DataFrame:
    """Counts the pairs of labels that two annotators gave to the same turns.

    Args:
        annotations: Those of all annotators; adjudicators and the senior are left out.

    Returns:
        One row for each two annotators who share dialogues and each two labels, those that never
        meet included.

        - ``first``, ``second`` (str): the annotators; ``dialogues`` (int): how many they share.
        - ``one``, ``other`` (categorical): what the first and what the second gave, a name of
          :data:`CELLS`.
        - ``count`` (int): how often the two meet, over all user turns; a label on another row is a
          slip (:func:`.protocol_warnings`). Turns that both left without a label are not counted:
          they are nearly all turns.

    Raises:
        CorpusError: If a dialogue does not have two annotators, or there are none.
    """
    frames = []
    for two in pairs(annotations):
        one, other = np.concatenate(two.masks, axis=1)[:, np.concatenate(two.asked)]
        frame = _cells(confusion(one, other), "one", "other")
        frame.loc[(frame["one"] == NONE) & (frame["other"] == NONE), "count"] = 0
        frame.insert(0, "first", two.first)
        frame.insert(1, "second", two.second)
        frame.insert(2, "dialogues", len(two.dialogues))
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def _cells(
    matrix: NDArray[np.int64], rows: str, columns: str, predicted: Sequence[str] = CELLS
) -> pd.DataFrame:
    """Lists the cells of a confusion matrix, row by row; ``predicted`` names its columns."""
    return pd.DataFrame(
        {
            rows: pd.Categorical(np.repeat(CELLS, len(predicted)), CELLS),
            columns: pd.Categorical(np.tile(predicted, len(CELLS)), list(predicted)),
            "count": matrix.ravel(),
        }
    )
