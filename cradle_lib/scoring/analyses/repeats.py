"""Measures the spread of a system's scores over runs with other training or sampling seeds.

An interval over dialogues measures how much a score would vary with other dialogues. It includes
randomness within each dialogue, such as sampled answers, but not randomness that all dialogues
share, such as the initial weights and the order of training data. The two variances add up.

References:
    Bouthillier et al., "Accounting for Variance in Machine Learning Benchmarks" (MLSys 2021);
    Miller, "Adding Error Bars to Evals" (arXiv 2411.00640), on clustered and repeated answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
import pandas as pd
from scipy.special import ndtri

from cradle_lib.arguments import Seed, checked
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.errors import ScoringError
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.bootstrap import CONFIDENCE, DRAWS

_COLUMNS: Final = (
    "system", "level", "runs", "dialogues", "value", "lowest", "highest", "sd", "margin",
    "margin_with_runs",
)  # fmt: skip


@checked
def run_spread(
    runs: Mapping[str, Sequence[Predictions]], *, draws: int = DRAWS, seed: Seed = 0
) -> pd.DataFrame:
    """Compares the spread of micro F1 between a system's runs with the interval over dialogues.

    Args:
        runs: The runs of each system, over the same dialogues.
        draws: Bootstrap draws of dialogues; 0 for no intervals.
        seed: Seed of the draws.

    Returns:
        One row for each system and level.

        - ``system``, ``level`` (str); ``runs``, ``dialogues`` (int): their numbers.
        - ``value``, ``lowest``, ``highest`` (float): mean, lowest and highest of the runs' scores.
        - ``sd`` (float): their standard deviation; NaN for a single run.
        - ``margin`` (float): half the width of the interval over dialogues, averaged over the runs.
        - ``margin_with_runs`` (float): the same with the variance between runs added; NaN for a
          single run. Too wide if answers are sampled for each dialogue, because ``margin`` already
          includes this variation.

        ``attrs["signature"]`` states the scoring settings, by level.

    Raises:
        ScoringError: If a system's runs are over different dialogues, or one has none.
    """
    rows, signatures = [], []
    for system, repeats in runs.items():
        if len({run.corpus.fingerprint for run in repeats}) != 1:
            raise ScoringError(
                f"{system}: its {len(repeats)} runs are not over the same dialogues. "
                "Run each over the same corpus or sample."
            )
        for level in LEVELS:
            found = [evaluate(run, level=level, draws=draws, seed=seed) for run in repeats]
            signatures += [each.signature for each in found]
            estimates = [each.estimate("micro_f1") for each in found]
            values = np.array([float(estimate.value) for estimate in estimates])
            widths = [float(estimate.high - estimate.low) for estimate in estimates]
            sd = float(values.std(ddof=1)) if len(values) > 1 else math.nan
            margin = float(np.mean(widths)) / 2
            between = float(ndtri((1 + CONFIDENCE) / 2)) * sd
            sizes = len(repeats), found[0].signature.dialogues
            scores = values.mean(), values.min(), values.max(), sd
            rows.append((system, level, *sizes, *scores, margin, math.hypot(margin, between)))
    return signed(pd.DataFrame(rows, columns=_COLUMNS), *signatures)
