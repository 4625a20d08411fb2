"""Scoring: predictions and gold labels in, data frames out. The room knows no model.

Rooms, from the bottom up:
    ``core``: one run against gold: conventions, counts, scores, their signature.
    ``comparison``: several runs over the same dialogues.
    ``timing``: when, not only what; and what alarms cost.
    ``errors``: what exactly went wrong, and what followed.
    ``robustness``: what a score depends on.
"""
