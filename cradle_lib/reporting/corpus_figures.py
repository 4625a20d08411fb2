"""Figures of a corpus: its labels, its lengths, and where in a dialogue labels fall."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import numpy as np
from matplotlib.figure import Figure as Canvas
from matplotlib.ticker import MaxNLocator
from numpy.typing import NDArray

from cradle_lib.labels import CRISIS_TYPES, TEMPORAL_STATES
from cradle_lib.reporting.figures import Figure, Theme, bare, legend, render
from cradle_lib.reporting.notice import Notice

_KINDS: Final = ("alert", *CRISIS_TYPES.values())


def label_figure(counts: Mapping[str, int], corpus: str) -> Figure | Notice:
    """Draws how often each label occurs, ongoing beside past.

    Args:
        counts: Occurrences of all sixteen labels.
        corpus: Name of the corpus, for the caption.

    Returns:
        Paired bars, one pair for alerts and one for each crisis type; a notice without labels.
    """
    if not any(counts.values()):
        return Notice(f"No turn of {corpus} has a label: there are none to draw.")
    stems = ["alert", *(f"confirm_{crisis}" for crisis in CRISIS_TYPES)]
    pairs = [tuple(counts[f"{stem}_{state}"] for state in TEMPORAL_STATES) for stem in stems]
    total = sum(map(sum, pairs))
    ongoing = sum(pair[0] for pair in pairs)
    most = max(counts, key=lambda label: counts[label])

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        rows = np.arange(len(pairs))
        for index, (state, colour) in enumerate(
            zip(TEMPORAL_STATES, (theme.first, theme.second), strict=True)
        ):
            values = [pair[index] for pair in pairs]
            bars = axes.barh(rows + (index - 0.5) * 0.4, values, 0.36, color=colour, label=state)
            axes.bar_label(bars, fmt="%d", padding=2, fontsize=8, color=theme.ink)
        axes.set_yticks(rows, _KINDS)
        axes.invert_yaxis()
        axes.margins(x=0.1)
        axes.set_xlabel("labels")
        legend(canvas, right=True)
        bare(axes)

    return render(
        draw,
        height=4.2,
        alt=(
            f"Paired bars of {total:,} labels: {ongoing:,} ongoing and {total - ongoing:,} past. "
            f"The most frequent label is {most}, with {counts[most]:,}."
        ),
        caption=f"How often each label occurs in {corpus}, ongoing and past.",
    )


def length_figure(lengths: Mapping[int, int], corpus: str) -> Figure:
    """Draws how long dialogues are.

    Args:
        lengths: Dialogues by number of turns (rows), not empty.
        corpus: Name of the corpus, for the caption.

    Returns:
        One bar for each number of turns.
    """
    sizes, counts = np.array(list(lengths)), np.array(list(lengths.values()))
    mean = float(np.average(sizes, weights=counts))

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        axes.bar(sizes, counts, 0.8, color=theme.second)
        axes.axvline(mean, color=theme.first, linestyle="--", linewidth=1.5)
        axes.annotate(
            f"mean {mean:.2f}",
            (mean, 1),
            (4, -2),
            xycoords=("data", "axes fraction"),
            textcoords="offset points",
            va="top",
            fontsize=9,
        )
        axes.margins(y=0.15)
        axes.set_xlabel("turns in a dialogue")
        axes.set_ylabel("dialogues")
        axes.xaxis.set_major_locator(MaxNLocator(integer=True))
        bare(axes, grid="y")

    return render(
        draw,
        height=2.8,
        alt=(
            f"Histogram of the lengths of {counts.sum():,} dialogues, from {sizes.min()} to "
            f"{sizes.max()} turns with a mean of {mean:.2f}. "
            f"Most frequent: {sizes[counts.argmax()]} turns."
        ),
        caption=f"How many turns the dialogues of {corpus} have.",
    )


def position_figure(
    positions: Mapping[str, tuple[NDArray[np.int64], NDArray[np.int64]]], corpus: str
) -> Figure | Notice:
    """Draws on which turns alerts and confirms fall, for each reveal timing.

    Args:
        positions: For each timing, how many alerts and how many confirms stand on turn 1, 2
            and so on. Two arrays of shape (turns,).
        corpus: Name of the corpus, for the caption.

    Returns:
        One panel for each timing, with a common horizontal axis; a notice without labels.
    """
    if not any(counts.any() for pair in positions.values() for counts in pair):
        return Notice(f"No turn of {corpus} has a label: they have no place to draw.")
    highest = max(1, *(int(counts.max()) for pair in positions.values() for counts in pair))
    medians = [f"{timing}: {_median(confirms)}" for timing, (_, confirms) in positions.items()]

    def draw(canvas: Canvas, theme: Theme) -> None:
        panels = canvas.subplots(len(positions), 1, sharex=True, sharey=True, squeeze=False)[:, 0]
        for axes, (timing, (alerts, confirms)) in zip(panels, positions.items(), strict=True):
            turns = np.arange(1, len(alerts) + 1)
            axes.plot(turns, alerts, "o--", color=theme.first, markersize=4, label="alert")
            axes.plot(turns, confirms, "s-", color=theme.second, markersize=4, label="confirm")
            axes.set_title(f"{timing} ({alerts.sum() + confirms.sum():,} labels)", loc="left")
            axes.xaxis.set_major_locator(MaxNLocator(integer=True))
            axes.set_ylim(0, 1.1 * highest)
            bare(axes, grid="y")
        legend(canvas, right=True)
        panels[-1].set_xlabel("turn")
        panels[len(panels) // 2].set_ylabel("labels")

    return render(
        draw,
        height=0.9 + 1.5 * len(positions),
        alt=(
            "Lines that show how many alerts and confirms stand on each turn. "
            f"Median turn of the confirms by reveal timing: {'; '.join(medians)}."
        ),
        caption=f"Where in the dialogues of {corpus} the labels fall, by reveal timing.",
    )


def _median(counts: Sequence[int] | NDArray[np.int64]) -> str:
    turns = np.repeat(np.arange(1, len(counts) + 1), counts)
    return f"turn {np.median(turns):g}" if len(turns) else "no confirm"
