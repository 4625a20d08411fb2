"""Runs all benchmarks in sequence; exits 1 if a target is missed.

With ``--small`` each runs on tiny data, to test that it works; the one that needs a GPU is left
out, no target is judged, and nothing is saved.
"""

from __future__ import annotations

import sys
from importlib import import_module
from time import perf_counter

from benchmarks.size import sized

BENCHMARKS = sized(
    ("remote", "inference", "capacity", "gpu", "training"),
    ("remote", "inference", "capacity", "training"),
)

met = []
for name in BENCHMARKS:
    began = perf_counter()
    met.append(import_module(f"benchmarks.bench_{name}").main())
    print(f"bench_{name}: {perf_counter() - began:.1f} s", flush=True)
sys.exit(0 if all(met) else 1)
