"""Scoring: predictions and gold labels in, data frames out. The room knows no model.

Rooms, from the bottom up:
    ``core``: one run against gold: conventions, counts, scores, their signature.
    ``comparison``: several runs over the same dialogues.
    ``timing``: when, not only what; and what alarms cost.
    ``errors``: what exactly went wrong, and what followed.
    ``robustness``: what a score depends on.
"""

import lazy_loader

# Loaded when first used: most of what imports this room needs none of them.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "robustness.implied": [
            "implied_scores",
            "possible_counts",
            "possible_totals",
            "stated_scores",
        ],
    },
)
