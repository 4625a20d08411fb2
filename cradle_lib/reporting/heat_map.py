"""The confusion matrix as a heat map: of a model against gold, or of two annotators."""

from __future__ import annotations

from typing import Final

import numpy as np
from matplotlib.colors import LinearSegmentedColormap, to_rgb
from matplotlib.figure import Figure as Canvas
from numpy.typing import NDArray

from cradle_lib.labels import short
from cradle_lib.reporting.figures import DESKTOP, Figure, Theme, bare, render
from cradle_lib.scoring.confusion import CELLS, normalize_rows

# A share that would be written as 0 is left out.
_SHOWN: Final = 0.005


def heat_map(
    counts: NDArray[np.int64], rows: str, columns: str, *, alt: str, caption: str
) -> Figure:
    """Draws a confusion matrix in percent of its rows, the diagonal framed.

    Args:
        counts: What :func:`cradle_lib.scoring.confusion.confusion` gives. Shape (17, 17).
        rows: Whose labels the rows are; the number of each stands beside it.
        columns: Whose labels the columns are.
        alt: What a reader who can't see it needs to know.
        caption: One or two sentences.

    Returns:
        The figure. It scrolls sideways on a phone. A row without instances is left blank.
    """
    shares = np.nan_to_num(normalize_rows(counts))
    names = [short(cell) for cell in CELLS]
    support = counts.sum(axis=1)
    places = np.arange(len(CELLS))
    edges = np.arange(len(CELLS) + 1) - 0.5

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        colours = LinearSegmentedColormap.from_list(theme.name, list(theme.ramp))
        axes.pcolormesh(
            edges, edges, shares, cmap=colours, vmin=0, vmax=1,
            edgecolors=theme.faint, linewidth=0.4,
        )  # fmt: skip
        for row, column in np.argwhere(shares >= _SHOWN):
            share = shares[row, column]
            axes.text(
                column, row, f"{100 * share:.0f}", ha="center", va="center", fontsize=8,
                color=_readable(colours(share)[:3]),
            )  # fmt: skip
        for place in places:
            corners = np.array([-0.5, 0.5, 0.5, -0.5, -0.5])
            axes.plot(place + corners, place + np.roll(corners, 1), color=theme.third, lw=1.5)
        axes.set_xticks(places, names, rotation=90)
        axes.set_yticks(places, [f"{name} ({n})" for name, n in zip(names, support, strict=True)])
        axes.set_ylim(edges[-1], edges[0])
        axes.set_aspect("equal")
        axes.set_xlabel(columns)
        axes.set_ylabel(rows)
        bare(axes, grid="none")

    return render(draw, width=DESKTOP, height=DESKTOP - 0.2, alt=alt, caption=caption)


def _readable(background: tuple[float, float, float]) -> str:
    """Black or white, whichever stands out more (WCAG 2 relative luminance)."""
    linear = [
        c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in to_rgb(background)
    ]
    luminance = float(np.dot([0.2126, 0.7152, 0.0722], linear))
    return "black" if luminance > 0.179 else "white"
