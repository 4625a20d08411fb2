"""Baselines: code on this machine that answers at once.

Each has an entry point in ``pyproject.toml``, and its own entry in ``models.yml``.
"""
