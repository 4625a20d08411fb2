"""Simulates the annotations that ship with the surrogate; a test compares them with the files."""
