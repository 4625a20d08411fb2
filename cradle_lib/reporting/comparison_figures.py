"""Pictures of comparisons: differences with intervals, and what conventions do to scores."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.figure import Figure as Canvas

from cradle_lib.reporting.comparison_tables import LEVEL_NAMES
from cradle_lib.reporting.figures import Figure, Theme, bare, render
from cradle_lib.scoring.comparison import Comparison
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.sensitivity import Sensitivity

MARKERS: Final = ("o", "s", "D", "^", "v", "P", "X", "*")


def difference_figure(comparison: Comparison, score: str = "micro_f1") -> Figure:
    """Draws how far every run is from the baseline, with intervals.

    Args:
        comparison: The comparison, with draws.
        score: ``micro_f1`` or ``macro_f1``.

    Returns:
        One panel for each setting. A filled dot is a difference that the test shows, an open
        one a difference that it does not; the line at 0 is the baseline.
    """
    chosen = [d for d in comparison.family if d.score == score]
    panels = [(LEVEL_NAMES[level], [d for d in chosen if d.level == level]) for level in LEVELS]
    baseline = comparison.names[0]
    name = "micro F1" if score == "micro_f1" else "macro F1"
    told = "; ".join(
        f"{d.system} at {LEVEL_NAMES[d.level].lower()} {100 * d.estimate.value:+.1f} ({d.verdict})"
        for d in chosen
    )
    systems = list(dict.fromkeys(d.system for d in chosen))

    def draw(canvas: Canvas, theme: Theme) -> None:
        grid = canvas.subplots(len(panels), 1, sharex=True, squeeze=False)
        for axes, (title, differences) in zip(grid[:, 0], panels, strict=True):
            axes.set_title(title, loc="left")
            axes.axvline(0, color=theme.ink, lw=1)
            for row, d in enumerate(differences):
                value, low, high = d.estimate
                if low is not None and high is not None:
                    axes.plot([100 * low, 100 * high], [row, row], color=theme.second, lw=2)
                shown = d.verdict == "different"
                axes.plot(
                    100 * value, row, "o", ms=7, mew=1.5,
                    mec=theme.second, mfc=theme.second if shown else theme.paper,
                )  # fmt: skip
            axes.set_yticks(np.arange(len(differences)), [d.system for d in differences])
            axes.set_ylim(len(differences) - 0.5, -0.5)
            bare(axes)
        grid[-1, 0].set_xlabel(f"points of {name} above {baseline}")

    return render(
        draw,
        height=0.8 + len(panels) * (0.4 + 0.34 * len(systems)),
        alt=f"Dots with 95 % intervals: {name} of each run minus that of {baseline}. {told}.",
        caption=(
            f"How far each run is from {baseline} in {name}, with 95 % intervals. Filled dots "
            "are differences that the test shows after correction; open ones are not shown, "
            "or rest on too little to be tested."
        ),
    )


def sensitivity_figure(
    found: Sensitivity, scores: tuple[str, ...] = ("macro_f1", "jaccard")
) -> Figure:
    """Draws scores of every run under every convention.

    Args:
        found: The scores.
        scores: Which of them, one panel each.

    Returns:
        One row for each convention, one mark for each run. Where marks pass each other from
        row to row, the ranking depends on the convention.
    """
    variants = [variant.name for variant in found.variants]
    titles = {score: score.replace("_", " ").replace("f1", "F1") for score in scores}
    told = "; ".join(
        f"{titles[score]} of {name} from {100 * np.nanmin(column):.1f} to "
        f"{100 * np.nanmax(column):.1f}"
        for score in scores
        for name, column in zip(found.names, found.of(score).T, strict=True)
        if not np.isnan(column).all()
    )
    flips = max(int(found.flips(score).max()) for score in scores)

    def draw(canvas: Canvas, theme: Theme) -> None:
        panels = canvas.subplots(1, len(scores), sharey=True, squeeze=False)[0]
        rows = np.arange(len(variants))
        colours = (theme.second, theme.first, theme.third, theme.ink)
        for axes, score in zip(panels, scores, strict=True):
            values = 100 * found.of(score)
            for place, name in enumerate(found.names):
                colour, mark = colours[place % len(colours)], MARKERS[place % len(MARKERS)]
                axes.plot(values[:, place], rows, mark, color=colour, ms=6, label=name)
                axes.axvline(values[0, place], color=colour, lw=0.8, ls=":")
            axes.set_ylim(len(variants) - 0.5, -0.5)
            axes.margins(x=0.15)
            axes.set_xlabel(f"{titles[score]} (%)")
            bare(axes)
        panels[0].set_yticks(rows, variants)
        handles, names = panels[0].get_legend_handles_labels()
        canvas.legend(handles, names, loc="outside upper left", ncols=min(2, len(names)))

    return render(
        draw,
        height=1.3 + 0.33 * len(variants) + 0.2 * (len(found.names) // 2),
        alt=(
            f"Marks for each run under {len(variants)} conventions. Over all of them: {told}. At "
            f"most {flips} pairs of runs change their order."
        ),
        caption=(
            f"Scores at {found.signature.level} level under each convention that the paper "
            "leaves open. Dotted lines continue the default; where marks change their order, "
            "so does the ranking."
        ),
    )
