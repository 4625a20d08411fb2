"""Planning and validating: time, growth with the number of dialogues, and the naive way beside it.

Run with ``python -m benchmarks.bench_construction``. Posts are made up, dialogues are the
surrogate's training dialogues with some words changed, so that none is a near-duplicate of
another. The naive way to find near-duplicates compares all pairs; it is measured over a few
hundred dialogues and grows with the square of their number. All times are of the processor.
"""

from __future__ import annotations

import os
import random
import resource
import sys
from dataclasses import replace
from itertools import combinations
from time import process_time

from benchmarks.results import Row, keep
from cradle_extras.construction import check_dialogues, plan_dialogues
from cradle_extras.construction.posts import BENCH_LABELS, Post
from cradle_extras.construction.validators.draft import draft_of
from cradle_extras.construction.validators.duplicates import THRESHOLD, near_duplicates, triples
from cradle_lib import load_corpus
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.labels import mask_of

PLANS = 100_000
DIALOGUES = 10_000
NAIVE = 400
SECONDS = 20.0


def posts(number: int) -> list[Post]:
    """Makes posts with one label, two, or none."""
    rng = random.Random(0)
    names = sorted(BENCH_LABELS.values())
    sets = [mask_of(rng.sample(names, rng.choice((0, 1, 1, 1, 2)))) for _ in range(number)]
    return [Post(f"p{n}", "", "text", mask) for n, mask in enumerate(sets)]


def dialogues(number: int) -> Corpus:
    """Makes training dialogues, those of the surrogate and then changed copies of them."""
    source = load_corpus("surrogate", "train")
    rng = random.Random(0)
    made = []
    for n in range(number):
        turns = source.dialogues[n % len(source)].turns
        if n >= len(source):
            turns = tuple(_changed(turn, rng) for turn in turns)
        made.append(Dialogue(n, turns))
    timing = [source.meta["timing"][n % len(source)] for n in range(number)]
    return Corpus("many", tuple(made), meta={"timing": timing})


def _changed(turn: Turn, rng: random.Random) -> Turn:
    words = turn.text.split()
    for place in range(rng.randrange(3), len(words), 3):
        words[place] = "".join(rng.choices("abcdefghij", k=5))
    return replace(turn, text=" ".join(words))


def main() -> bool:
    """Keeps the rows; gives whether all targets are met."""
    load = os.getloadavg()[0]
    found = posts(PLANS)
    used = process_time()
    plan_dialogues(found)
    planning = process_time() - used
    many = dialogues(DIALOGUES)
    times = {}
    for number in (DIALOGUES // 4, DIALOGUES):
        part = many.subset(range(number), "part")
        used = process_time()
        check_dialogues(part)
        times[number] = process_time() - used
    texts = [(dialogue.id, draft_of(dialogue).text) for dialogue in many]
    used = process_time()
    list(near_duplicates(texts[:NAIVE]))
    few = process_time() - used
    used = process_time()
    sets = [triples(text) for _, text in texts[:NAIVE]]
    sum(len(one & other) / len(one | other) >= THRESHOLD for one, other in combinations(sets, 2))
    naive = process_time() - used
    used = process_time()
    list(near_duplicates(texts))
    seconds = process_time() - used
    growth = times[DIALOGUES] / times[DIALOGUES // 4]
    pairs = naive * (DIALOGUES / NAIVE) ** 2
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    rows = [
        Row(
            f"near-duplicates of {NAIVE:,} dialogues, against all pairs",
            naive / few,
            1.0,
            note=f"{few:.2f} s of processor instead of {naive:.2f}",
        ),
        Row(
            f"near-duplicates of {DIALOGUES:,}, against all pairs, calculated",
            pairs / seconds,
            10.0,
            note=f"{seconds:.1f} s of processor instead of {pairs:,.0f}",
        ),
        Row(
            f"validating {DIALOGUES:,} dialogues, near-duplicates too, against {SECONDS:g} s",
            SECONDS / times[DIALOGUES],
            1.0,
            peak_mb=1000 * memory,
            note=f"{times[DIALOGUES]:.1f} s of processor on one core",
        ),
        Row(
            "validating four times as many, against six times the time",
            6 / growth,
            1.0,
            note=f"{growth:.1f} times the time",
        ),
        Row(
            f"planning {PLANS:,} dialogues, against {SECONDS:g} s",
            SECONDS / planning,
            1.0,
            note=f"{planning:.1f} s of processor",
        ),
        Row("memory, against 1 GB", 1 / memory, 1.0, peak_mb=1000 * memory, note="all of it"),
    ]
    return keep("construction", rows, load)


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
