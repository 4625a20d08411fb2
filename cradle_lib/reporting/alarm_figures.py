"""A picture of errors: what goes wrong, and how often."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Canvas

from cradle_lib.detection.predictions import Predictions
from cradle_lib.reporting.analysis_tables import CATEGORY_NAMES
from cradle_lib.reporting.figures import Figure, Theme, bare, legend, render, wrapped
from cradle_lib.reporting.notice import Notice, lacking
from cradle_lib.reporting.runs import comparable
from cradle_lib.scoring.categories import MISSED, SPARE, Category, analyse

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
