"""Pictures of alarms and errors: what is found against what it costs, and what goes wrong."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure as Canvas

from cradle_lib.detection.predictions import Predictions
from cradle_lib.reporting.figures import (
    MARKERS,
    Figure,
    Theme,
    colours,
    labelled,
    legend,
    render,
)
from cradle_lib.reporting.notice import Notice, lacking
from cradle_lib.reporting.runs import comparable
from cradle_lib.scoring.burden import Burden
from cradle_lib.scoring.evaluate import Evaluation


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
