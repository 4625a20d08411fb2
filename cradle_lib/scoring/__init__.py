"""Scoring: predictions and gold labels in, data frames out. The folder knows no model.

``core`` scores one run against gold, ``comparison`` several runs over the same dialogues. The
modules beside them analyse one run: when it predicts (``timing``, ``windows``), what its alarms
cost (``alarm_burden``, ``thresholds``), what it confuses (``confusion``, ``error_types``,
``error_cases``), and how far its scores depend on conventions (``sensitivity``). ``implied``
derives counts from published scores.
"""

import lazy_loader

# Loaded when first used: most of what imports this room needs none of them.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "implied": [
            "implied_scores",
            "possible_counts",
            "possible_totals",
            "stated_scores",
        ],
    },
)
