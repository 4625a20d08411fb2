"""Baselines: code on this machine that answers without a language model.

Each has an entry point in ``pyproject.toml`` and an entry in ``models.yml``; :mod:`.function` asks
a Python function of the user, which needs neither. Install the package again after adding an entry
point.
"""
