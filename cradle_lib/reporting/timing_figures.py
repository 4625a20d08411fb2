"""Pictures of time, alarms and errors."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Canvas

from cradle_lib.detection.predictions import Predictions
from cradle_lib.reporting.analysis_tables import CATEGORY_NAMES
from cradle_lib.reporting.comparison_figures import MARKERS
from cradle_lib.reporting.figures import Figure, Theme, bare, render
from cradle_lib.reporting.runs import comparable
from cradle_lib.scoring.burden import Burden
from cradle_lib.scoring.categories import MISSED, SPARE, Category, analyse
from cradle_lib.scoring.evaluate import Evaluation
from cradle_lib.scoring.timing import Timing

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


def window_figure(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Figure:
    """Draws F1 against the tolerance: the curve that joins the paper's two tables.

    Args:
        runs: The runs; those over the largest set of dialogues are drawn, at most eight.
        timings: Their timing, in the same order.

    Returns:
        A solid line for windows to both sides, a dashed one for late-only windows. The solid
        line starts at the turn-level micro F1; the mark at the right edge is the
        dialogue-level one.
    """
    _, group = comparable(runs, timings)[0]
    group = group[: len(MARKERS)]
    widths = group[0][1].signature.widths
    places = np.arange(len(widths), dtype=float)
    names = ["any" if math.isinf(width) else f"{width:g}" for width in widths]
    told = "; ".join(
        f"{run.record.name} from {100 * float(t.curves['either'].value[0, 0]):.1f} on the exact "
        f"turn to {100 * float(t.curves['either_first'].value[-1, 0]):.1f} anywhere"
        for run, t in group
    )

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        colours = (theme.second, theme.first, theme.third, theme.ink)
        for place, (run, timing) in enumerate(group):
            colour = colours[place % len(colours)]
            either, late = timing.curves["either"], timing.curves["late"]
            if either.low is not None and either.high is not None:
                axes.fill_between(
                    places, 100 * either.low[:, 0], 100 * either.high[:, 0],
                    color=colour, alpha=0.15, lw=0,
                )  # fmt: skip
            axes.plot(
                places, 100 * either.value[:, 0], "-", color=colour,
                marker=MARKERS[place], ms=5, label=run.record.name,
            )  # fmt: skip
            axes.plot(places, 100 * late.value[:, 0], "--", color=colour, lw=1)
            end = timing.curves["either_first"].value[-1, 0]
            axes.plot(places[-1] + 1, 100 * end, MARKERS[place], color=colour, ms=8, mfc="none")
        axes.set_xticks([*places, places[-1] + 1], [*names, "dialogue"])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("tolerance in user turns")
        axes.set_ylabel("micro F1 (%)")
        bare(axes, grid="y")
        canvas.legend(loc="outside upper left", ncols=min(2, len(group)))

    return render(
        draw,
        height=3.6 + 0.22 * math.ceil(len(group) / 2),
        alt=f"Curves of micro F1 against the tolerance in user turns. {told}.",
        caption=(
            "Micro F1 when a tag may be off by some user turns; bands are 95 % intervals. At 0 it "
            "is the turn-level score. Dashed: only late tags are forgiven. Open marks: each "
            "label counted once per dialogue, which is the dialogue-level score."
        ),
    )


def delay_figure(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Figure:
    """Draws the share of onsets that still wait for their tag, by user turns.

    Args:
        runs: The runs; those over the largest set of dialogues are drawn, at most eight.
        timings: Their timing, in the same order.

    Returns:
        Kaplan-Meier curves over all labels.
    """
    _, group = comparable(runs, timings)[0]
    group = group[: len(MARKERS)]
    ends = "; ".join(
        f"{run.record.name} {100 * float(t.waiting.value[0, 0]):.0f} % after the onset's own "
        f"turn and {100 * float(t.waiting.value[0, -1]):.0f} % at the end"
        for run, t in group
    )

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        colours = (theme.second, theme.first, theme.third, theme.ink)
        for place, (run, timing) in enumerate(group):
            colour = colours[place % len(colours)]
            still = timing.waiting
            days = np.arange(still.value.shape[1])
            if still.low is not None and still.high is not None:
                axes.fill_between(
                    days, 100 * still.low[0], 100 * still.high[0],
                    step="post", color=colour, alpha=0.15, lw=0,
                )  # fmt: skip
            axes.step(days, 100 * still.value[0], where="post", color=colour)
            axes.plot(
                days,
                100 * still.value[0],
                MARKERS[place],
                color=colour,
                ms=4,
                label=run.record.name,
            )
        axes.set_ylim(0, 102)
        axes.set_xlabel("user turns since the first gold occurrence")
        axes.set_ylabel("not tagged yet (%)")
        bare(axes, grid="y")
        canvas.legend(loc="outside upper left", ncols=min(2, len(group)))

    return render(
        draw,
        height=3.4 + 0.22 * math.ceil(len(group) / 2),
        alt=f"Falling steps: share of onsets not tagged yet. {ends}.",
        caption=(
            "Share of onsets that still wait for their tag (Kaplan and Meier), with 95 % "
            "intervals. Onsets whose label was tagged prematurely are not in it."
        ),
    )


def burden_figure(
    runs: Sequence[Predictions], evaluations: Sequence[Evaluation], burdens: Sequence[Burden]
) -> Figure:
    """Draws what is found against what it costs.

    Args:
        runs: The runs.
        evaluations: Their turn-level evaluations, in the same order.
        burdens: Their alarm burden, in the same order.

    Returns:
        One dot with two intervals for each run over the largest set of dialogues: recall
        upwards, flagged turns to the right.
    """
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
        colours = (theme.second, theme.first, theme.third, theme.ink)
        for place, (name, cost, recall) in enumerate(dots):
            colour = colours[place % len(colours)]
            for estimate, across, scale in ((cost, True, 1), (recall, False, 100)):
                if estimate.low is None or estimate.high is None:
                    continue
                ends = [scale * estimate.low, scale * estimate.high]
                still = [100 * recall.value if across else cost.value] * 2
                axes.plot(*((ends, still) if across else (still, ends)), color=colour, lw=1.5)
            marker = MARKERS[place % len(MARKERS)]
            axes.plot(cost.value, 100 * recall.value, marker, color=colour, ms=8, label=name)
        axes.set_xlim(left=-0.5)
        axes.set_ylim(-2, 102)
        axes.set_xlabel("turns flagged per 100 turns without a gold label")
        axes.set_ylabel("gold labels found on their turn (%)")
        axes.grid(True)
        canvas.legend(loc="outside upper left", ncols=min(2, len(dots)))

    return render(
        draw,
        height=3.8 + 0.22 * math.ceil(len(dots) / 2),
        alt=f"One dot for each run, with 95 % intervals. {told}.",
        caption=(
            "What is found against what it costs, with 95 % intervals. Up is better; right "
            "means more turns to look at for nothing."
        ),
    )


def category_figure(runs: Sequence[Predictions]) -> Figure:
    """Draws the errors of each run by category: missed to the left, made up to the right.

    Args:
        runs: The runs; those over the largest set of dialogues are drawn.

    Returns:
        One bar for each run. A label in place of another stands on both sides of the middle,
        as one false negative and one false positive.
    """
    _, group = comparable(runs, [analyse(run) for run in runs])[0]
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
        axes.set_yticks(rows, names)
        axes.set_ylim(len(group) - 0.5, -0.5)
        axes.set_xlabel("missed gold labels  |  wrong tags")
        axes.xaxis.set_major_formatter(lambda value, _: f"{abs(value):,.0f}")
        bare(axes)
        canvas.legend(loc="outside upper left", ncols=2)

    return render(
        draw,
        height=2.6 + 0.42 * len(group),
        alt=f"Bars to both sides. {told}.",
        caption=(
            "Errors at turn level by category: false negatives to the left, false positives to "
            "the right. One label in place of another is one of each."
        ),
    )
