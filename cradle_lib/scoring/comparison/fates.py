"""What became of the gold labels before and after a change, with paired intervals.

A gold label is *found* if it was tagged as it is, *missed* if no tag answers it, *swapped* if it
was tagged as the same label of the other temporal state, and *taken* for another label otherwise.
The four shares of a label add up to 1 (CRADLE-Dialogue, arXiv 2606.10380, Appendix D.3).
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.labels import LABELS, stage
from cradle_lib.scoring.comparison.difference import require_comparable
from cradle_lib.scoring.core.conventions import Conventions
from cradle_lib.scoring.core.evaluate import signature_of
from cradle_lib.scoring.core.signature import shared
from cradle_lib.scoring.errors.confusion import NONE_CELL, confusion, similarity
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.rates import Floats, ratio

if TYPE_CHECKING:
    from cradle_lib.detection.journals.predictions import Predictions

FATES: Final = ("found", "missed", "swapped", "taken")
_SUMS: Final = {"all labels": "", "alerts": "alert", "confirms": "confirm"}
# The same crisis type and stage, and the other temporal state.
_SWAPPED: Final = 6


def label_fates(
    before: Predictions, after: Predictions, *, draws: int = DRAWS, seed: int = 0
) -> pd.DataFrame:
    """Compares what became of the gold labels in two runs.

    Args:
        before: One run.
        after: Another one over the same dialogues.
        draws: Bootstrap draws of dialogues, the same for both runs; 0 for no intervals.
        seed: Their seed.

    Returns:
        One row for each label, and for all labels, alerts and confirms, and each of
        :data:`FATES`.

        - ``gold`` (str): the label, or a name of several; ``support`` (int): how often it is gold.
        - ``fate`` (categorical): one of :data:`FATES`.
        - ``before``, ``after`` (float): shares of the gold labels; NaN without any.
        - ``value``, ``low``, ``high`` (float): ``after`` minus ``before`` with its 95 % interval,
          -1 to 1.

        ``attrs["signature"]`` is what both were measured under.

    Raises:
        ScoringError: If the two can't be compared.
    """
    runs = (before, after)
    signatures = [signature_of(run, Conventions(), draws=draws, seed=seed) for run in runs]
    require_comparable([run.record.name for run in runs], signatures)
    rows = np.stack([_rows(run) for run in runs], axis=1)
    shares = _shares(rows.sum(axis=0, dtype=np.float64))
    change = bootstrap(
        rows,
        lambda t: {"share": np.diff(_shares(t), axis=-3)[..., 0, :, :]},
        draws=draws,
        seed=seed,
    )["share"]
    frame = change.to_frame(gold=[*_SUMS, *LABELS], fate=FATES)
    support = rows[:, 0].sum(axis=(0, 2))
    counts = [int(count) for count in (*_summed(support), *support)]
    frame.insert(1, "support", [count for count in counts for _ in FATES])
    for place, name in enumerate(("before", "after")):
        frame.insert(3 + place, name, list(shares[place].flat))
    frame["fate"] = pd.Categorical(frame["fate"], FATES)
    frame.attrs["signature"] = str(shared(signatures))
    return frame


def _rows(run: Predictions) -> NDArray[np.int64]:
    """Counts the fates in each dialogue. Shape (dialogues, 16, 4)."""
    bounds = np.searchsorted(run.corpus.dialogue_of, np.arange(len(run.corpus) + 1))
    rows = np.zeros((len(run.corpus), len(LABELS), len(FATES)), dtype=np.int64)
    for place, (start, end) in enumerate(pairwise(bounds)):
        gold = run.corpus.gold[start:end]
        if gold.any():
            matrix = confusion(gold, run.masks[start:end])[:NONE_CELL]
            rows[place] = np.stack([(matrix * kind).sum(axis=1) for kind in _KINDS], axis=1)
    return rows


def _shares(totals: Floats) -> Floats:
    """Divides fates by the number of gold labels. Shapes (..., 16, 4) and (..., 19, 4)."""
    every = np.concatenate([np.stack(_summed(totals, axis=-2), axis=-2), totals], axis=-2)
    return ratio(every, every.sum(axis=-1, keepdims=True))


def _summed(counts: NDArray[np.generic], axis: int = 0) -> list[NDArray[np.generic]]:
    """Sums over the labels of each heading."""
    chosen = ([name in ("", stage(label)) for label in LABELS] for name in _SUMS.values())
    return [np.compress(some, counts, axis=axis).sum(axis=axis) for some in chosen]


def _kinds() -> NDArray[np.int64]:
    """Says of each cell of the matrix which fate it is. Shape (4, 16, 17)."""
    fates = np.full((len(LABELS), NONE_CELL + 1), FATES.index("taken"))
    for row, gold in enumerate(LABELS):
        for column, tagged in enumerate(LABELS):
            if gold == tagged:
                fates[row, column] = FATES.index("found")
            elif similarity(gold, tagged) == _SWAPPED:
                fates[row, column] = FATES.index("swapped")
    fates[:, NONE_CELL] = FATES.index("missed")
    return np.stack([fates == fate for fate in range(len(FATES))]).astype(np.int64)


_KINDS: Final = _kinds()
