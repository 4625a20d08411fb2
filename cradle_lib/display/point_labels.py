"""Names beside the points of a drawing, in place of a legend: :func:`label_points`."""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill
from typing import Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgb
from matplotlib.text import Annotation
from matplotlib.transforms import Bbox

from cradle_lib.arguments import checked, require_known

# Characters per line, so that a long name does not take the width of the drawing.
_LINE: Final = 20
# Distance from a mark to its name, and the vertical shifts tried to avoid overlaps, in points.
_GAP: Final = 8
_SHIFTS: Final = sorted(range(-96, 97, 8), key=abs)
# Half the size of a mark in pixels.
_MARK: Final = 5


@checked
def label_points(axes: Axes, points: pd.DataFrame, x: str) -> None:
    """Writes the name of each point next to it, without covering another name or a mark.

    If there is room, lines drawn by ``hlines`` or ``vlines`` are not covered either.

    Args:
        axes: The axes of the points, with final limits. Its figure gets the layout
            ``constrained``, unless it has one.
        points: One row for each point; the index has the names, the column ``value`` the vertical
            position, and a column ``color``, if there is one, the colours of the names. By default
            they have the colours of the palette, in the order of the rows.
        x: Column with the horizontal position.
    """
    for column in (x, "value"):
        require_known("column", column, [*points])
    figure = axes.get_figure(root=True)
    if figure is None:
        raise ValueError("the axes belong to no figure")
    if figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")
    texts = [
        axes.annotate(
            fill(str(name), _LINE),
            (row[x], row["value"]),
            xytext=(_GAP, 0),
            textcoords="offset points",
            va="center",
            fontsize=10,
            linespacing=1,
            color=_darker(row.get("color", f"C{number}")),
        )
        for number, (name, row) in enumerate(points.iterrows())
    ]
    # The layout makes room for the names, which moves the points; the second time only slightly.
    for _ in range(2):
        figure.draw_without_rendering()
        places = axes.transData.transform(points[[x, "value"]].to_numpy(dtype=float))
        taken = [Bbox([place - _MARK, place + _MARK]) for place in places]
        segments = [
            axes.transData.transform(segment)
            for lines in axes.collections
            if isinstance(lines, LineCollection)
            for segment in lines.get_segments()
            # A segment with an undefined end is empty.
            if len(segment)
        ]
        intervals = [Bbox([ends.min(axis=0), ends.max(axis=0)]) for ends in segments]
        for text in texts:
            taken.append(_place(text, taken, intervals))


def _place(text: Annotation, taken: Sequence[Bbox], intervals: Sequence[Bbox]) -> Bbox:
    """Moves a name up or down until it covers no name or mark and, if possible, no interval.

    Gives the bounding box of the name.
    """
    for covered in ([*taken, *intervals], taken):
        for shift in _SHIFTS:
            text.set_position((_GAP, shift))
            box = text.get_window_extent()
            if not any(map(box.overlaps, covered)):
                return box
    return box


def _darker(color: str) -> tuple[float, ...]:
    """Mixes a colour with ink, so that small text in it is readable."""
    pairs = zip(to_rgb(color), to_rgb("black"), strict=True)
    return tuple(0.65 * own + 0.35 * ink for own, ink in pairs)
