"""Compares how two runs predict the gold labels, with paired intervals.

A gold label is *found* if it was predicted, *missed* if no prediction is paired with it, *swapped*
if its pair differs only in the temporal state, and *confused* with another label otherwise.
The four shares of a label add up to 1 (CRADLE-Dialogue, arXiv 2606.10380, Appendix D.3).
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.arguments import Seed, checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.labels import ALERT_MASK, ALL_MASK, BITS, CONFIRM_MASK, LABELS
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.label_pairs import KINDS, classify
from cradle_lib.scoring.signature import require_comparable, signed
from cradle_lib.statistics.bootstrap import DRAWS, bootstrap
from cradle_lib.statistics.occurrences import members
from cradle_lib.statistics.rates import Floats, ratio

RESULTS: Final = ("found", "missed", "swapped", "confused")
# The labels that are summed in each row.
_SUMS: Final = {"all labels": ALL_MASK, "alerts": ALERT_MASK, "confirms": CONFIRM_MASK, **BITS}
_MEMBERS: Final = members(_SUMS.values())


@checked
def label_changes(
    before: Predictions, after: Predictions, *, draws: int = DRAWS, seed: Seed = 0
) -> pd.DataFrame:
    """Compares the outcomes of the gold labels in two runs.

    Args:
        before: The run before a change, or any other one.
        after: The run after it, over the same dialogues.
        draws: Bootstrap draws of dialogues, the same for both runs; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each label, and for all labels, alerts and confirms, and each of
        :data:`RESULTS`.

        - ``gold`` (str): the label, or the name of a group; ``support`` (int): its gold
          occurrences.
        - ``result`` (categorical): one of :data:`RESULTS`.
        - ``before``, ``after`` (float): shares of the gold labels; NaN without any.
        - ``value``, ``low``, ``high`` (float): ``after`` minus ``before`` with its 95 % interval,
          -1 to 1.

        ``attrs["signature"]`` states the scoring settings.

    Raises:
        ScoringError: If the signatures of the runs differ.
    """
    runs = (before.labelled, after.labelled)
    signatures = [signature_of(run, draws=draws, seed=seed) for run in runs]
    signature = require_comparable([run.record.name for run in runs], signatures)
    rows = np.stack([_rows(run) for run in runs], axis=1)
    shares = _shares(rows.sum(axis=0, dtype=np.float64))
    change = bootstrap(
        rows,
        lambda t: {"share": np.diff(_shares(t), axis=-3)[..., 0, :, :]},
        draws=draws,
        seed=seed,
    )["share"]
    frame = change.to_frame(gold=[*_SUMS], result=RESULTS)
    support = _MEMBERS @ rows[:, 0].sum(axis=(0, 2))
    frame.insert(1, "support", support.repeat(len(RESULTS)).tolist())
    for place, name in enumerate(("before", "after")):
        frame.insert(3 + place, name, list(shares[place].flat))
    frame["result"] = pd.Categorical(frame["result"], RESULTS)
    return signed(frame, signature)


def _rows(run: Predictions) -> NDArray[np.int64]:
    """Counts the results in each dialogue. Shape (dialogues, 16, 4)."""
    corpus = run.corpus
    pairs = classify(corpus.gold, run.masks, corpus.dialogue_of).query("gold != 'none'")
    kind = pairs["category"].astype(object).map(KINDS)
    conditions = [kind.isna(), kind == "false_negative", kind == "temporal"]
    results = np.select(conditions, [0, 1, 2], 3)
    rows = np.zeros((len(corpus), len(LABELS), len(RESULTS)), dtype=np.int64)
    np.add.at(rows, (corpus.dialogue_of[pairs["row"]], pairs["gold"].cat.codes, results), 1)
    return rows


def _shares(totals: Floats) -> Floats:
    """Divides results by the number of gold labels. Shapes (..., 16, 4) and (..., 19, 4)."""
    sums = _MEMBERS @ totals
    return ratio(sums, sums.sum(axis=-1, keepdims=True))
