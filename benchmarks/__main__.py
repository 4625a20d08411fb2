"""Runs every benchmark, one after the other, and exits 1 if a target is missed."""

from __future__ import annotations

import sys

from benchmarks import bench_comparison, bench_scoring

sys.exit(0 if all([bench_scoring.main(), bench_comparison.main()]) else 1)
