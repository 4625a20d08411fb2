"""Bundles: a run, its scores and checksums as one archive, and their verification."""
