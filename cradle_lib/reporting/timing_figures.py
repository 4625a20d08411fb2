"""Pictures of time: how close tags come to their turn, and how long labels wait for them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas

from cradle_lib.detection.predictions import Predictions
from cradle_lib.reporting.figures import (
    MARKERS,
    Figure,
    Theme,
    bare,
    colours,
    labelled,
    legend,
    render,
)
from cradle_lib.reporting.notice import Notice, lacking
from cradle_lib.reporting.runs import comparable
from cradle_lib.scoring.draws import Measured
from cradle_lib.scoring.timing import Timing

_Group = list[tuple[Predictions, Timing]]


def window_figure(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Figure | Notice:
    """Draws F1 against the tolerance: the curve that joins the paper's two tables.

    Args:
        runs: The runs; those over the largest set of dialogues are drawn, at most eight.
        timings: Their timing, in the same order.

    Returns:
        A solid line for windows to both sides, a dashed one for late-only windows. The solid
        line starts at the turn-level micro F1; the mark at the right edge is the
        dialogue-level one. A notice if no label is gold.
    """
    if nothing := lacking(runs, "labels", "no tag can come close to one"):
        return nothing
    group = _largest(runs, timings)
    widths = group[0][1].signature.widths
    end = len(widths)
    names = ["any" if math.isinf(width) else f"{width:g}" for width in widths]
    told = "; ".join(
        f"{run.record.name} from {100 * float(t.curves['either'].value[0, 0]):.1f} on the exact "
        f"turn to {100 * float(t.curves['either_first'].value[-1, 0]):.1f} anywhere"
        for run, t in group
    )

    def mark(axes: Axes, timing: Timing, colour: str, marker: str) -> None:
        late, last = timing.curves["late"], timing.curves["either_first"].value[-1, 0]
        axes.plot(100 * late.value[:, 0], "--", color=colour, lw=1)
        axes.plot(end, 100 * last, marker, color=colour, ms=8, mfc="none")

    def finish(axes: Axes) -> None:
        axes.set_xticks(range(end + 1), ["0\nturn\nlevel", *names[1:], "dialogue\nlevel"])
        axes.set_ylim(bottom=0)
        axes.set_xlabel("tolerance in user turns")
        axes.set_ylabel("micro F1 (%)")

    return render(
        _curves(group, lambda timing: timing.curves["either"].part(slice(None), 0), mark, finish),
        height=3.8 + 0.22 * math.ceil(len(group) / 2),
        alt=f"Curves of micro F1 against the tolerance in user turns. {told}.",
        caption=(
            "Micro F1 when a tag may be off by some user turns; bands are 95 % intervals. The left "
            "end is the paper's turn-level score. Dashed: only late tags are forgiven. Open marks: "
            "each label counted once per dialogue, the paper's dialogue-level score."
        ),
    )


def delay_figure(runs: Sequence[Predictions], timings: Sequence[Timing]) -> Figure | Notice:
    """Draws the share of onsets that still wait for their tag, by user turns.

    Args:
        runs: The runs; those over the largest set of dialogues are drawn, at most eight.
        timings: Their timing, in the same order.

    Returns:
        Kaplan-Meier curves over all labels, for the runs that left one waiting; a notice if
        no label is gold, or every one was tagged prematurely.
    """
    if nothing := lacking(runs, "labels", "no label waits for its tag"):
        return nothing
    group = [
        (run, timing)
        for run, timing in _largest(runs, timings)
        if not np.isnan(timing.waiting.value[0, 0])
    ]
    if not group:
        return Notice("Every gold label was tagged on an earlier turn: none waits for its tag.")
    ends = "; ".join(
        f"{run.record.name} {100 * float(t.waiting.value[0, 0]):.0f} % after the onset's own "
        f"turn and {100 * float(t.waiting.value[0, -1]):.0f} % at the end"
        for run, t in group
    )

    def finish(axes: Axes) -> None:
        axes.set_ylim(0, 102)
        axes.set_xlabel("user turns since the first gold occurrence")
        axes.set_ylabel("not tagged yet (%)")

    return render(
        _curves(group, lambda timing: timing.waiting.part(0), None, finish, steps=True),
        height=3.4 + 0.22 * math.ceil(len(group) / 2),
        alt=f"Falling steps: share of onsets not tagged yet. {ends}.",
        caption=(
            "Share of onsets that still wait for their tag (Kaplan and Meier), with 95 % "
            "intervals. Onsets whose label was tagged prematurely are not in it."
        ),
    )


def _largest(runs: Sequence[Predictions], timings: Sequence[Timing]) -> _Group:
    _, group = comparable(runs, timings)[0]
    return group[: len(MARKERS)]


def _curves(
    group: _Group,
    curve: Callable[[Timing], Measured],
    mark: Callable[[Axes, Timing, str, str], None] | None,
    finish: Callable[[Axes], None],
    *,
    steps: bool = False,
) -> Callable[[Canvas, Theme], None]:
    """One line with its band for each run, and what a figure adds to each."""

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        for place, (run, timing) in enumerate(group):
            colour, marker = colours(theme)[place % len(colours(theme))], MARKERS[place]
            found = curve(timing)
            turns = np.arange(len(found.value))
            if found.low is not None and found.high is not None:
                axes.fill_between(
                    turns, 100 * found.low, 100 * found.high,
                    step="post" if steps else None, color=colour, alpha=0.15, lw=0,
                )  # fmt: skip
            axes.plot(
                turns, 100 * found.value, color=colour, marker=marker, ms=5,
                drawstyle="steps-post" if steps else "default", label=labelled(run.record.name),
            )  # fmt: skip
            if mark is not None:
                mark(axes, timing, colour, marker)
        finish(axes)
        bare(axes, grid="y")
        legend(canvas)

    return draw
