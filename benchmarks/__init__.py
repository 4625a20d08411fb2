"""Benchmarks: speed ratios measured in one run. ``python -m benchmarks`` runs all."""
