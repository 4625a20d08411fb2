"""Figures of scores: models with intervals, labels with intervals, and confusions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Canvas

from cradle_lib.detection.predictions import Predictions
from cradle_lib.detection.registry import load_registry
from cradle_lib.labels import short
from cradle_lib.published import published
from cradle_lib.reporting.figures import Figure, Theme, bare, labelled, legend, render, wrapped
from cradle_lib.reporting.heat_map import heat_map
from cradle_lib.reporting.notice import Notice, lacking
from cradle_lib.reporting.runs import comparable
from cradle_lib.scoring.confusion import confusion
from cradle_lib.scoring.evaluate import Evaluation
from cradle_lib.scoring.gaps import NEEDED

# Shapes tell series apart where colours do not.
_MARKERS: Final = ("o", "s", "D", "^")
_LEVELS: Final = {
    "turn": "turn level",
    "dialogue": "dialogue level",
    "confirm": "dialogue level, confirms only",
}


@dataclass(frozen=True, slots=True)
class _Dot:
    """One score with its interval, all in percent.

    Attributes:
        row: The model or label that the dot belongs to.
        value: The score; NaN leaves the row empty.
        low: Lower bound; NaN without an interval.
        high: Upper bound.
        published: What the paper states for the same system, if anything.
    """

    row: str
    value: float
    low: float
    high: float
    published: float | None = None


def model_figure(
    runs: Sequence[Predictions], evaluations: Sequence[Evaluation], score: str = "micro_f1"
) -> Figure | Notice:
    """Draws one score of several models as dots with intervals.

    Args:
        runs: What was scored.
        evaluations: Their evaluations, all at the same level, in the same order.
        score: Name of the score, such as ``micro_f1``.

    Returns:
        One panel for each set of dialogues, above one another, with a common axis from 0 to
        100 percent; a notice if the score can't be other than 0, or is not defined.
    """
    level = evaluations[0].counts.level
    need = NEEDED[level] if score.startswith(("micro", "macro")) else "user turns"
    if nothing := lacking(runs, need, "there are no scores to draw"):
        return nothing
    panels = [
        (
            f"{len(group[0][0].corpus):,} dialogues",
            [
                _dot(run.record.name, evaluation, score, None, _published(run, level, score))
                for run, evaluation in group
            ],
        )
        for _, group in comparable(runs, evaluations)
    ]
    name = f"{score.replace('_', ' ').replace('f1', 'F1')} at {_LEVELS[level]}"
    name = name[0].upper() + name[1:]
    sizes = [len(dots) for _, dots in panels]
    told = "; ".join(
        f"{heading}: " + ", ".join(f"{dot.row} {_shown(dot)}" for dot in dots)
        for heading, dots in panels
    )

    def draw(canvas: Canvas, theme: Theme) -> None:
        grid = canvas.subplots(
            len(panels), 1, sharex=True, squeeze=False, height_ratios=[n + 0.6 for n in sizes]
        )
        for axes, (heading, dots) in zip(grid[:, 0], panels, strict=True):
            rows = np.arange(len(dots))
            axes.set_title(heading, loc="left")
            for row, dot in zip(rows, dots, strict=True):
                axes.plot([dot.low, dot.high], [row, row], color=theme.second, lw=2)
                if dot.published is not None:
                    axes.plot(dot.published, row, "D", mfc="none", mec=theme.first, ms=7)
            axes.plot([dot.value for dot in dots], rows, "o", color=theme.second, ms=6)
            axes.set_yticks(rows, [wrapped(dot.row) for dot in dots])
            axes.set_ylim(len(dots) - 0.5, -0.5)
            axes.set_xlim(0, 100)
            bare(axes)
        grid[-1, 0].set_xlabel("percent")

    diamonds = any(dot.published is not None for _, dots in panels for dot in dots)
    return render(
        draw,
        height=0.7 + sum(0.38 * n + 0.35 for n in sizes),
        alt=f"Dots with 95 % intervals. {name}, in percent. {told}.",
        caption=f"{name}: dots are this run, lines are 95 % intervals"
        + (", diamonds are published." if diamonds else "."),
    )


def per_label_figure(
    runs: Sequence[Predictions], evaluations: Sequence[Evaluation]
) -> Figure | Notice:
    """Draws the F1 of each label as dots with intervals.

    Args:
        runs: What was scored; the first four over the largest set of dialogues are drawn.
        evaluations: Their evaluations at one level, in the same order.

    Returns:
        One row for each label; a notice if none is gold.
    """
    if nothing := lacking(runs, "labels", "no label has an F1 to draw"):
        return nothing
    _, group = comparable(runs, evaluations)[0]
    series = [
        (
            run.record.name,
            [_dot(short(label), evaluation, "f1", label) for label in evaluation.labels],
        )
        for run, evaluation in group[: len(_MARKERS)]
    ]
    corpus = f"{len(group[0][0].corpus):,} dialogues of {group[0][0].record.corpus}"
    names = [dot.row for dot in series[0][1]]
    told = []
    for model, dots in series:
        best = max(dots, key=lambda dot: -1.0 if np.isnan(dot.value) else dot.value)
        told.append(f"{model} does best on {best.row} ({_shown(best)})")

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        rows = np.arange(len(names))
        colours = (theme.second, theme.first, theme.third, theme.ink)
        step = 0.7 / len(series)
        for index, (model, dots) in enumerate(series):
            places = rows + (index - (len(series) - 1) / 2) * step
            colour = colours[index]
            for place, dot in zip(places, dots, strict=True):
                axes.plot([dot.low, dot.high], [place, place], color=colour, lw=1.5)
            values = [dot.value for dot in dots]
            axes.plot(values, places, _MARKERS[index], color=colour, ms=5, label=labelled(model))
        for row in rows[1:]:
            axes.axhline(row - 0.5, color=theme.faint, lw=0.5)
        axes.set_yticks(rows, names)
        axes.set_ylim(len(names) - 0.5, -0.5)
        axes.set_xlim(-1, 101)
        axes.set_xlabel("F1 (%)")
        bare(axes)
        legend(canvas, right=True)

    return render(
        draw,
        height=1.2 + len(names) * (0.16 + 0.09 * len(series)),
        alt=f"Dots with 95 % intervals for the F1 of {len(names)} labels. {'; '.join(told)}.",
        caption=f"F1 of each label on {corpus}; lines are 95 % intervals.",
    )


def confusion_figure(run: Predictions) -> Figure | Notice:
    """Draws a row-normalised confusion matrix (Figures 13 and 14 of the paper).

    Args:
        run: Predictions of one model.

    Returns:
        A heat map with percentages in the cells, those on the diagonal framed. It scrolls
        sideways on a phone. A row without instances is left blank. A notice if there is
        neither a gold label nor a tag.
    """
    nothing = lacking([run], "labels", f"{run.record.name} tags nothing either")
    if nothing and not run.masks.any():
        return nothing
    counts = confusion(run.corpus.gold, run.masks)
    gold, found, missed = counts[:-1].sum(), np.trace(counts[:-1, :-1]), counts[:-1, -1].sum()
    model = f"{run.record.name} over {len(run.corpus):,} dialogues"
    return heat_map(
        counts,
        "gold (instances)",
        "predicted",
        alt=(
            f"Heat map of gold against predicted labels for {model}. Of {gold:,} gold labels "
            f"{found:,} were tagged as they are, {missed:,} were given no tag and "
            f"{gold - found - missed:,} another one."
        ),
        caption=(
            f"{model}: what became of each gold label, in percent of its row. Frames mark the "
            "diagonal; the last row holds the turns without a gold label and spare tags."
        ),
    )


def _dot(
    row: str,
    evaluation: Evaluation,
    score: str,
    label: str | None = None,
    stated: float | None = None,
) -> _Dot:
    value, low, high = evaluation.estimate(score, label)
    if label is not None and not evaluation.support[label]:
        return _Dot(row, np.nan, np.nan, np.nan, stated)
    return _Dot(
        row,
        100 * value,
        np.nan if low is None else 100 * low,
        np.nan if high is None else 100 * high,
        stated,
    )


def _published(run: Predictions, level: str, score: str) -> float | None:
    model = load_registry().get(run.record.model)
    key = model.published if model else None
    return None if key is None else published(f"result.{level}.{score}.{key}")


def _shown(dot: _Dot) -> str:
    if np.isnan(dot.value):
        return "not defined"
    if np.isnan(dot.low):
        return f"{dot.value:.1f}"
    return f"{dot.value:.1f} ({dot.low:.1f} to {dot.high:.1f})"
