"""Simulates how often 95 % intervals contain the true F1: ``python -m tools.interval_coverage``.

A label is gold in a few of 600 dialogues. 40 % of its gold labels are found, and false positives
are as frequent as false negatives, so that the true F1 is 0.4. The table in ``data/simulations``
has the share of simulated samples whose interval contains 0.4.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib import paths
from cradle_lib.files import replacing
from cradle_lib.statistics.proportions import wilson_f1
from cradle_lib.statistics.rates import Floats, ratio

FILE: Final = paths.DATA / "simulations" / "interval-coverage.csv"
TRIALS: Final = 5_000
DRAWS: Final = 400
SEED: Final = 0
_DIALOGUES: Final = 600
_F1: Final = 0.4
# Share of the occurrences (gold labels and false positives) that are true positives.
_JACCARD: Final = _F1 / (2 - _F1)
# Expected gold labels; occurrences per dialogue that has any; intraclass correlation.
_CASES: Final = (
    (4, 1, 0.0),
    (8, 1, 0.0),
    (16, 1, 0.0),
    (32, 1, 0.0),
    (64, 1, 0.0),
    (24, 3, 0.5),
)


def simulate(*, trials: int = TRIALS, draws: int = DRAWS, seed: int = SEED) -> pd.DataFrame:
    """Simulates the coverage of Wilson's interval and of the percentile bootstrap.

    Returns:
        One row for each case and method: ``gold`` (gold labels expected), ``per_dialogue``
        (occurrences in each dialogue that has any), ``correlation`` (intraclass correlation of
        correctness), ``method``, ``value`` (share of the samples whose interval contains the true
        F1; an interval of zero width contains nothing) and ``width`` (the median width).
    """
    generator = np.random.default_rng(seed)
    rows = []
    for gold, per_dialogue, correlation in _CASES:
        samples = [
            _sample(gold, per_dialogue, correlation, draws, generator) for _ in range(trials)
        ]
        for place, method in enumerate(("percentile", "wilson")):
            low, high = np.array([sample[place] for sample in samples]).T
            contained = (low < high) & (low <= _F1) & (high >= _F1)
            case = (gold, per_dialogue, correlation, method)
            rows.append((*case, contained.mean(), np.nanmedian(high - low)))
    names = ["gold", "per_dialogue", "correlation", "method", "value", "width"]
    return pd.DataFrame(rows, columns=names)


def _sample(
    gold: int, per_dialogue: int, correlation: float, draws: int, generator: np.random.Generator
) -> tuple[tuple[float, float], tuple[float, float]]:
    """Draws one sample and returns its percentile interval and its Wilson interval."""
    # Gold labels, plus as many false positives as false negatives.
    occurrences = gold * (2 - _F1)
    size = generator.binomial(_DIALOGUES, occurrences / per_dialogue / _DIALOGUES)
    chance: Any = _JACCARD
    if correlation:
        scale = (1 - correlation) / correlation
        chance = generator.beta(_JACCARD * scale, (1 - _JACCARD) * scale, size=size)
    tp = generator.binomial(per_dialogue, chance, size=size)
    low, high = wilson_f1(tp, per_dialogue - tp)
    # Dialogues with equal true positives are interchangeable; the last kind has no occurrence.
    kinds = np.bincount(tp, minlength=per_dialogue + 1)
    shares = np.append(kinds, _DIALOGUES - size) / _DIALOGUES
    drawn = generator.multinomial(_DIALOGUES, shares, size=draws)[:, :-1]
    percentile = np.quantile(_f1(drawn, per_dialogue), [0.025, 0.975])
    return (float(percentile[0]), float(percentile[1])), (float(low), float(high))


def _f1(drawn: NDArray[np.int64], per_dialogue: int) -> Floats:
    """Computes F1 from the numbers of dialogues with 0, 1, ... true positives."""
    tp = drawn @ np.arange(per_dialogue + 1)
    errors = per_dialogue * drawn.sum(axis=1) - tp
    both = 2 * tp + errors
    return ratio(2.0 * tp, both.astype(np.float64), 0.0)


def write(path: Path = FILE) -> None:
    """Writes the shipped table."""
    table = simulate()
    with replacing(path) as part:
        table.to_csv(part, index=False, float_format="%.4f", lineterminator="\n")


if __name__ == "__main__":
    write()
