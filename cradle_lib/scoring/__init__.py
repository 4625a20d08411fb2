"""Scoring: computes data frames of scores from predictions and gold labels, for any model.

``evaluate`` scores one run. For this, ``conventions`` aligns predictions with gold labels,
``counts`` counts true positives, false positives and false negatives of each dialogue and label,
and ``scores`` has the formulas. ``signature`` lists the settings that a score depends on.

Comparison of runs: ``compare`` (with ``paired_tests``), ``repeats``, ``label_changes`` and
``run_agreement``. Analysis of one run: timing (``timing``, ``stage_orders``), alarms
(``alarm_burden``, ``thresholds``), errors (``label_pairs``, ``confusion``, ``error_counts``,
``error_cases``), subgroups (``subgroups``) and conventions (``sensitivity``). ``implied`` derives
counts from published scores.
"""

import lazy_loader

# Imported when first used, because most importers of this folder need none of them.
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
