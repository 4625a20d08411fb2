"""Benchmark runs in processes of their own, on the machine as it is or as another would be."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks.contestants import MODEL, BenchmarkRun

#: Settings under which PyTorch's libraries compute as on a processor of that kind.
PROCESSORS: Final[dict[str, dict[str, str]]] = {
    "as it is": {},
    "AVX2": {
        "ATEN_CPU_CAPABILITY": "avx2",
        "ONEDNN_MAX_CPU_ISA": "AVX2",
        "MKL_ENABLE_INSTRUCTIONS": "AVX2",
    },
}


def run_apart(
    name: str,
    dialogues: int,
    *,
    layout: str = "turn",
    mode: str | None = None,
    which: str = "sample",
    without: str | None = None,
    threads: int | None = None,
    processor: str = "as it is",
    model: str = MODEL,
) -> BenchmarkRun:
    """Runs one contestant in a process of its own.

    Args:
        name: The contestant; this and what is not named here, see ``benchmarks.contestants``.
        dialogues: How many.
        layout: The prompt template.
        mode: ``constrained`` or ``None``.
        which: Which dialogues.
        without: A mechanism of the wave engine to switch off.
        threads: Threads of PyTorch; ``None`` for every core.
        processor: One of :data:`PROCESSORS`.
        model: The weights.

    Raises:
        subprocess.CalledProcessError: If it fails; its messages have been shown.
    """
    arguments = [name, "--dialogues", str(dialogues), "--layout", layout]
    arguments += ["--mode", mode] if mode else []
    arguments += ["--which", which] if which != "sample" else []
    arguments += ["--without", without] if without else []
    arguments += ["--model", model] if model != MODEL else []
    command = [sys.executable, "-m", "benchmarks.contestants", *arguments]
    # Also where another benchmark has asked for one thread.
    surroundings = {**os.environ, "OMP_NUM_THREADS": str(threads or os.cpu_count())}
    surroundings |= PROCESSORS[processor]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=surroundings)
    made = BenchmarkRun(**json.loads(done.stdout))
    print(
        f"  {' '.join(arguments):<58} {made.turns:>5} turns {made.pace:8.2f} a second "
        f"{made.processor_seconds:8.1f} s of processor {made.peak_mb:6.0f} MB",
        flush=True,
    )
    return made


@contextmanager
def busy_neighbours(count: int) -> Iterator[None]:
    """Keeps processes busy beside a block, each with as much of a core as it is given."""
    command = [sys.executable, "-c", "while True: pass"]
    with ExitStack() as stack:
        for _ in range(count):
            neighbour = stack.enter_context(subprocess.Popen(command))
            stack.callback(neighbour.kill)
        yield
