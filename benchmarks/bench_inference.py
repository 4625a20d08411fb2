"""Speed of turn-by-turn inference: the wave engine against five other ways to run the same model.

All run SmolLM2-135M-Instruct with the paper's prompt, or its append-only layout. llama.cpp's server
has the same weights. ``bench_capacity`` measures the tuned model.

Run with ``python -m benchmarks.bench_inference``. It takes about thirty minutes on two idle cores.
The contestants run one after the other, in separate processes. Slow ones get a subset of the wave
engine's dialogues, because their speed does not depend on the number of dialogues; answers are
compared on that subset. Results go to ``benchmarks/results/inference.json``, which the book shows.
"""

from __future__ import annotations

import os
import sys

from benchmarks.contestants import SAMPLE, BenchmarkRun
from benchmarks.processes import run_in_process
from benchmarks.results import Row, save
from benchmarks.size import sized

FEW, SOME, MANY = sized((4, 12, SAMPLE), (1, 1, 2))
# Threads of llama.cpp.
THREADS = sized((1, 2), (1,))
WAYS, MACHINE = "Other ways to ask", "The machine"


def same(one: BenchmarkRun, other: BenchmarkRun) -> float | None:
    """Share of equal answers on the turns that are in both runs."""
    both = one.answers.keys() & other.answers.keys()
    return sum(one.answers[t] == other.answers[t] for t in both) / len(both) if both else None


def against(name: str, wave: BenchmarkRun, other: BenchmarkRun, target: float, note: str) -> Row:
    """Compares the speed of the wave engine with another run."""
    measured = other.pace, other.peak_mb, same(wave, other)
    return Row(name, wave.pace / other.pace, target, *measured, note, WAYS)


def measure() -> list[Row]:
    """Runs all contestants, the wave engine first and last to detect drift of the machine.

    The slower of its two runs is used in the ratios.
    """
    few, some = f"{FEW} of the {MANY} dialogues", f"{SOME} of the {MANY} dialogues"
    rambling = f"{few}; answers end by themselves or at the length limit, as in the paper"
    stopping = f"{few}; it stops after the line with the labels, as the wave engine does"
    once = f"{few}; relative to one run of the wave engine, early in the benchmark"
    rounding = f"{some}; it multiplies quantized weights with rounded inputs"
    wave, appended = run_in_process("wave", MANY), run_in_process("wave", MANY, layout="append")
    reference, plain = (
        run_in_process("reference", FEW),
        run_in_process("reference", FEW, layout="append"),
    )
    stopped = run_in_process("stopped", FEW)
    cached = run_in_process("per-dialogue", SOME)
    llama = max((run_in_process(f"llama-{n}", SOME) for n in THREADS), key=lambda other: other.pace)
    again = run_in_process("wave", MANY)
    # A shared machine may have been faster at one end of the benchmark.
    slower = min(wave, again, key=lambda one: one.pace)
    return [
        against("one generate per prompt, the paper's layout", slower, reference, 12, rambling),
        against("one generate per prompt, stopped like the wave", slower, stopped, 12, stopping),
        against("one generate per prompt, append-only layout", appended, plain, 20, once),
        against("a cache per dialogue, no shared prefix", slower, cached, 2.5, some),
        against("llama.cpp's server, the better of 1 and 2 threads", slower, llama, 2, rounding),
        Row(
            f"the wave engine over {MANY} dialogues, last run relative to the first",
            again.pace / wave.pace,
            0.8,
            again.pace,
            again.peak_mb,
            same(again, wave),
            "changes of the machine during the benchmark",
            MACHINE,
        ),
    ]


def main() -> bool:
    """Measures, prints a table, and saves it.

    Returns:
        Whether all targets were met.
    """
    load = os.getloadavg()[0]
    return save("inference", measure(), load)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
