"""Runs all benchmarks in sequence; exits 1 if a target is missed."""

from __future__ import annotations

import sys

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

met = [benchmark.main() for benchmark in BENCHMARKS]
sys.exit(0 if all(met) else 1)
