"""Exports results for other people and tools, and reads them: bundles, and logs of Inspect."""
