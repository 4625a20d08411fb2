"""Baselines: code on this machine that answers at once."""
