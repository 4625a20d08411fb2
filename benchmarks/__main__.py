"""Runs all benchmarks in sequence; exits 1 if a target is missed.

With ``--small`` each runs on tiny data, to test that it works; no target is judged, and nothing is
saved. The one for a GPU then runs on the CPU; otherwise ``make test-gpu`` runs it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from time import perf_counter

from benchmarks.size import sized

BENCHMARKS = ("remote", "inference", "capacity", "training", *sized((), ("gpu",)))

met = []
for name in BENCHMARKS:
    began = perf_counter()
    met.append(import_module(f"benchmarks.bench_{name}").main())
    print(f"bench_{name}: {perf_counter() - began:.1f} s", flush=True)
sys.exit(0 if all(met) else 1)
