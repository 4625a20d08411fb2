"""Planning and validating: time, growth with the number of dialogues, and the naive way beside it.

Run with ``python -m benchmarks.bench_construction``. Posts are made up, dialogues are the
surrogate's training dialogues with some words changed, so that none is a near-duplicate of
another. The naive way to find near-duplicates compares all pairs; it is measured over a few
hundred dialogues and grows with the square of their number.
"""

from __future__ import annotations

import random
import resource
import sys
from dataclasses import replace
from itertools import combinations
from time import perf_counter, process_time

from cradle_lib import load_corpus
from cradle_lib.construction import check_dialogues, plan_dialogues
from cradle_lib.construction.posts import Post
from cradle_lib.construction.validators.draft import draft_of
from cradle_lib.construction.validators.duplicates import near_duplicates, triples
from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.labels import BENCH_LABELS, mask_of

PLANS = 100_000
DIALOGUES = 10_000
NAIVE = 400
SECONDS = 20.0
GIGABYTES = 1.0


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
    """Prints the table; gives whether all targets are met."""
    met = True

    def line(what: str, clock: float, processor: float, target: float = SECONDS) -> None:
        nonlocal met
        met &= clock < target
        print(f"{what:58} {clock:8.2f} s {processor:8.2f} s of processor, target {target:g} s")

    found = posts(PLANS)
    start, used = perf_counter(), process_time()
    plan_dialogues(found)
    line(f"planning {PLANS:,} dialogues", perf_counter() - start, process_time() - used)
    many = dialogues(DIALOGUES)
    times = {}
    for number in (DIALOGUES // 4, DIALOGUES):
        part = many.subset(range(number), "part")
        start, used = perf_counter(), process_time()
        check_dialogues(part)
        times[number] = process_time() - used
        line(f"validating {number:,} dialogues", perf_counter() - start, times[number])
    growth = times[DIALOGUES] / times[DIALOGUES // 4]
    print(f"four times as many dialogues take {growth:.1f} times as long")
    met &= growth < 6
    texts = [(dialogue.id, draft_of(dialogue).text) for dialogue in many]
    used = process_time()
    list(near_duplicates(texts[:NAIVE]))
    fast = process_time() - used
    used = process_time()
    sets = [triples(text) for _, text in texts[:NAIVE]]
    sum(len(one & other) / len(one | other) >= 0.8 for one, other in combinations(sets, 2))
    naive = process_time() - used
    used = process_time()
    list(near_duplicates(texts))
    whole = process_time() - used
    print(f"near-duplicates of {NAIVE}: all pairs take {naive / fast:.0f} times as long")
    pairs = naive * (DIALOGUES / NAIVE) ** 2
    print(
        f"near-duplicates of {DIALOGUES:,}: {whole:.1f} s; all pairs would take "
        f"{pairs / whole:,.0f} times as long"
    )
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    print(f"most memory: {memory:.2f} GB, target {GIGABYTES:g} GB")
    return met and memory < GIGABYTES


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
