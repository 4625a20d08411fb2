"""Runs: journals, their records and costs, and how a run is made, resumed and found."""
