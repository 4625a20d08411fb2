"""Compares the wave and reference engines on a GPU, by default with the embedded model.

Run with ``python -m benchmarks.bench_gpu [--model ID]`` on a machine with a GPU that PyTorch
supports. The embedded model runs in float32 and takes a few minutes. Results go to
``benchmarks/results/gpu.json``. Without a GPU, nothing is measured.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from typing import Any

from benchmarks.contestants import MODEL, select_dialogues
from benchmarks.results import Row, save
from cradle_engines.local.local_engine import load_local
from cradle_engines.local.reference import Reference
from cradle_engines.local.wave.engine import Wave
from cradle_lib.detection import Options, Prediction, Session, resolve
from cradle_lib.prompts import load_template

DIALOGUES = 12
# In float32 all answers must be equal. At lower precision, rounding depends on the order of sums.
SAME, ROUNDED = 1.0, 0.95


def first_line(prediction: Prediction) -> list[str]:
    """Returns the line with the labels; the reference engine continues after it."""
    return prediction.answer.strip().splitlines()[:1]


def answers(engine: Any, prompt: str) -> tuple[dict[tuple[str, int], Prediction], float]:
    """Runs an engine on the sample. Returns predictions by dialogue and turn, and seconds."""
    template = load_template(prompt)
    sessions = [Session(dialogue, template) for dialogue in select_dialogues(DIALOGUES, "sample")]
    predictions: list[Prediction] = []
    begin = time.perf_counter()
    engine.answer_all(sessions, predictions.append)
    return {(p.dialogue, p.turn): p for p in predictions}, time.perf_counter() - begin


def measure(model: str) -> list[Row]:
    """Runs both engines on the GPU, and compares their speed and their answers."""
    import torch

    entry, options = resolve(model), Options(device="cuda")
    local = load_local(entry, options)
    slow, slow_seconds = answers(Reference(entry, options, local), entry.prompt)
    torch.cuda.reset_peak_memory_stats()
    fast, fast_seconds = answers(Wave(entry, options, local), entry.prompt)
    peak = torch.cuda.max_memory_allocated() / 1e6
    exact = local.lm.dtype is torch.float32
    same_text = sum(first_line(fast[turn]) == first_line(slow[turn]) for turn in slow) / len(slow)
    pairs = [(fast[turn], slow[turn]) for turn in slow]
    same_labels = sum((a.outcome, a.mask) == (b.outcome, b.mask) for a, b in pairs) / len(pairs)
    what, same, target = ("answers", same_text, SAME) if exact else ("labels", same_labels, ROUNDED)
    versions = f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {local.lm.dtype}"
    measured = len(fast) / fast_seconds, peak, same_text
    faster, turns = slow_seconds / fast_seconds, f"{len(slow):,} turns; {versions}"
    other = "one generate per prompt"
    return [
        Row(f"{entry.id}: speed, relative to {other}", faster, 1.0, *measured, turns),
        Row(f"{entry.id}: same {what} as {other}", same, target, *measured, versions),
    ]


def main() -> bool:
    """Measures, prints a table, and saves it, if there is a GPU.

    Returns:
        Whether all targets were met, or there is no GPU.
    """
    import torch

    parser = argparse.ArgumentParser()
    parser.add_argument("--model", default=MODEL)
    arguments, _ = parser.parse_known_args()
    if not torch.cuda.is_available():
        print("bench_gpu: PyTorch found no GPU; nothing was measured.")
        return True
    return save("gpu", measure(arguments.model), os.getloadavg()[0])


if __name__ == "__main__":
    sys.exit(0 if main() else 1)
