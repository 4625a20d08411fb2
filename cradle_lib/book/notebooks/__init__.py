"""Reads and executes notebooks, and turns their outputs into pages."""
