"""Scoring: computes data frames of scores from predictions and gold labels, for any model.

``evaluate`` scores one run. For this, ``conventions`` aligns predictions with gold labels,
``counts`` counts true positives, false positives and false negatives of each dialogue and label,
and ``scores`` has the formulas. ``signature`` lists the settings that a score depends on.

``compare`` and ``paired_tests`` compare two runs, and ``label_pairs`` pairs labels that differ. The
analyses of single pages are in ``analyses/``.
"""

import lazy_loader

# Imported when first used, because most importers of this folder need none of them.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "analyses.alarm_burden": ["projected_precision"],
        "analyses.annotators": ["annotator_runs"],
        "analyses.confusion": ["annotator_confusion"],
        "analyses.daily_alarms": ["alarm_rates", "daily_alarms"],
        "compare": ["rank_ranges"],
        "analyses.error_counts": ["error_counts"],
        "analyses.explorer_data": ["annotators_data"],
        "label_pairs": ["label_pairs"],
        "analyses.repeats": ["run_spread"],
        "analyses.thresholds": ["chosen_thresholds", "reliability", "threshold_scores"],
        "analyses.implied": [
            "implied_scores",
            "possible_counts",
            "possible_totals",
            "stated_scores",
        ],
    },
)
