"""Everything beyond a single score: comparison, timing, alarms, errors, cohorts.

Run with ``python -m benchmarks.bench_comparison``. Twelve made-up systems over 600 made-up
dialogues with the label frequencies of the test split. The targets are times by the clock on two
cores, one of which stays free; processor time stands beside them, for machines that are busy with
something else. The last lines check that processor time grows in proportion to the dialogues.
"""

from __future__ import annotations

import os

# Before numpy is loaded: one thread.
os.environ.setdefault("OMP_NUM_THREADS", "1")

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from time import perf_counter, process_time
from typing import NamedTuple

import numpy as np

from benchmarks.bench_scoring import made_up
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection.predictions import Predictions
from cradle_lib.record import Record
from cradle_lib.scoring.compare import compare
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.evaluate import evaluate
from cradle_lib.scoring.paired_tests import paired_tests
from cradle_lib.scoring.sensitivity import sensitivity
from cradle_lib.scoring.timing import timing

SYSTEMS = 12
DIALOGUES = 600
TURNS = 4527
DRAWS = 10_000
MANY = 100_000


class Time(NamedTuple):
    """Seconds by the clock, and seconds that the processor worked."""

    clock: float
    processor: float


@dataclass(frozen=True)
class Line:
    """One line of the table: what was measured, and the target it was measured against."""

    what: str
    time: Time
    target: float

    @property
    def met(self) -> bool:
        """Whether it was fast enough."""
        return self.time.clock < self.target


def runs(systems: int = SYSTEMS, dialogues: int = DIALOGUES) -> list[Predictions]:
    """Makes systems over the same dialogues, each a little better than the last."""
    turns = dialogues * TURNS // DIALOGUES
    data = made_up(turns, dialogues)
    starts = np.searchsorted(data.dialogue_of, np.arange(dialogues + 1)).tolist()
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
    for number in range(systems):
        tags = made_up(turns, dialogues, seed=1 + number)
        generator = np.random.default_rng(number)
        found = np.where(generator.random(turns) < 0.45 + number / 100, data.gold, np.uint16(0))
        predicted = found | np.where(generator.random(turns) < 0.5, tags.predicted, np.uint16(0))
        made.append(
            Predictions(
                record=record.model_copy(update={"name": f"System {number}"}),
                corpus=corpus,
                masks=predicted.astype(np.uint16),
                outcomes=np.zeros(turns, dtype=np.uint8),
                answers=("",) * turns,
                of_turns=turns,
            )
        )
    return made


def everything(systems: Sequence[Predictions]) -> None:
    """Scores, timing, comparisons and sensitivity of all systems, with intervals."""
    for system in systems:
        evaluate(system, draws=DRAWS)
        timing(system, draws=DRAWS)
    compare(systems, permutations=DRAWS)
    sensitivity(systems)


def pairs(systems: Sequence[Predictions]) -> None:
    """Eleven systems against the first in three settings: micro, macro and label F1."""
    for level in LEVELS:
        counts = [evaluate(system, level=level, draws=0).counts for system in systems]
        for other in counts[1:]:
            paired_tests(counts[0], other, permutations=DRAWS)


def timing_of(dialogues: int) -> Callable[[], object]:
    """Prepares the timing metrics of a corpus of this size, without intervals."""
    [system] = runs(1, dialogues)
    return lambda: timing(system, draws=0)


def seconds(action: Callable[[], object], times: int = 1) -> Time:
    """The fastest of several runs."""
    taken = []
    for _ in range(times):
        clock, processor = perf_counter(), process_time()
        action()
        taken.append(Time(perf_counter() - clock, process_time() - processor))
    return min(taken)


def grows(what: str, prepare: Callable[[int], Callable[[], object]], large: int) -> bool:
    """Prints how much longer ten times the dialogues take.

    Returns:
        Whether it is at most half as much again as ten times.
    """
    small = seconds(prepare(large // 10), 3).processor
    growth = seconds(prepare(large), 2).processor / small
    linear = growth < 15
    print(
        f"{f'{what}, {large // 10:,} to {large:,} dialogues':<62} {growth:6.1f} times the time",
        end="",
    )
    print(f"   at most linear: {'yes' if linear else 'NO'}")
    return linear


def main() -> bool:
    """Runs everything and prints one table.

    Returns:
        Whether all targets were met.
    """
    systems = runs()
    what = f"{SYSTEMS} systems, {DIALOGUES} dialogues, {DRAWS:,} draws"
    tests = f"tests of 11 pairs in 3 settings, {DRAWS:,} swaps"
    lines = [
        Line(f"everything: {what}", seconds(lambda: everything(systems)), 10),
        Line(tests, seconds(lambda: pairs(systems)), 10),
        Line(f"timing of {MANY:,} dialogues", seconds(timing_of(MANY)), 20),
    ]
    for line in lines:
        verdict = "yes" if line.met else "NO"
        print(
            f"{line.what:<62} {line.time.clock:6.2f} s ({line.time.processor:.2f} s of processor)"
            f"   under {line.target:g} s: {verdict}"
        )
    linear = [
        grows("timing", timing_of, MANY),
    ]
    return all(line.met for line in lines) and all(linear)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
