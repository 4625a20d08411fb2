"""Confusion matrices: which label was predicted for which (Figures 13 and 14 of the paper).

The pairing ``all`` pairs each gold label of a turn with each prediction on the turn, with ``none``
for an empty set. A row sums to more than its label's occurrences if a turn has several predictions,
and a turn with two labels that are both found counts as confused twice. It is the default, because
four of the cells that the paper states need rows with more entries than gold labels.

The pairing ``one-to-one`` pairs labels as :mod:`~cradle_lib.scoring.label_pairs` describes. Every
gold label is in exactly one cell, so a row sums to its label's occurrences. On the test split
nearly every labelled turn has a single label, so the two pairings differ where a system predicts
several labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, product
from typing import Literal

import numpy as np
import pandas as pd

from cradle_lib.annotation.pairs import pairs
from cradle_lib.annotation.table import Annotations
from cradle_lib.arguments import checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.labels import NONE, UNUSABLE, labels_of
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.label_pairs import CELLS, pair
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.rates import ratio

Pairing = Literal["one-to-one", "all"]


@checked
def confusion_frame(predictions: Predictions, *, pairing: Pairing = "all") -> pd.DataFrame:
    """Counts a run's pairs of gold label and predicted label, as a tidy data frame.

    Args:
        predictions: The run.
        pairing: How the labels of a turn are paired: ``all`` or ``one-to-one`` (see the module).

    Returns:
        One row for each cell of the matrix, row by row, also for cells with no occurrence. If the
        run has unusable answers, their turns are a last column, ``unusable answer``: each of their
        gold labels counts once, and each turn without gold labels once as ``none``.

        - ``system`` (str): the model's name; ``coverage`` (str): its dialogues, as a heading.
        - ``gold`` (categorical): a label or ``none``; ``predicted`` (categorical, or text if the
          run has unusable answers): one of these, or ``unusable answer``.
        - ``pairing`` (str): as given. ``outcome`` (str): ``ok`` or ``unusable``; missing if all
          answers of the run are usable.
        - ``count`` (int): number of pairs; ``support`` (int): the sum of the gold label's row.
        - ``value`` (float): ``count`` divided by ``support``; NaN if the row is empty.

        ``attrs["signature"]`` states the scoring settings.
    """
    predictions = predictions.labelled
    all_usable = bool(predictions.ok.all())
    columns = CELLS if all_usable else (*CELLS, UNUSABLE)
    frame = pair_counts(_pairs_of(predictions, pairing), gold=CELLS, predicted=columns)
    frame.insert(0, "system", predictions.record.name)
    frame.insert(1, "coverage", predictions.coverage)
    frame.insert(4, "pairing", pairing)
    frame.insert(5, "outcome", None)
    if not all_usable:
        # Text, because pandas can't compare categorical columns with different categories.
        frame["predicted"] = frame["predicted"].astype(str)
        frame["outcome"] = np.where(frame["predicted"] == UNUSABLE, "unusable", "ok")
    support = frame.groupby("gold", observed=True)["count"].transform("sum")
    frame["support"] = support
    frame["value"] = ratio(frame["count"].to_numpy(), support.to_numpy())
    return signed(frame, signature_of(predictions))


def _pairs_of(run: Predictions, pairing: Pairing) -> Iterator[tuple[str, str]]:
    turns = zip(run.corpus.gold.tolist(), run.masks.tolist(), run.ok.tolist(), strict=True)
    for gold, predicted, usable in turns:
        if usable and pairing == "one-to-one":
            yield from pair(gold, predicted)
        else:
            names = labels_of(predicted) or (NONE,)
            yield from product(labels_of(gold) or (NONE,), names if usable else (UNUSABLE,))


@checked
def annotator_confusion(annotations: Annotations) -> pd.DataFrame:
    """Counts the pairs of labels that two annotators gave to the same turns.

    Args:
        annotations: The labels of all annotators; adjudicators and the senior are left out.

    Returns:
        One row for each pair of annotators who share dialogues and each pair of labels, also for
        pairs that never occur.

        - ``first``, ``second`` (str): the annotators; ``dialogues`` (int): how many they share.
        - ``one``, ``other`` (categorical): the label of the first and that of the second, or
          ``none``.
        - ``count`` (int): how often the pair occurs, over all user turns
          (:func:`.protocol_warnings` lists labels on other rows). Turns that neither labelled are
          not counted.

    Raises:
        CorpusError: If a dialogue does not have two annotators, or there are none.
    """
    frames = []
    for two in pairs(annotations):
        one, other = np.concatenate(two.masks, axis=1)[:, np.concatenate(two.asked)].tolist()
        met = chain.from_iterable(map(pair, one, other))
        given = (two_labels for two_labels in met if two_labels != (NONE, NONE))
        frame = pair_counts(given, one=CELLS, other=CELLS)
        frame.insert(0, "first", two.first)
        frame.insert(1, "second", two.second)
        frame.insert(2, "dialogues", len(two.dialogues))
        frames.append(frame)
    return pd.concat(frames, ignore_index=True)


def pair_counts(pairs: Iterable[tuple[str, str]], **sides: Sequence[str]) -> pd.DataFrame:
    """Counts pairs of names, for every cell of a matrix, row by row.

    ``sides`` gives the two column names, each with all its possible values. The frame has these two
    columns (categorical) and ``count`` (int).
    """
    frame = pd.DataFrame(pairs, columns=[*sides])
    for side, names in sides.items():
        frame[side] = pd.Categorical(frame[side], [*names])
    return frame.groupby([*sides], observed=False).size().rename("count").reset_index()
