"""A heat map of one set of labels against another: a model against gold, or two annotators."""

from __future__ import annotations

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.colors import Colormap
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cradle_lib.arguments import checked, require_known
from cradle_lib.display.cells import address, in_order
from cradle_lib.display.theme import DESKTOP, FAINT, PALETTE, RAMP, theme
from cradle_lib.errors import BookError

# A smaller share would be written as 0.
_SHOWN = 0.005


@checked
def heat_map(
    frame: pd.DataFrame, *, rows: str, columns: str, value: str = "value", difference: bool = False
) -> Axes:
    """Draws a heat map of counts in percent of their row; the diagonal is framed.

    Args:
        frame: Long: at most one row for each pair of labels. Rows and columns are in order of
            appearance, or of their categories.
        rows: Column with the label of the row; its heading includes the sum of the row.
        columns: Column with the label of the column.
        value: Column with the counts. If the frame has a column ``link``, each cell that is not 0
            links to that address: see :func:`.with_links`.
        difference: Whether values are differences of two shares of a row, -1 to 1, instead of
            counts: blue below 0, red above, in points.

    Returns:
        The axes, labelled with the names of the columns; for :func:`.show_figure`. Cells that round
        to 0 have no text; cells of exactly 0 are not drawn.

    Raises:
        BookError: If a pair occurs twice.
    """
    for column in (rows, columns, value):
        require_known("column", column, [*frame])
    if frame.duplicated([rows, columns]).any():
        raise BookError(f"a pair of {rows} and {columns} occurs twice: sum its counts first")
    down, across = in_order(frame[rows]), in_order(frame[columns])
    names = [str(name) for name in down]
    if not difference:
        sums = frame.groupby(rows, observed=False)[value].sum()
        names = [f"{name} ({sums[name]:,.0f})" for name in down]
    colours: Colormap = RAMP
    if difference:
        # Imported here, because it takes half a second.
        from seaborn import color_palette

        colours = color_palette("vlag", as_cmap=True)
    with theme():
        size = max(DESKTOP, max(len(down), len(across)) * 0.37 + 0.6)
        axes = Figure(figsize=(size, size)).subplots()
        axes.set(xlabel=columns, ylabel=rows, xlim=(0, len(across)), ylim=(len(down), 0))
        axes.set_xticks(np.arange(len(across)) + 0.5, [*map(str, across)], rotation=90)
        axes.set_yticks(np.arange(len(down)) + 0.5, names)
        axes.set_aspect("equal")
        axes.spines[:].set_visible(False)
        for record in frame.to_dict("records"):
            row, column, number = record[rows], record[columns], record[value]
            if not number or pd.isna(number):
                continue
            place = (across.index(column), down.index(row))
            share = number if difference else number / sums[row]
            colour = colours((share + 1) / 2 if difference else share)
            axes.add_patch(Rectangle(place, 1, 1, facecolor=colour, edgecolor=FAINT, lw=0.4))
            if abs(share) >= _SHOWN:
                text = f"{100 * share:+.0f}" if difference else f"{100 * share:.0f}"
                where = (place[0] + 0.5, place[1] + 0.5)
                # Each text is inside its cell, and measuring hundreds for the layout is slow.
                axes.annotate(text, where, fontsize=8, ha="center", va="center", in_layout=False)
            if link := address(record):
                title = f"{rows} {row}, {columns} {column}: {number:,.0f}"
                spot = Rectangle(place, 1, 1, fill=False, edgecolor="none", url=link, gid=title)
                axes.add_patch(spot)
        for row, name in enumerate(down):
            if name in across:
                place = (across.index(name), row)
                axes.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=PALETTE[1], lw=1.5))
    return axes
