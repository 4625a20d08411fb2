"""Pictures of comparisons: differences with intervals, and what conventions do to scores."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.figure import Figure as Canvas

from cradle_lib.reporting.comparison_tables import LEVEL_NAMES, SCORE_NAMES, without_labels
from cradle_lib.reporting.figures import Figure, Theme, bare, labelled, legend, render, wrapped
from cradle_lib.reporting.notice import Notice
from cradle_lib.scoring.comparison import Comparison
from cradle_lib.scoring.conventions import LEVELS
from cradle_lib.scoring.sensitivity import Sensitivity

MARKERS: Final = ("o", "s", "D", "^", "v", "P", "X", "*")


def colours(theme: Theme) -> tuple[str, ...]:
    """The colours of runs, in order; after the last one they begin again, with other marks."""
    return theme.second, theme.first, theme.third, theme.ink


def difference_figure(comparison: Comparison, score: str = "micro_f1") -> Figure | Notice:
    """Draws how far every run is from the baseline, with intervals.

    Args:
        comparison: The comparison, with draws.
        score: ``micro_f1`` or ``macro_f1``.

    Returns:
        One panel for each setting. A filled dot is a difference that the test shows, an open
        one a difference that it does not; the line at 0 is the baseline. A notice if no label
        is gold.
    """
    if nothing := without_labels(comparison):
        return nothing
    chosen = [d for d in comparison.family if d.score == score]
    panels = [(LEVEL_NAMES[level], [d for d in chosen if d.level == level]) for level in LEVELS]
    baseline = comparison.names[0]
    name = SCORE_NAMES[score]
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
            axes.set_yticks(np.arange(len(differences)), [wrapped(d.system) for d in differences])
            axes.set_ylim(len(differences) - 0.5, -0.5)
            bare(axes)
        grid[-1, 0].set_xlabel(f"points of {name}\nabove the baseline")

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
    found: Sensitivity, scores: tuple[str, ...] = ("jaccard", "macro_f1")
) -> Figure | Notice:
    """Draws the place of every run under every convention.

    Args:
        found: The scores.
        scores: Which of them, one panel each.

    Returns:
        One row for each convention; a line for each run leads from row to row, with the score
        beside every mark. Where lines cross, the ranking depends on the convention. A notice
        if some score is defined under no convention.
    """
    if any(np.isnan(found.of(score)).all() for score in scores):
        return Notice("There is no user turn to score, whatever the convention.")
    variants = [variant.name for variant in found.variants]
    titles = {score: SCORE_NAMES[score] for score in scores}
    told = "; ".join(
        f"{titles[score]} of {name} from {100 * np.nanmin(column):.1f} to "
        f"{100 * np.nanmax(column):.1f}"
        for score in scores
        for name, column in zip(found.names, found.of(score).T, strict=True)
        if not np.isnan(column).all()
    )
    turned = [int((found.flips(score) > 0).sum()) for score in scores]
    crossed = " and ".join(
        f"{n} of {len(variants) - 1} other conventions turn pairs of runs round by {titles[score]}"
        for score, n in zip(scores, turned, strict=True)
    )

    def draw(canvas: Canvas, theme: Theme) -> None:
        panels = canvas.subplots(len(scores), 1, sharex=True, squeeze=False)[:, 0]
        rows = np.arange(len(variants))
        for axes, score in zip(panels, scores, strict=True):
            places, values = found.ranks(score), 100 * found.of(score)
            for run, name in enumerate(found.names):
                colour = colours(theme)[run % len(colours(theme))]
                axes.plot(
                    places[:, run], rows, MARKERS[run % len(MARKERS)], ls="-", lw=1.2,
                    color=colour, ms=6, label=labelled(name),
                )  # fmt: skip
            # Runs that tie have one score, which is written once.
            marks = {
                (p, row): v for row in rows for p, v in zip(places[row], values[row], strict=True)
            }
            for mark, value in marks.items():
                if not np.isnan(value):
                    axes.annotate(
                        f"{value:.1f}", mark, (5, 0), textcoords="offset points",
                        va="center", fontsize=7,
                    )  # fmt: skip
            axes.set_ylim(len(variants) - 0.5, -0.5)
            axes.set_xlim(0.7, len(found.names) + 0.5)
            axes.set_xticks(range(1, len(found.names) + 1))
            axes.set_yticks(rows, variants)
            axes.set_title(titles[score], loc="left")
            bare(axes)
        panels[-1].set_xlabel("place (1 is the best)")
        legend(canvas)

    return render(
        draw,
        height=1.0 + len(scores) * (0.5 + 0.27 * len(variants)) + 0.22 * (len(found.names) // 2),
        alt=(
            f"Lines of the place of each run under {len(variants)} conventions. Over all of "
            f"them: {told}. {crossed}."
        ),
        caption=(
            f"Places at {found.signature.level} level under each convention that the paper "
            "leaves open, with the score in percent. Where lines cross, the ranking depends on "
            f"the convention: {crossed}."
        ),
    )
