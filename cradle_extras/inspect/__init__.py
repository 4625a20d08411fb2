"""The benchmark as an Inspect task, and the export of runs as Inspect logs."""
