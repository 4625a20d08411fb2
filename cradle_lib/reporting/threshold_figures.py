"""What another threshold on the stored log-probabilities would flag: a picture and a table."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.figure import Figure as Canvas

from cradle_lib.detection.predictions import Predictions
from cradle_lib.reporting.estimate_cells import share
from cradle_lib.reporting.figures import MARKERS, Figure, Theme, legend, render
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import Column, Row, Table, count, decimal, text
from cradle_lib.scoring.draws import Measured
from cradle_lib.scoring.thresholds import WANTED, ThresholdCurve, threshold_curve

RunCurves = tuple[Predictions, list[ThresholdCurve]]

_NAMES = {"any": "any label", "alert": "an alert", "confirm": "a confirm"}
_NOTHING = (
    "No run stored log-probabilities: the models wrote freely, or tag by other means. Run one "
    "whose decoding is constrained."
)
# Shares of the positive turns that somebody may want to find.
_RECALLS = (0.5, 0.8, 0.9)


def threshold_curves(runs: Sequence[Predictions], *, draws: int, seed: int) -> list[RunCurves]:
    """Moves the threshold for any label, for alerts and for confirms.

    Args:
        runs: Runs; those without stored log-probabilities are left out.
        draws: Bootstrap draws of dialogues behind each interval.
        seed: Their seed.

    Returns:
        The runs that are left, each with three curves.
    """
    return [
        (run, [threshold_curve(run, wanted, draws=draws, seed=seed) for wanted in WANTED])
        for run in runs
        if any(run.choices)
    ]


def threshold_figures(found: Sequence[RunCurves]) -> list[Figure | Notice]:
    """Draws what is found against what it costs, as the threshold moves.

    Args:
        found: What :func:`threshold_curves` gave.

    Returns:
        For each run one curve for each kind of label, a mark at even odds; a notice if there
        is no run, or none of its curves is defined.
    """
    return [_figure(run, curves) for run, curves in found] or [Notice(_NOTHING)]


def threshold_tables(found: Sequence[RunCurves]) -> list[Table | Notice]:
    """Shows a few thresholds in numbers: even odds, and those that find enough.

    Args:
        found: What :func:`threshold_curves` gave.

    Returns:
        For each run and kind of label even odds, and the highest thresholds that flag at least
        half, four fifths and nine tenths of the gold turns; a notice if there is no run.
    """
    return [_table(run, curves) for run, curves in found] or [Notice(_NOTHING)]


def _figure(run: Predictions, curves: Sequence[ThresholdCurve]) -> Figure | Notice:
    styles = dict(zip(WANTED, ("-", "--", "-."), strict=True))
    # Where there is nothing to find, or nothing else, one of the axes has no meaning.
    curves = [curve for curve in curves if 0 < curve.positives < curve.turns]
    if not curves:
        return Notice(
            f"{run.record.name}: there is no curve to draw, because every user turn has a gold "
            "label, or none has."
        )
    told = "; ".join(
        f"for {_NAMES[c.wanted]}, at even odds "
        f"{_shown(c.recall, c.even, 100)} % are found and "
        f"{_shown(c.burden, c.even, 1)} of 100 other turns flagged"
        for c in curves
    )

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        axes.plot([0, 100], [0, 100], ":", color=theme.faint, lw=1.5)
        colours = dict(zip(WANTED, (theme.ink, theme.first, theme.second), strict=True))
        for place, curve in enumerate(curves):
            colour = colours[curve.wanted]
            across, up = curve.burden.value, 100 * curve.recall.value
            if curve.recall.low is not None and curve.recall.high is not None:
                axes.fill_between(
                    across, 100 * curve.recall.low, 100 * curve.recall.high,
                    color=colour, alpha=0.15, lw=0,
                )  # fmt: skip
            axes.plot(across, up, styles[curve.wanted], color=colour, label=_NAMES[curve.wanted])
            own = curve.even
            axes.plot(across[own], up[own], MARKERS[place], color=colour, ms=8)
        axes.set_xlim(-1, 101)
        axes.set_ylim(-1, 101)
        axes.set_xlabel("turns flagged per 100 turns without the gold label")
        axes.set_ylabel("gold turns flagged (%)")
        legend(canvas, columns=3)

    return render(
        draw,
        height=4.2,
        alt=f"Curves that rise to the right as the threshold falls. {told}.",
        caption=(
            f"{run.record.name}: gold turns that are flagged against other turns that are flagged "
            "too, as the threshold on the log-odds moves; bands are 95 % intervals. Marks: even "
            "odds, about where the model itself tags. Dotted: what chance would give."
        ),
    )


def _table(run: Predictions, curves: Sequence[ThresholdCurve]) -> Table:
    rows = []
    for curve in curves:
        heading = (
            f"Looking for {_NAMES[curve.wanted]}: {curve.positives:,} of {curve.turns:,} turns"
        )
        points = [("even odds", curve.even)]
        for wanted in _RECALLS:
            enough = np.flatnonzero(curve.recall.value >= wanted)
            if len(enough):
                points.append((f"to find {100 * wanted:.0f} %", int(enough[-1])))
        rows += [
            Row(
                (
                    text(title),
                    decimal(float(curve.thresholds[place])),
                    share(curve.recall.estimate(place)),
                    share(curve.precision.estimate(place)),
                    share(curve.burden.estimate(place).divided(100)),
                ),
                group=heading,
            )
            for title, place in points
        ]
    return Table(
        f"{run.record.name}: thresholds on the log-odds of a label, with 95 % intervals.",
        (
            Column("Threshold", "text"),
            Column("Log-odds"),
            Column("Recall (%)"),
            Column("Precision (%)"),
            Column("Flagged per 100 other turns"),
        ),
        tuple(rows),
        (
            "The thresholds were picked on the same turns that they are shown for, so that the "
            "numbers flatter them. Whoever wants to use one should pick it on other dialogues.",
            f"Log-probabilities are stored for {curves[0].turns:,} of {len(run.masks):,} turns.",
        ),
    )


def _shown(measured: Measured, place: int, scale: int) -> str:
    return count(round(scale * float(np.nan_to_num(measured.value[place])))).text
