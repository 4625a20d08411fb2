"""Scoring: predictions and gold labels in, data frames out. The folder knows no model.

From a run to a score: ``evaluate`` puts predictions beside gold labels under the ``conventions``,
``counts`` makes the true positives, false positives and false negatives of each dialogue and label,
and ``scores`` has the formulas. ``signature`` names what a score depends on.

Several runs: ``compare`` (with ``paired_tests``), ``repeats``, ``label_changes`` and
``run_agreement``. One run: when it predicts (``timing``, ``stage_orders``), what its alarms cost
(``alarm_burden``, ``thresholds``), what it confuses (``label_pairs``, ``confusion``,
``error_counts``, ``error_cases``), and what its scores depend on (``subgroups``,
``sensitivity``). ``implied`` derives counts from published scores.
"""

import lazy_loader

# Loaded when first used: most modules that import this folder need none of them.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "alarm_burden": ["projected_precision"],
        "annotators": ["annotator_runs"],
        "confusion": ["annotator_confusion"],
        "compare": ["rank_ranges"],
        "error_counts": ["error_counts"],
        "explorer_data": ["annotators_data"],
        "label_pairs": ["label_pairs"],
        "repeats": ["run_spread"],
        "thresholds": ["chosen_thresholds", "reliability", "threshold_scores"],
        "implied": [
            "implied_scores",
            "possible_counts",
            "possible_totals",
            "stated_scores",
        ],
    },
)
