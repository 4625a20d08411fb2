"""Converts the blind readings of the test split to the annotations that ship with it."""
