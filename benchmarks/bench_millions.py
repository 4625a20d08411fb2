"""A run of ten million user turns, made up: what journals, joining and scoring take.

Run with ``python -m benchmarks.bench_millions``. The answers of eight shards are written through
the journal that runs write, joined, read back and scored, each stage in a process of its own and
at two sizes. A stage is linear if its processor time per turn is the same at both sizes, and flat
if its peak memory is. No corpus is held: dialogues have six or nine user turns, and gold labels
follow from their place. What a corpus of that size takes is not measured here.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import numpy as np

from benchmarks.memory import peak_memory
from benchmarks.results import Row, keep
from cradle_lib.detection import Journal, Outcome, Prediction
from cradle_lib.detection.journals.journal import each_line
from cradle_lib.detection.journals.shards import join
from cradle_lib.labels import LABELS, format_mask
from cradle_lib.record import Record
from cradle_lib.scoring.core.counts import count
from cradle_lib.scoring.core.scores import scores

SIZES: Final = (1_000_000, 10_000_000)
SHARDS: Final = 8
_TURNS: Final = 7.5
_BLOCK: Final = 100_000


def shard_of(folder: Path, index: int) -> Path:
    """Names a shard's journal."""
    return folder / f"k.shard-{index}-of-{SHARDS}.jsonl"


def gold_of(dialogue: int, turn: int) -> int:
    """Gives the gold labels of a turn: one in five has one."""
    place = dialogue * 31 + turn * 7
    return 1 << (place // 5 % len(LABELS)) if place % 5 == 0 else 0


def answers(index: int, dialogues: int) -> Iterator[Prediction]:
    """Makes the answers of a shard: four of five are right."""
    for dialogue in range(index, dialogues, SHARDS):
        for turn in range(6 if dialogue % 2 else 9):
            mask = gold_of(dialogue, turn if (dialogue + turn) % 5 else turn + 1)
            text = format_mask(mask) if mask else "none"
            name = f"d{dialogue:07}"
            key = f"{dialogue:08x}{turn:08x}"
            yield Prediction(
                name, turn, key, text, mask, Outcome.OK, tokens_in=900, tokens_out=4, seconds=0.25
            )


def write(folder: Path, dialogues: int) -> int:
    """Writes all shards; gives the number of turns."""
    turns = 0
    for index in range(SHARDS):
        record = Record.create(
            model="k",
            name="K",
            group="baseline",
            engine="keyword",
            prompt="turn",
            prompt_hash="0" * 16,
            decoding={},
            corpus="made-up",
            corpus_fingerprint="made-up",
            shard=f"{index}/{SHARDS}",
            dialogues=[f"d{dialogue:07}" for dialogue in range(index, dialogues, SHARDS)],
        )
        with Journal.open(shard_of(folder, index), record) as journal:
            for prediction in answers(index, dialogues):
                journal.append(prediction)
                turns += 1
    return turns


def joined(folder: Path, dialogues: int) -> int:
    """Joins the shards."""
    files = [shard_of(folder, index) for index in range(SHARDS)]
    join(files, folder / "k.jsonl", dialogues=dialogues)
    return 0


def score(folder: Path, dialogues: int) -> int:
    """Reads the joined journal and scores it, a block of dialogues at a time."""
    total = np.zeros_like(count(*_empty(), 1).total)
    block: list[tuple[int, int, int]] = []
    turns = 0

    def reduce() -> None:
        nonlocal total, turns
        places = np.array([place for place, _, _ in block]) - block[0][0]
        gold, tagged = (np.array([row[n] for row in block], dtype=np.uint16) for n in (1, 2))
        total = total + count(gold, tagged, places, int(places[-1]) + 1).total
        turns += len(block)
        block.clear()

    for line, _ in each_line(folder / "k.jsonl"):
        if isinstance(line, Prediction):
            dialogue = int(line.dialogue[1:])
            if len(block) >= _BLOCK and dialogue != block[-1][0]:
                reduce()
            block.append((dialogue, gold_of(dialogue, line.turn), line.mask))
    reduce()
    found = float(scores(total).micro_f1)
    if not 0.5 < found < 1:
        raise AssertionError(f"micro F1 is {found}, and four of five answers are right")
    return turns


def _empty() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    none = np.zeros(1, dtype=np.uint16)
    return none, none, np.zeros(1, dtype=np.int64)


STAGES: Final[dict[str, Callable[[Path, int], int]]] = {
    "write": write,
    "join": joined,
    "score": score,
}


def stage(name: str, folder: Path, dialogues: int) -> dict[str, float]:
    """Runs a stage in a process of its own.

    Returns:
        ``seconds`` of processor, and ``peak_mb`` in millions of bytes.
    """
    command = [sys.executable, "-m", "benchmarks.bench_millions", name, str(folder), str(dialogues)]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def measure(turns: int) -> dict[str, dict[str, float]]:
    """Measures all stages at a size."""
    dialogues = int(turns / _TURNS)
    found = {}
    with tempfile.TemporaryDirectory(prefix="millions-") as name:
        for each in STAGES:
            found[each] = stage(each, Path(name), dialogues)
            print(
                f"  {each:<6} {turns:>12,} turns {found[each]['seconds']:9.1f} s of processor "
                f"{found[each]['peak_mb']:7.0f} MB",
                flush=True,
            )
            if each == "join":
                for index in range(SHARDS):
                    shard_of(Path(name), index).unlink()
    return found


def main(sizes: tuple[int, int] = SIZES) -> bool:
    """Measures both sizes and keeps the ratios.

    Returns:
        Whether all targets were met.
    """
    load = os.getloadavg()[0]
    small, large = (measure(size) for size in sizes)
    more = sizes[1] / sizes[0]
    rows = []
    for each in STAGES:
        one, two = small[each], large[each]
        note = (
            f"{one['peak_mb']:.0f} MB at {sizes[0]:,} turns, {two['peak_mb']:.0f} MB at "
            f"{sizes[1]:,}; {1e6 * two['seconds'] / sizes[1]:.0f} microseconds of processor a turn"
        )
        pace = sizes[1] / two["seconds"]
        linear, flat = more * one["seconds"] / two["seconds"], one["peak_mb"] / two["peak_mb"]
        # One is perfectly linear, or flat.
        rows += [
            Row(f"{each}: time is linear", linear, 0.8, pace, two["peak_mb"], None, note),
            Row(f"{each}: memory is flat", flat, 0.5, pace, two["peak_mb"], None, note),
        ]
    return keep("millions", rows, load)


if __name__ == "__main__":
    if len(sys.argv) == 4:
        started = time.process_time()
        STAGES[sys.argv[1]](Path(sys.argv[2]), int(sys.argv[3]))
        print(json.dumps({"seconds": time.process_time() - started, "peak_mb": peak_memory()}))
    else:
        sys.exit(0 if main() else 1)
