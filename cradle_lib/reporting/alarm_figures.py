"""Pictures of alarms and errors: what is found against what it costs, and what goes wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Canvas

from cradle_lib.detection.predictions import Predictions
from cradle_lib.reporting.analysis_tables import CATEGORY_NAMES
from cradle_lib.reporting.figures import (
    MARKERS,
    Figure,
    Theme,
    bare,
    colours,
    labelled,
    legend,
    render,
    wrapped,
)
from cradle_lib.reporting.notice import Notice, lacking
from cradle_lib.reporting.runs import comparable
from cradle_lib.scoring.burden import Burden
from cradle_lib.scoring.categories import MISSED, SPARE, Category, analyse
from cradle_lib.scoring.evaluate import Evaluation

# Lines only: dots would make the file ten times as large.
_HATCHES: Final = {
    Category.OVER_CONFIRMED: "",
    Category.UNDER_CONFIRMED: "//",
    Category.TEMPORAL_SWAP: "\\\\",
    Category.WRONG_TYPE: "--",
    Category.MISSED_ALERT: "",
    Category.MISSED_CONFIRM: "//",
    Category.TOO_EARLY: "",
    Category.TOO_LATE: "\\\\",
    Category.REPEATED: "//",
    Category.UNFOUNDED: "--",
}


def burden_figure(
    runs: Sequence[Predictions], evaluations: Sequence[Evaluation], burdens: Sequence[Burden]
) -> Figure | Notice:
    """Draws what is found against what it costs.

    Args:
        runs: The runs.
        evaluations: Their turn-level evaluations, in the same order.
        burdens: Their alarm burden, in the same order.

    Returns:
        One dot with two intervals for each run over the largest set of dialogues: recall
        upwards, flagged turns to the right. A notice if there is nothing to find, or nothing to
        flag in vain.
    """
    nothing = lacking(runs, "labels", "there is nothing to find") or lacking(
        runs, "unlabelled turns", "no turn can be flagged in vain"
    )
    if nothing:
        return nothing
    _, group = comparable(runs, list(zip(evaluations, burdens, strict=True)))[0]
    dots = [
        (run.record.name, b.estimates["flagged_per_100"], e.estimate("micro_recall"))
        for run, (e, b) in group
    ]
    told = "; ".join(
        f"{name} finds {100 * recall.value:.0f} % and flags {cost.value:.1f} of 100 turns"
        for name, cost, recall in dots
    )

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        for place, (name, cost, recall) in enumerate(dots):
            colour = colours(theme)[place % len(colours(theme))]
            for estimate, across, scale in ((cost, True, 1), (recall, False, 100)):
                if estimate.low is None or estimate.high is None:
                    continue
                ends = [scale * estimate.low, scale * estimate.high]
                still = [100 * recall.value if across else cost.value] * 2
                axes.plot(*((ends, still) if across else (still, ends)), color=colour, lw=1.5)
            marker = MARKERS[place % len(MARKERS)]
            axes.plot(
                cost.value, 100 * recall.value, marker, color=colour, ms=8, label=labelled(name)
            )
        # A silent run stands in the corner, and is seen whole.
        axes.set_xlim(left=-axes.get_xlim()[1] / 30)
        axes.set_ylim(bottom=-axes.get_ylim()[1] / 30)
        axes.set_xlabel("turns flagged per 100 turns without a gold label")
        axes.set_ylabel("gold labels found on their turn (%)")
        axes.grid(True)
        legend(canvas)

    return render(
        draw,
        height=3.8 + 0.22 * math.ceil(len(dots) / 2),
        alt=f"One dot for each run, with 95 % intervals. {told}.",
        caption=(
            "What is found against what it costs, with 95 % intervals. Up is better; right "
            "means more turns to look at for nothing."
        ),
    )


def category_figure(runs: Sequence[Predictions]) -> Figure | Notice:
    """Draws the errors of each run by category: missed to the left, made up to the right.

    Args:
        runs: The runs; those over the largest set of dialogues are drawn.

    Returns:
        One bar for each run. A label in place of another stands on both sides of the middle,
        as one false negative and one false positive. A notice if no run errs.
    """
    if nothing := lacking(runs, "user turns", "there is no error to draw"):
        return nothing
    _, group = comparable(runs, [analyse(run) for run in runs])[0]
    if not any(sum(found.categories.values()) for _, found in group):
        return Notice("No run errs on any user turn: there is no error to draw.")
    names = [run.record.name for run, _ in group]
    swapped = tuple(c for c in Category if c not in (*SPARE, *MISSED))
    told = "; ".join(
        f"{run.record.name} misses {found.profile.false_negatives:,} and makes up "
        f"{found.profile.false_positives:,}"
        for run, found in group
    )

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        rows = np.arange(len(group))
        for side, parts in ((-1, (*swapped, *MISSED)), (1, (*swapped, *SPARE))):
            start = np.zeros(len(group))
            for category in parts:
                sizes = np.array([found.categories[category] for _, found in group], dtype=float)
                colour = theme.third
                if category in MISSED:
                    colour = theme.second
                elif category in SPARE:
                    colour = theme.first
                axes.barh(
                    rows, side * sizes, left=side * start, color=colour, edgecolor=theme.paper,
                    hatch=_HATCHES[category], lw=0.5,
                    label=CATEGORY_NAMES[category] if side > 0 or category in MISSED else None,
                )  # fmt: skip
                start += sizes
        axes.axvline(0, color=theme.ink, lw=1)
        axes.set_yticks(rows, [wrapped(name) for name in names])
        axes.set_ylim(len(group) - 0.5, -0.5)
        axes.set_xlabel("missed gold labels  |  wrong tags")
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
        bare(axes)
        legend(canvas)

    return render(
        draw,
        height=2.6 + 0.42 * len(group),
        alt=f"Bars to both sides. {told}.",
        caption=(
            "Errors at turn level by category: false negatives to the left, false positives to "
            "the right. One label in place of another is one of each."
        ),
    )
