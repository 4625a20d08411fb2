"""The benchmark as a task of Inspect, and runs as its logs."""
