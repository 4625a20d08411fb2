"""Names beside the points of a drawing, in place of a legend: :func:`label_points`."""

from __future__ import annotations

from textwrap import fill
from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.transforms import Bbox

# Characters of a line, so that a long name does not take the width of the drawing.
_LINE: Final = 20
# Points from a mark to its name, and how far the name is moved up or down until it is free.
_GAP: Final = 8
_SHIFTS: Final = sorted(range(-96, 97, 8), key=abs)
# Half the size of a mark in pixels.
_MARK: Final = 5


def label_points(axes: Axes, points: pd.DataFrame, x: str, y: str = "value") -> None:
    """Writes the name of each point beside it, so that no name covers another name or a mark.

    Args:
        axes: Where the points are drawn, with its final limits.
        points: One row for each point; the index has the names. Their colours are those of the
            palette, in the order of the rows.
        x: Column with the place on the horizontal axis.
        y: Column with the place on the vertical axis.
    """
    places = axes.transData.transform(points[[x, y]].to_numpy(dtype=float))
    taken = [Bbox([place - _MARK, place + _MARK]) for place in places]
    for number, (name, row) in enumerate(points.iterrows()):
        text = axes.annotate(
            fill(str(name), _LINE),
            (row[x], row[y]),
            xytext=(_GAP, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
            linespacing=1,
            color=f"C{number}",
        )
        for shift in _SHIFTS:
            text.set_position((_GAP, shift))
            box = text.get_window_extent()
            if not any(map(box.overlaps, taken)):
                break
        taken.append(box)
