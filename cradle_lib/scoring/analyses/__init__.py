"""Analyses of runs, each for one page or one section of it.

Timing: ``timing``, ``stage_orders``. Alarms: ``alarm_burden``, ``thresholds``,
``label_probabilities``. Errors: ``confusion``, ``error_counts``, ``error_cases``. Subgroups:
``subgroups``. Conventions: ``sensitivity``. Several runs: ``repeats``, ``label_changes``,
``run_agreement``. ``explorer_data`` and ``annotators`` prepare the explorer; ``implied`` derives
counts from published scores.
"""
