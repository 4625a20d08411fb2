"""Scoring: predictions and gold labels in, data frames out. The folder knows no model.

From a run to a score: ``evaluate`` puts predictions beside gold labels under the ``conventions``,
``counts`` makes the true positives, false positives and false negatives of each dialogue and label,
and ``scores`` has the formulas. ``signature`` names what a score depends on.

Several runs: ``compare`` (with ``paired_tests``), ``ranks``, ``repeats``, ``label_changes`` and
``run_agreement``. One run: when it predicts (``timing``, ``windows``), what its alarms cost
(``alarm_burden``, ``thresholds``), what it confuses (``confusion``, ``error_types``,
``error_cases``), and what its scores depend on (``subgroups``, ``sensitivity``). ``implied``
derives counts from published scores.
"""

import lazy_loader

# Loaded when first used: most modules that import this folder need none of them.
__getattr__, __dir__, __all__ = lazy_loader.attach(
    __name__,
    submod_attrs={
        "alarm_burden": ["projected_precision"],
        "annotators": ["annotator_runs"],
        "confusion": ["annotator_confusion"],
        "error_types": ["error_counts", "label_pairs"],
        "explorer_data": ["annotators_data"],
        "ranks": ["rank_ranges"],
        "repeats": ["run_spread"],
        "thresholds": ["bias_effects", "chosen_thresholds", "reliability", "threshold_scores"],
        "windows": ["level_steps"],
        "implied": [
            "implied_scores",
            "possible_counts",
            "possible_totals",
            "stated_scores",
        ],
    },
)
