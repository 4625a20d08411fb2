"""Scoring: predictions and gold labels in, numbers out. The room knows no model.

Modules, from the bottom up:
    ``conventions``: what the paper leaves open, as explicit options, and what they do to rows.
    ``counts``: true positives, false positives and false negatives per dialogue and label.
    ``scores``: totals to exact match, Jaccard, precision, recall and F1.
    ``intervals``: a bootstrap over dialogues, as one matrix product.
    ``signature``: one line that names everything that could change a score.
    ``confusion``: which label was written in place of which.
    ``errors``: what kind of error each one is, an error profile, and cases to show.
    ``evaluate``: all of it for one run.
    ``draws``: the same bootstrap for any counts.
    ``paired``, ``ranking``, ``difference``, ``comparison``, ``compared``: who is really better.
    ``occurrences``, ``windows``, ``onset``, ``early``, ``timing``: when, not only what.
    ``burden``: what false alarms cost.
    ``categories``, ``escalation``, ``consequence``: what exactly went wrong, and what followed.
    ``sensitivity``, ``cohorts``: what scores depend on.
    ``report``: everything about one run, as JSON with a schema.
"""
