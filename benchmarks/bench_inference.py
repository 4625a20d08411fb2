"""Turn-by-turn inference: the wave engine against six other ways to ask the same model.

With the paper's prompt the weights are those of SmolLM2-135M-Instruct, which llama.cpp's server
has too. What the tuned model needs for a whole split is measured by ``bench_capacity``.

Run with ``python -m benchmarks.bench_inference``: it takes some thirty minutes on two cores that
do nothing else. Each contestant runs in a process of its own, one after the other; slow ones
ask fewer dialogues, because their pace does not depend on how many there are; these are some of
the wave's, and the answers to them are compared. Results go to
``benchmarks/results/inference.json``, which the book shows.
"""

from __future__ import annotations

import os
import sys

from benchmarks.apart import run_apart
from benchmarks.contestants import SAMPLE, BenchmarkRun
from benchmarks.results import Row, keep

FEW, SOME, MANY = 4, 12, SAMPLE
WAYS, MACHINE = "Other ways to ask", "The machine"


def same(one: BenchmarkRun, other: BenchmarkRun) -> float | None:
    """Share of equal answers over the turns that both were asked."""
    both = one.answers.keys() & other.answers.keys()
    return sum(one.answers[t] == other.answers[t] for t in both) / len(both) if both else None


def against(name: str, wave: BenchmarkRun, other: BenchmarkRun, target: float, note: str) -> Row:
    """Compares paces."""
    measured = other.pace, other.peak_mb, same(wave, other)
    return Row(name, wave.pace / other.pace, target, *measured, note, WAYS)


def measure() -> list[Row]:
    """Runs all contestants, the wave engine first and last, so that drift would show.

    Of its two runs the less favourable one counts in each ratio of paces.
    """
    few, some = f"{FEW} of the {MANY} dialogues", f"{SOME} of the {MANY} dialogues"
    rambling = f"{few}; answers end by themselves or at the length limit, as in the paper"
    stopping = f"{few}; it stops after the line with the labels, as the wave engine does"
    once = f"{few}; one run of the wave engine, early in the benchmark"
    rounding = f"{some}; it multiplies quantized weights with rounded inputs"
    wave, appended = run_apart("wave", MANY), run_apart("wave", MANY, layout="append")
    reference, plain = run_apart("reference", FEW), run_apart("reference", FEW, layout="append")
    stopped = run_apart("stopped", FEW)
    cached = run_apart("per-dialogue", SOME)
    llama = max((run_apart(f"llama-{n}", SOME) for n in (1, 2)), key=lambda other: other.pace)
    again = run_apart("wave", MANY)
    # A machine that others share may have been faster at one end of the benchmark.
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
    """Measures, prints a table, and keeps it.

    Returns:
        Whether all targets were met.
    """
    load = os.getloadavg()[0]
    return keep("inference", measure(), load)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
