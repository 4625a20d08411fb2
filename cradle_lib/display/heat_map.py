"""A heat map of one set of labels against another: a model against gold, or two annotators."""

from __future__ import annotations

import pandas as pd
import seaborn as sns
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from cradle_lib.display.cells import address, in_order
from cradle_lib.display.theme import DESKTOP, FAINT, INK, PALETTE, RAMP, theme
from cradle_lib.errors import BookError

# A share that would be written as 0 is left out.
_SHOWN = 0.005


def heat_map(frame: pd.DataFrame, *, rows: str, columns: str, value: str = "value") -> Axes:
    """Draws counts of pairs in percent of their row, equal pairs framed.

    Args:
        frame: Long: one row for each pair of labels that occurs, at most once. Rows and columns
            come in their order of appearance, or in that of their categories.
        rows: Column with the label of the row; its heading includes the sum of the row.
        columns: Column with the label of the column.
        value: Column with the counts. If the frame has a column ``link``, each cell that is not 0
            leads to that address on a page: see :func:`.with_links`.

    Returns:
        The axes, labelled with the names of the columns; for :func:`.show_figure`. A row whose
        sum is 0 is left blank.

    Raises:
        BookError: If a column is missing, or a pair occurs twice.
    """
    if absent := {rows, columns, value} - {*frame.columns}:
        raise BookError(f"the frame has no column {', '.join(map(repr, sorted(absent)))}")
    if frame.duplicated([rows, columns]).any():
        raise BookError(f"a pair of {rows} and {columns} occurs twice: sum its counts before")
    order = [in_order(frame[name]) for name in (rows, columns)]
    counts = frame.pivot(index=rows, columns=columns, values=value)
    counts = counts.reindex(index=order[0], columns=order[1]).fillna(0.0)
    sums = counts.sum(axis=1)
    shares = counts.div(sums.where(sums > 0), axis=0)
    texts = shares.map(lambda share: f"{100 * share:.0f}" if share >= _SHOWN else "")
    with theme():
        size = max(len(counts), len(counts.columns)) * 0.37 + 0.6
        axes = Figure(figsize=(max(DESKTOP, size), max(DESKTOP, size))).subplots()
        sns.heatmap(
            shares.fillna(0.0), annot=texts, fmt="", cmap=RAMP, vmin=0, vmax=1, cbar=False,
            square=True, linewidths=0.4, linecolor=FAINT, annot_kws={"color": INK, "fontsize": 8},
            xticklabels=[str(name) for name in counts.columns],
            yticklabels=[f"{name} ({n:,.0f})" for name, n in sums.items()], ax=axes,
        )  # fmt: skip
        for text in axes.texts:
            # Each is inside its cell, and measuring hundreds of texts is slow.
            text.set_in_layout(False)
        axes.tick_params(axis="x", rotation=90)
        axes.tick_params(axis="y", rotation=0)
        for row, name in enumerate(counts.index):
            if name in counts.columns:
                place = (counts.columns.get_loc(name), row)
                axes.add_patch(Rectangle(place, 1, 1, fill=False, edgecolor=PALETTE[1], lw=1.5))  # type: ignore[arg-type]
        for record in frame.to_dict("records"):
            row, column, count = record[rows], record[columns], record[value]
            if count and (link := address(record)):
                place = (order[1].index(column), order[0].index(row))
                title = f"{rows} {row}, {columns} {column}: {count:,.0f}"
                spot = Rectangle(place, 1, 1, fill=False, edgecolor="none", url=link, gid=title)
                axes.add_patch(spot)
    return axes
