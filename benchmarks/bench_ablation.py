"""What each mechanism of the wave engine is worth: the same run with it and without it.

Run with ``python -m benchmarks.bench_ablation``, perhaps with ``--dialogues``. Runs with and
without a mechanism take turns. One thread, and time of the processor instead of the clock, so that
a machine that others share disturbs little. A mechanism that does not bring at least 1.25 times on
some common machine is not worth its code. Results go to ``benchmarks/results/ablation.json``.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from benchmarks.apart import PROCESSORS, run_apart
from benchmarks.contestants import SAMPLE
from benchmarks.results import Row, keep

WORTH: Final = 1.25
ROUNDS: Final = 2
#: What is switched off, how answers are decoded, and the least ratio. Forcing may bring less: it is
#: four lines, and what is forced is no choice whose log-probability would have to be stored.
MECHANISMS: Final = {
    "waves": ("many dialogues in one forward pass", None, WORTH),
    "prefix": ("one copy of the static prefix", None, WORTH),
    "history": ("a dialogue's keys and values are kept", None, WORTH),
    "forcing": ("forced tokens of constrained answers cost no pass", "constrained", 1.0),
}


def row(mechanism: str, processor: str, dialogues: int) -> Row:
    """Measures one mechanism on one kind of processor."""
    title, mode, target = MECHANISMS[mechanism]
    runs = [
        run_apart(
            "wave",
            dialogues,
            mode=mode,
            without=without,
            threads=1,
            processor=processor,
        )
        for _ in range(ROUNDS)
        for without in (None, mechanism)
    ]
    used, unused = runs[::2], runs[1::2]
    with_it = min(run.processor_seconds for run in used)
    without_it = min(run.processor_seconds for run in unused)
    both = used[0].answers.keys() & unused[0].answers.keys()
    return Row(
        f"{title}; processor: {processor}",
        without_it / with_it,
        target,
        unused[0].turns / without_it,
        unused[0].peak_mb,
        sum(used[0].answers[t] == unused[0].answers[t] for t in both) / len(both),
        f"processor time without it to with it, {dialogues} dialogues, one thread, "
        f"the faster of {ROUNDS} runs each",
    )


def main() -> bool:
    """Measures, prints a table, and keeps it.

    Returns:
        Whether each mechanism is worth its code on one of the processors.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--dialogues", type=int, default=SAMPLE // 3)
    arguments, _ = parser.parse_known_args()
    load = os.getloadavg()[0]
    rows = {
        mechanism: [row(mechanism, processor, arguments.dialogues) for processor in PROCESSORS]
        for mechanism in MECHANISMS
    }
    keep("ablation", [row for found in rows.values() for row in found], load)
    return all(any(row.met for row in found) for found in rows.values())


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
