"""Benchmark runs in separate processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from benchmarks.contestants import BenchmarkRun, run_contestant
from benchmarks.size import SMALL


def run_in_process(name: str, dialogues: int, **settings: str) -> BenchmarkRun:
    """Runs one contestant in a separate process; most of a small run stay in this process.

    Args:
        name: The contestant: see :func:`benchmarks.contestants.run_contestant`.
        dialogues: Number of dialogues.
        **settings: ``layout``, ``which`` and ``model``, as there.

    Raises:
        subprocess.CalledProcessError: If the process fails. Its messages go to standard error.
    """
    given = {"dialogues": str(dialogues), **settings}
    arguments = [name, *(f"--{setting}={value}" for setting, value in given.items())]
    if SMALL and name != "stopped":
        result = run_contestant(name, dialogues, **settings)
    else:
        command = [sys.executable, "-m", "benchmarks.contestants", *arguments]
        # Overrides the single thread that other benchmarks set in this process.
        environment = os.environ | {"OMP_NUM_THREADS": str(os.cpu_count())}
        done = subprocess.run(command, stdout=subprocess.PIPE, check=True, env=environment)
        result = BenchmarkRun(**json.loads(done.stdout))
    print(
        f"  {' '.join(arguments):<58} {result.turns:>5} turns {result.pace:8.2f} per second "
        f"{result.processor_seconds:8.1f} s of processor time {result.peak_mb:6.0f} MB",
        flush=True,
    )
    return result


@contextmanager
def busy_processes(count: int) -> Iterator[None]:
    """Runs busy loops in other processes during a block."""
    command = [sys.executable, "-c", "while True: pass"]
    with ExitStack() as stack:
        for _ in range(count):
            process = stack.enter_context(subprocess.Popen(command))
            stack.callback(process.kill)
        yield
