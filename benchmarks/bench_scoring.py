"""Compares the speed of scoring with scikit-learn: scores and bootstrap.

Run with ``python -m benchmarks.bench_scoring``. The data are random, with the sizes and label
frequencies of the test split. Equality of the results is checked before anything is timed. Both
run on one thread, one after the other.

scikit-learn takes the labels of a turn as a row of a 0-1 matrix. Converting our 16-bit masks to
these matrices is not counted in its time.
"""

from __future__ import annotations

import os

# One thread. Must be set before numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from collections.abc import Callable
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.metrics import accuracy_score, jaccard_score, precision_recall_fscore_support

from benchmarks.size import SMALL, sized
from cradle_lib.labels import BITS
from cradle_lib.published import published_label_counts
from cradle_lib.scoring.conventions import Rows
from cradle_lib.scoring.counts import count
from cradle_lib.scoring.scores import OVERALL, PER_LABEL, Scores, scores
from cradle_lib.statistics.bootstrap import bootstrap
from cradle_lib.statistics.weighted_sums import draw_blocks, draw_weights

TURNS = sized(4527, 90)
DRAWS = sized(10_000, 50)
LOOPED = sized(20, 2)
DIALOGUES = sized(600, 12)


@dataclass(frozen=True)
class Masks:
    """Gold and predicted masks of random turns, and the dialogue of each turn."""

    gold: NDArray[np.uint16]
    predicted: NDArray[np.uint16]
    dialogue_of: NDArray[np.int64]
    dialogues: int


@dataclass(frozen=True)
class Line:
    """One line of the table, as text."""

    what: str
    ours: str
    theirs: str
    result: str
    target: str
    met: bool


def made_up(turns: int, dialogues: int, seed: int = 0) -> Masks:
    """Draws turns with the label frequencies of the test split, and predictions for them.

    Args:
        turns: Number of user turns.
        dialogues: Number of dialogues.
        seed: Seed of the generator.

    Returns:
        The masks. About 703 of 4,527 turns have a label. The predictions find 55 % of them,
        and add a random label to 8 % of all turns.
    """
    generator = np.random.default_rng(seed)
    counts = published_label_counts()
    bits = np.array([BITS[label] for label in counts], dtype=np.uint16)
    share = np.array(list(counts.values())) / sum(counts.values())

    def some(rate: float) -> NDArray[np.uint16]:
        masks = np.zeros(turns, dtype=np.uint16)
        chosen = np.flatnonzero(generator.random(turns, dtype=np.float32) < rate)
        masks[chosen] = generator.choice(bits, size=len(chosen), p=share)
        return masks

    gold = some(0.15) | some(0.005)
    predicted = np.where(generator.random(turns, dtype=np.float32) < 0.55, gold, np.uint16(0))
    predicted |= some(0.08)
    dialogue_of = np.arange(turns) * dialogues // turns
    return Masks(gold, predicted, dialogue_of, dialogues)


def rows_of(data: Masks) -> Rows:
    """Converts masks to rows to count; every answer is readable."""
    readable = np.ones(len(data.gold), dtype=np.bool_)
    return Rows(data.gold, data.predicted, data.dialogue_of, readable)


def ours(data: Masks) -> Scores:
    """Computes all turn-level scores, from masks."""
    counts = count(rows_of(data), data.dialogues)
    return scores(counts.total)


def theirs(truth: Any, guess: Any) -> dict[str, Any]:
    """Computes the same scores with scikit-learn, from 0-1 matrices of shape (turns, 16)."""
    found: dict[str, Any] = {
        "exact_match": accuracy_score(truth, guess),
        "jaccard": jaccard_score(truth, guess, average="samples", zero_division=1.0),
    }
    for average in ("micro", "macro", None):
        rates = precision_recall_fscore_support(truth, guess, average=average, zero_division=0.0)
        for name, value in zip(PER_LABEL, rates[:3], strict=True):
            found[f"{average}_{name}" if average else name] = value
    return found


def require_equal(mine: Scores, other: dict[str, Any]) -> None:
    """Stops the benchmark if the two results differ.

    Raises:
        AssertionError: If any score differs by more than 1e-10.
    """
    for name in (*OVERALL, *PER_LABEL):
        np.testing.assert_allclose(getattr(mine, name), other[name], atol=1e-10, err_msg=name)


def indicators(masks: NDArray[np.uint16]) -> NDArray[np.int8]:
    """Converts masks to scikit-learn's 0-1 matrix of shape (turns, 16)."""
    return ((masks[:, None] >> np.arange(16, dtype=np.uint16)) & 1).astype(np.int8)


def best(action: Callable[[], object], times: int) -> float:
    """Measures the fastest of several runs, in seconds."""
    seconds = []
    for _ in range(times):
        start = perf_counter()
        action()
        seconds.append(perf_counter() - start)
    return min(seconds)


def bench_scores(data: Masks) -> Line:
    """Times the scores of a test split."""
    truth, guess = indicators(data.gold), indicators(data.predicted)
    require_equal(ours(data), theirs(truth, guess))
    mine, other = best(lambda: ours(data), 5), best(lambda: theirs(truth, guess), 5)
    return compared(f"score {TURNS:,} user turns", mine, other, None)


def bench_bootstrap(data: Masks) -> Line:
    """Times bootstrap intervals: ten thousand draws over 600 dialogues."""
    counts = count(rows_of(data), DIALOGUES)
    rows = [np.flatnonzero(data.dialogue_of == d) for d in range(DIALOGUES)]
    taken = draw_weights(np.random.default_rng(0), LOOPED, DIALOGUES)
    truth, guess = indicators(data.gold), indicators(data.predicted)

    def loop() -> list[dict[str, Any]]:
        found = []
        for draw in taken:
            drawn = np.concatenate([rows[d] for d in np.repeat(np.arange(DIALOGUES), draw)])
            found.append(theirs(truth[drawn], guess[drawn]))
        return found

    drawn = scores(next(draw_blocks(counts.rows, LOOPED, 0)))
    for draw, other in enumerate(loop()):
        require_equal(Scores(*(values[draw] for values in drawn)), other)
    mine = best(
        lambda: bootstrap(counts.rows, lambda t: scores(t)._asdict(), draws=DRAWS, seed=0), 3
    )
    what = f"{DRAWS:,} draws of {DIALOGUES} dialogues"
    return compared(what, mine, best(loop, 2), 500, DRAWS / LOOPED)


def compared(what: str, mine: float, other: float, target: int | None, scale: float = 1.0) -> Line:
    """Formats the comparison of two times.

    Args:
        what: The measured action.
        mine: Seconds of cradle_lib.
        other: Seconds of scikit-learn, for the measured part of its work.
        target: Minimum speedup; ``None`` for no target.
        scale: scikit-learn's whole work divided by the measured part.
    """
    ratio = other * scale / mine
    loop = f" (measured {1 / scale:.1%})" if scale != 1 else ""
    return Line(
        what,
        f"{1000 * mine:,.1f} ms",
        f"{other * scale:,.2f} s{loop}",
        f"{ratio:,.1f} times faster",
        f"at least {target} times" if target else "none",
        target is None or ratio >= target,
    )


def main() -> bool:
    """Measures and prints one table.

    Returns:
        Whether all targets were met.
    """
    data = made_up(TURNS, DIALOGUES)
    lines = [bench_scores(data), bench_bootstrap(data)]
    table = [("scoring", "cradle_lib", "scikit-learn", "result", "target", "met")]
    table += [
        (line.what, line.ours, line.theirs, line.result, line.target, "yes" if line.met else "NO")
        for line in lines
    ]
    widths = [max(len(row[column]) for row in table) for column in range(len(table[0]))]
    for row in table:
        print("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    return SMALL or all(line.met for line in lines)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
