"""Turn-by-turn inference: the wave engine against six other ways to ask the same model.

With the paper's prompt the weights are those of SmolLM2-135M-Instruct, which llama.cpp's server
has too. The tuned model is asked with the short prompt that it learned with, beside one generate
per prompt, and about all dialogues.

Run with ``python -m benchmarks.bench_inference``: it takes about forty-five minutes on two cores
that do nothing else. Each contestant runs in a process of its own, one after the other; slow ones
ask fewer dialogues, because their pace does not depend on how many there are; these are some of
the wave's, and the answers to them are compared. The wave engine's pace does depend on it, and is
given at 60 and at 600. Results go to ``benchmarks/results/inference.json``,
which the book shows.
"""

from __future__ import annotations

import os
import sys

from benchmarks.apart import busy_neighbours, run_apart
from benchmarks.contestants import LONG, SAMPLE, TUNED, BenchmarkRun
from benchmarks.results import Row, keep

FEW, SOME, MANY, MORE, ALL = 4, 12, SAMPLE, 120, 600
MINUTES = 20
WAYS, MACHINE, SIZES = "Other ways to ask", "What the machine gives", "Sizes and neighbours"
NEIGHBOURS = 2


def same(one: BenchmarkRun, other: BenchmarkRun) -> float | None:
    """Share of equal answers over the turns that both were asked."""
    both = one.answers.keys() & other.answers.keys()
    return sum(one.answers[t] == other.answers[t] for t in both) / len(both) if both else None


def against(name: str, wave: BenchmarkRun, other: BenchmarkRun, target: float, note: str) -> Row:
    """Compares paces."""
    measured = other.pace, other.peak_mb, same(wave, other)
    return Row(name, wave.pace / other.pace, target, *measured, note, WAYS)


def roofline(decoding: str, *runs: BenchmarkRun) -> Row:
    """Compares a wave with what the machine sustains in matrix products alone.

    Args:
        decoding: How the answers were decoded.
        *runs: The same run, once or several times: the shares are taken over their joint time,
            and the note gives each.
    """
    seconds = sum(one.seconds for one in runs)
    sustained = sum(one.seconds * one.rate for one in runs)
    each = ", ".join(f"{one.operations / one.seconds / one.rate:.1%}" for one in runs)
    return Row(
        f"share of the machine's matrix products, {len(runs[0].answers):,} turns {decoding}",
        sum(one.operations for one in runs) / sustained,
        0.5,
        sum(one.turns for one in runs) / seconds,
        max(one.peak_mb for one in runs),
        None,
        f"{sustained / seconds / 1e9:.0f} billion operations a second sustained in between; "
        f"{runs[0].computed:,} tokens computed"
        + (f"; first and last run of the benchmark: {each}" if len(runs) > 1 else ""),
        MACHINE,
    )


def fair_share(neighbours: int) -> float:
    """Share of the cores that is left, or an equal one where nothing is left over."""
    cores = os.cpu_count() or 1
    return max((cores - neighbours) / cores, 1 / (1 + neighbours))


def measure() -> list[Row]:
    """Runs all contestants, the wave engine first and last, so that drift would show.

    Of its two runs the less favourable one counts in each ratio of paces.
    """
    few, some = f"{FEW} of the {MANY} dialogues", f"{SOME} of the {MANY} dialogues"
    rambling = f"{few}; an answer goes on to its end or to the limit, as in the paper's runs"
    stopping = f"{few}; it stops after the line that counts, as the wave does"
    once = f"{few}; the wave ran once, near the beginning"
    brief = f"{some}; its short prompt, and answers that end by themselves"
    rounding = f"{some}; it multiplies quantized weights with rounded inputs"
    wave, appended = run_apart("wave", MANY), run_apart("wave", MANY, layout="append")
    constrained = run_apart("wave", MANY, mode="constrained")
    short = {"layout": "brief", "model": TUNED}
    tuned, asked = run_apart("wave", MANY, **short), run_apart("reference", SOME, **short)
    # Both fill a wave, the second one several times over. Slots grow with the longest dialogues;
    # those of most turns are in both, so that little but the number of dialogues differs.
    more = run_apart("wave", MORE, which="longest", **short)
    everyone = run_apart("wave", ALL, **short)
    long = run_apart("wave", 1, which="joined")
    reference, plain = run_apart("reference", FEW), run_apart("reference", FEW, layout="append")
    stopped = run_apart("stopped", FEW)
    cached = run_apart("per-dialogue", SOME)
    llama = max((run_apart(f"llama-{n}", SOME) for n in (1, 2)), key=lambda other: other.pace)
    quiet = run_apart("wave", SOME, roofline=False)
    with busy_neighbours(NEIGHBOURS):
        beside = run_apart("wave", SOME, roofline=False)
    again = run_apart("wave", MANY)
    # A machine that others share may have been faster at one end of the benchmark.
    slower = min(wave, again, key=lambda one: one.pace)
    drift = again.pace / wave.pace
    return [
        against("one generate per prompt, the paper's layout", slower, reference, 12, rambling),
        against("one generate per prompt, stopped like the wave", slower, stopped, 12, stopping),
        against("one generate per prompt, append-only layout", appended, plain, 20, once),
        against("the tuned model, one generate per prompt", tuned, asked, 4, brief),
        against("a cache per dialogue, no shared prefix", slower, cached, 2.5, some),
        against("llama.cpp's server, the better of 1 and 2 threads", slower, llama, 2, rounding),
        roofline("free", wave, again),
        roofline("constrained", constrained),
        roofline("free, the tuned model", everyone),
        Row(
            f"{MINUTES} minutes to the time of the tuned model over {ALL} dialogues",
            60 * MINUTES / everyone.seconds,
            1.0,
            everyone.pace,
            everyone.peak_mb,
            None,
            f"{everyone.turns:,} turns in {everyone.seconds / 60:.1f} minutes",
            SIZES,
        ),
        Row(
            f"pace over {ALL} dialogues to pace over {MANY}",
            everyone.pace / tuned.pace,
            0.8,
            everyone.pace,
            everyone.peak_mb,
            same(everyone, tuned),
            f"{everyone.turns:,} and {tuned.turns:,} turns of the tuned model",
            SIZES,
        ),
        Row(
            f"memory over the {MORE} longest dialogues to memory over {ALL}",
            more.peak_mb / everyone.peak_mb,
            0.8,
            everyone.pace,
            everyone.peak_mb,
            None,
            f"{more.peak_mb:,.0f} and {everyone.peak_mb:,.0f} million bytes",
            SIZES,
        ),
        Row(
            f"a dialogue of {LONG} user turns: share answered",
            long.turns / LONG,
            1.0,
            long.pace,
            long.peak_mb,
            None,
            f"{long.computed:,} tokens computed",
            SIZES,
        ),
        Row(
            f"pace beside {NEIGHBOURS} busy processes to its share of the quiet pace",
            beside.pace / (quiet.pace * fair_share(NEIGHBOURS)),
            1 / 1.5,
            beside.pace,
            beside.peak_mb,
            same(beside, quiet),
            f"{some}; its share is {fair_share(NEIGHBOURS):.0%} of the machine",
            SIZES,
        ),
        Row(
            f"the wave over {MANY} dialogues, last to first",
            drift,
            0.8,
            again.pace,
            again.peak_mb,
            same(again, wave),
            "the machine's own drift during the run",
            SIZES,
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
