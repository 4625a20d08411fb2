"""Speed of scoring twelve systems: scores, timing, comparison, sensitivity and paired tests.

Run with ``python -m benchmarks.bench_comparison``. The systems and the 600 dialogues are random,
with the label frequencies of the test split. The targets are wall-clock times on two cores, one of
them idle. Processor times are printed as well, for busy machines.
"""

from __future__ import annotations

import os

# One thread. Must be set before numpy is imported.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

from benchmarks.bench_scoring import made_up
from benchmarks.size import SMALL, sized
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection.runs.predictions import Predictions
from cradle_lib.record import Record
from cradle_lib.scoring.analyses.sensitivity import sensitivity
from cradle_lib.scoring.analyses.timing import timing
from cradle_lib.scoring.compare import compare
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.paired_tests import paired_tests

SYSTEMS = sized(12, 3)
DIALOGUES = sized(600, 12)
TURNS = sized(4527, 90)
DRAWS = sized(10_000, 50)


class Time(NamedTuple):
    """Wall-clock seconds and processor seconds."""

    clock: float
    processor: float


@dataclass(frozen=True)
class Line:
    """One line of the table: the measured action, its time, and the target in seconds."""

    what: str
    time: Time
    target: float

    @property
    def met(self) -> bool:
        """Whether the wall-clock time is below the target."""
        return self.time.clock < self.target


def runs() -> list[Predictions]:
    """Makes systems over the same dialogues, each slightly better than the one before."""
    data = made_up(TURNS, DIALOGUES)
    starts = np.searchsorted(data.dialogue_of, np.arange(DIALOGUES + 1)).tolist()
    masks = data.gold.tolist()
    built = tuple(
        Dialogue(
            index,
            tuple(Turn(row, row - first, "User", "", masks[row]) for row in range(first, end)),
        )
        for index, (first, end) in enumerate(pairwise(starts))
    )
    corpus = Corpus("made-up", built)
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
        predicted = found | np.where(generator.random(TURNS) < 0.5, tags.predicted, np.uint16(0))
        made.append(
            Predictions(
                record=record.model_copy(update={"name": f"System {number}"}),
                corpus=corpus,
                masks=predicted.astype(np.uint16),
                outcomes=np.zeros(TURNS, dtype=np.uint8),
                answers=("",) * TURNS,
                of_turns=TURNS,
            )
        )
    return made


def full_comparison(systems: Sequence[Predictions]) -> None:
    """Computes scores, timing, comparisons and sensitivity of all systems, with intervals."""
    for system in systems:
        evaluate(system, draws=DRAWS)
        timing(system, draws=DRAWS)
    compare(systems, permutations=DRAWS)
    sensitivity(systems)


def pairs(systems: Sequence[Predictions]) -> None:
    """Tests all other systems against the first at three levels: micro, macro and label F1."""
    for level in LEVELS:
        counts = [evaluate(system, level=level, draws=0).counts for system in systems]
        for other in counts[1:]:
            paired_tests(counts[0], other, permutations=DRAWS)


def seconds(action: Callable[[], object]) -> Time:
    """Measures the time of an action."""
    clock, processor = perf_counter(), process_time()
    action()
    return Time(perf_counter() - clock, process_time() - processor)


def main() -> bool:
    """Measures and prints one table.

    Returns:
        Whether all targets were met.
    """
    systems = runs()
    what = f"{SYSTEMS} systems, {DIALOGUES} dialogues, {DRAWS:,} draws"
    tests = f"tests of {SYSTEMS - 1} pairs in 3 settings, {DRAWS:,} swaps"
    lines = [
        Line(f"full comparison: {what}", seconds(lambda: full_comparison(systems)), 10),
        Line(tests, seconds(lambda: pairs(systems)), 10),
    ]
    for line in lines:
        verdict = "yes" if line.met else "NO"
        print(
            f"{line.what:<62} {line.time.clock:6.2f} s "
            f"({line.time.processor:.2f} s of processor time)   under {line.target:g} s: {verdict}"
        )
    return SMALL or all(line.met for line in lines)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
