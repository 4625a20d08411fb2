"""Ablation of the wave engine: the same run with and without each mechanism.

Run with ``python -m benchmarks.bench_ablation [--dialogues N]``. Runs with and without a mechanism
alternate. They use one thread, and are compared by processor time, so that other processes disturb
them little. A mechanism has to save a factor of at least 1.25 on some common processor to be worth
its code. Results go to ``benchmarks/results/ablation.json``.
"""

from __future__ import annotations

import argparse
import os
import sys
from typing import Final

from benchmarks.contestants import SAMPLE
from benchmarks.processes import PROCESSORS, run_in_process
from benchmarks.results import Row, save
from benchmarks.size import SMALL, sized

WORTH: Final = 1.25
ROUNDS: Final = sized(2, 1)
#: Title, decoding mode and minimum ratio by mechanism. Forcing may save nothing: it is four lines,
#: and forced tokens are no choices, so that their log-probabilities need not be stored.
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
        run_in_process(
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
    """Measures, prints a table, and saves it.

    Returns:
        Whether each mechanism reaches its target on at least one of the processors.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--dialogues", type=int, default=sized(SAMPLE // 3, 1))
    arguments, _ = parser.parse_known_args()
    load = os.getloadavg()[0]
    rows = {
        mechanism: [row(mechanism, processor, arguments.dialogues) for processor in PROCESSORS]
        for mechanism in MECHANISMS
    }
    save("ablation", [row for found in rows.values() for row in found], load)
    return SMALL or all(any(row.met for row in found) for found in rows.values())


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
