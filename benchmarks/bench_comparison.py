"""Everything beyond a single score: comparison, timing, alarms, errors, cohorts, reports.

Run with ``python -m benchmarks.bench_comparison``. Twelve made-up systems over 600 made-up
dialogues with the label frequencies of the test split. The targets are times on two cores; the
last lines check that time grows in proportion to the number of dialogues.
"""

from __future__ import annotations

import os

# Before numpy is loaded: one thread each way, so that the second core stays free.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from time import perf_counter

import numpy as np

from benchmarks.bench_scoring import made_up
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection.predictions import Predictions
from cradle_lib.record import Record
from cradle_lib.scoring.comparison import compare
from cradle_lib.scoring.conventions import LEVELS, Rows
from cradle_lib.scoring.counts import count
from cradle_lib.scoring.early import ERDE_TURNS, penalty_rate
from cradle_lib.scoring.paired import compare_pairs
from cradle_lib.scoring.report import report
from cradle_lib.scoring.sensitivity import sensitivity
from cradle_lib.scoring.signature import Signature
from cradle_lib.scoring.timing import TimingSignature, time_rows
from cradle_lib.scoring.windows import WIDTHS

SYSTEMS = 12
DIALOGUES = 600
TURNS = 4527
DRAWS = 10_000
MANY = 100_000


@dataclass(frozen=True)
class Line:
    """One line of the table: what was measured, and the target it was measured against."""

    what: str
    seconds: float
    target: float

    @property
    def met(self) -> bool:
        """Whether it was fast enough."""
        return self.seconds < self.target


def runs() -> list[Predictions]:
    """Makes twelve systems over the same dialogues, each a little better than the last."""
    data = made_up(TURNS, DIALOGUES)
    starts = np.searchsorted(data.dialogue_of, np.arange(DIALOGUES + 1)).tolist()
    masks = data.gold.tolist()
    dialogues = tuple(
        Dialogue(
            index,
            tuple(Turn(row, row - first, "User", "", masks[row]) for row in range(first, end)),
        )
        for index, (first, end) in enumerate(pairwise(starts))
    )
    corpus = Corpus("made-up", dialogues)
    record = Record.create(
        model="made-up",
        name="Made up",
        group="baseline",
        engine="none",
        prompt="none",
        prompt_hash="none",
        decoding={},
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )
    made = []
    for number in range(SYSTEMS):
        tags = made_up(TURNS, DIALOGUES, seed=1 + number)
        generator = np.random.default_rng(number)
        found = np.where(generator.random(TURNS) < 0.45 + number / 100, data.gold, np.uint16(0))
        tagged = found | np.where(generator.random(TURNS) < 0.5, tags.predicted, np.uint16(0))
        made.append(
            Predictions(
                record=record.model_copy(update={"name": f"System {number}"}),
                corpus=corpus,
                masks=tagged.astype(np.uint16),
                outcomes=np.zeros(TURNS, dtype=np.uint8),
                answers=("",) * TURNS,
                of_turns=TURNS,
            )
        )
    return made


def everything(systems: Sequence[Predictions]) -> None:
    """Reports, comparisons and sensitivity for all systems, with intervals on everything."""
    for system in systems:
        report(system, draws=DRAWS)
    compare(systems, draws=DRAWS, permutations=DRAWS)
    sensitivity(systems)


def pairs(systems: Sequence[Predictions]) -> None:
    """All 66 pairs in three settings, micro, macro and label F1."""
    for level in LEVELS:
        counts = [
            count(s.corpus.gold, s.masks, s.corpus.dialogue_of, DIALOGUES, level=level)
            for s in systems
        ]
        compare_pairs(counts, draws=0, permutations=DRAWS)


def timing_of(dialogues: int) -> Callable[[], object]:
    """Prepares the timing metrics of a corpus of this size, without intervals."""
    turns = dialogues * TURNS // DIALOGUES
    data = made_up(turns, dialogues)
    rows = Rows(data.gold, data.predicted, data.dialogue_of, np.ones(turns, dtype=np.bool_))
    scored = Signature(
        "turn", 16, "self", 1, 0, "ignore", "miss", "made-up", dialogues, 0, 0, "bench"
    )
    rate = penalty_rate(np.bincount(data.dialogue_of))
    signature = TimingSignature(scored, WIDTHS, ERDE_TURNS, rate)
    return lambda: time_rows(rows, dialogues, signature=replace(signature))


def seconds(action: Callable[[], object], times: int = 1) -> float:
    """Seconds of the fastest of several runs."""
    taken = []
    for _ in range(times):
        start = perf_counter()
        action()
        taken.append(perf_counter() - start)
    return min(taken)


def main() -> bool:
    """Runs everything and prints one table.

    Returns:
        Whether all targets were met.
    """
    systems = runs()
    what = f"{SYSTEMS} systems, {DIALOGUES} dialogues, {DRAWS:,} draws"
    lines = [
        Line(f"everything: {what}", seconds(lambda: everything(systems)), 10),
        Line(
            f"tests of 66 pairs in 3 settings, {DRAWS:,} swaps", seconds(lambda: pairs(systems)), 10
        ),
    ]
    whole, tenth = (seconds(timing_of(size), 2) for size in (MANY, MANY // 10))
    lines.append(Line(f"timing of {MANY:,} dialogues", whole, 20))
    for line in lines:
        verdict = "yes" if line.met else "NO"
        print(f"{line.what:<62} {line.seconds:6.2f} s   under {line.target:g} s: {verdict}")
    growth = whole / tenth
    # Ten times the dialogues may take up to half as much again as ten times the time.
    linear = growth < 15
    print(f"{'timing, ten times the dialogues':<62} {growth:6.1f} times   linear: {linear}")
    return all(line.met for line in lines) and linear


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
