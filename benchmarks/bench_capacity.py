"""Time and memory of the tuned model: a whole split, long dialogues, a busy machine.

Run with ``python -m benchmarks.bench_capacity``. It takes about thirty minutes on two idle cores.
The prompt is the short one of the model's training. Results go to
``benchmarks/results/capacity.json``, which the book shows.
"""

from __future__ import annotations

import os
import sys
from functools import partial

from benchmarks.bench_inference import MACHINE, against, same
from benchmarks.contestants import LONG, SAMPLE, TUNED, BenchmarkRun
from benchmarks.processes import busy_processes, run_in_process
from benchmarks.results import Row, save
from benchmarks.size import sized

SOME, MANY, MORE, ALL = sized((12, SAMPLE, 120, 600), (1, 1, 1, 2))
MINUTES = 20
NEIGHBOURS = 2


def fair_share(neighbours: int) -> float:
    """Share of the cores beside busy processes: idle cores, or an equal share if none is idle."""
    cores = os.cpu_count() or 1
    return max((cores - neighbours) / cores, 1 / (1 + neighbours))


def measure() -> list[Row]:
    """Runs the wave engine over samples and a whole split, and the reference engine over a few."""
    ask = partial(run_in_process, layout="brief", model=TUNED)
    wave, reference = ask("wave", MANY), ask("reference", SOME)
    # Both runs fill a wave, the second one several times. Memory per slot depends on the longest
    # dialogues; both runs contain these, so that they differ only in the number of dialogues.
    more, everyone = ask("wave", MORE, which="longest"), ask("wave", ALL)
    long = ask("wave", 1, which="joined")
    quiet = ask("wave", SOME)
    with busy_processes(NEIGHBOURS):
        beside = ask("wave", SOME)
    some = f"{SOME} of the {MANY} dialogues"
    share = fair_share(NEIGHBOURS)

    def row(name: str, ratio: float, target: float, run: BenchmarkRun, note: str) -> Row:
        return Row(name, ratio, target, run.pace, run.peak_mb, None, note, MACHINE)

    return [
        against("one generate per prompt", wave, reference, 4, some),
        row(
            f"{MINUTES} minutes, relative to the time over {ALL} dialogues",
            60 * MINUTES / everyone.seconds,
            1.0,
            everyone,
            f"{everyone.turns:,} turns in {everyone.seconds / 60:.1f} minutes",
        ),
        row(
            f"speed over {ALL} dialogues, relative to {MANY}",
            everyone.pace / wave.pace,
            0.8,
            everyone,
            f"{everyone.turns:,} and {wave.turns:,} turns; "
            f"{same(everyone, wave):.1%} of their common questions have the same answer",
        ),
        row(
            f"memory over the {MORE} longest dialogues, relative to {ALL}",
            more.peak_mb / everyone.peak_mb,
            0.8,
            everyone,
            f"{more.peak_mb:,.0f} and {everyone.peak_mb:,.0f} million bytes",
        ),
        row(
            f"a dialogue of {LONG} user turns: share answered",
            long.turns / LONG,
            1.0,
            long,
            f"{long.turns:,} turns",
        ),
        row(
            f"speed beside {NEIGHBOURS} busy processes, relative to its share of the machine",
            beside.pace / (quiet.pace * share),
            1 / 1.5,
            beside,
            f"{some}; its share is {share:.0%} of the machine; "
            f"{same(beside, quiet):.1%} of the answers are the same",
        ),
    ]


def main() -> bool:
    """Measures, prints a table, and saves it.

    Returns:
        Whether all targets were met.
    """
    load = os.getloadavg()[0]
    return save("capacity", measure(), load)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
