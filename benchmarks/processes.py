"""Benchmark runs in separate processes, on this processor or as on an older one."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Final

from benchmarks.contestants import MODEL, BenchmarkRun, run_contestant
from benchmarks.size import SMALL

_AVX2: Final = {
    "ATEN_CPU_CAPABILITY": "avx2",
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "MKL_ENABLE_INSTRUCTIONS": "AVX2",
}
#: Environment variables that restrict PyTorch's libraries to the instructions of a processor.
PROCESSORS: Final[dict[str, dict[str, str]]] = {"as it is": {}} | ({} if SMALL else {"AVX2": _AVX2})


def run_in_process(
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
    """Runs one contestant in a separate process; most of a small run stay in this process.

    Args:
        name: The contestant: see :func:`benchmarks.contestants.run_contestant`.
        dialogues: Number of dialogues.
        layout: The prompt template.
        mode: ``constrained`` or ``None``.
        which: ``sample``, ``longest`` or ``joined`` dialogues.
        without: A mechanism of the wave engine to switch off.
        threads: Threads of PyTorch; ``None`` for the number of cores.
        processor: One of :data:`PROCESSORS`.
        model: The weights.

    Raises:
        subprocess.CalledProcessError: If the process fails. Its messages go to standard error.
    """
    arguments = [name, "--dialogues", str(dialogues), "--layout", layout]
    arguments += ["--mode", mode] if mode else []
    arguments += ["--which", which] if which != "sample" else []
    arguments += ["--without", without] if without else []
    arguments += ["--model", model] if model != MODEL else []
    command = [sys.executable, "-m", "benchmarks.contestants", *arguments]
    # Overrides the single thread that other benchmarks set in this process.
    environment = {**os.environ, "OMP_NUM_THREADS": str(threads or os.cpu_count())}
    environment |= PROCESSORS[processor]
    if SMALL and name != "stopped":
        result = run_contestant(
            name, dialogues, which=which, layout=layout, mode=mode, without=without, model=model
        )
    else:
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
