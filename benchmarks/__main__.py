"""Runs all benchmarks in sequence; exits 1 if a target is missed.

With ``--small`` each runs on tiny data, to test that it works; the one that needs a GPU is left
out, no target is judged, and nothing is saved.
"""

from __future__ import annotations

import sys
from time import perf_counter

from benchmarks import (
    bench_ablation,
    bench_capacity,
    bench_comparison,
    bench_explorer,
    bench_gpu,
    bench_inference,
    bench_remote,
    bench_scoring,
    bench_training,
)
from benchmarks.size import SMALL

BENCHMARKS = (
    bench_scoring,
    bench_comparison,
    bench_explorer,
    bench_remote,
    bench_inference,
    bench_capacity,
    bench_ablation,
    bench_gpu,
    bench_training,
)

met = []
for benchmark in BENCHMARKS:
    if not (SMALL and benchmark is bench_gpu):
        began = perf_counter()
        met.append(benchmark.main())
        print(f"{benchmark.__name__}: {perf_counter() - began:.1f} s", flush=True)
sys.exit(0 if all(met) else 1)
