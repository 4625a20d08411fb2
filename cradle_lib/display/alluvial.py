"""An alluvial diagram: how things flow through stages, and where they leave."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path

from cradle_lib.display.cells import in_order, missing
from cradle_lib.display.theme import DESKTOP, INK, PALETTE, PAPER, theme
from cradle_lib.errors import BookError

# In parts of the height and of the way from one stage to the next.
_GAP: Final = 0.035
_BAR: Final = 0.06


def alluvial(
    frame: pd.DataFrame,
    *,
    stages: Sequence[str],
    value: str = "value",
    colours: Mapping[Any, str] | None = None,
) -> Axes:
    """Draws how things flow through stages.

    Args:
        frame: One row for each path: its step at each stage, and how many take it. What has left
            the flow has no step (a missing value, or empty text). Steps come from above in their
            order of appearance, or in that of their categories.
        stages: Columns with the steps, from left to right.
        value: Column with the counts.
        colours: Colours of paths, by the last step that they reach; else each last step has one of
            the palette's.

    Returns:
        The axes; for :func:`.show_figure`. A path of size 0 is left out.

    Raises:
        BookError: If a column is missing, there is nothing to draw, or a path comes back after it
            has left.
    """
    if absent := {*stages, value} - {*frame.columns}:
        raise BookError(f"the frame has no column {', '.join(map(repr, sorted(absent)))}")
    frame = frame[frame[value] > 0]
    if frame.empty or len(stages) < 2:
        raise BookError("an alluvial diagram needs two stages and a path between them")
    steps = {name: [None if missing(x) or x == "" else x for x in frame[name]] for name in stages}
    order = [
        [step for step in in_order(frame[name]) if step in set(steps[name]) - {None}]
        for name in stages
    ]
    ranked = sorted(
        zip(zip(*steps.values(), strict=True), frame[value].astype(float), strict=True),
        key=lambda item: [
            -1 if step is None else ranks.index(step)
            for step, ranks in zip(item[0], order, strict=True)
        ],
    )
    last = []
    for path, _ in ranked:
        taken = [step for step in path if step is not None]
        if not taken or path[: len(taken)] != tuple(taken):
            raise BookError(f"the path {path} comes back after it has left, or has no first step")
        last.append(taken[-1])
    ends = list(dict.fromkeys(last))
    chosen = {end: PALETTE[i % len(PALETTE)] for i, end in enumerate(ends)} | dict(colours or {})
    # Room is left for the gaps of the fullest stage.
    scale = (1 - (max(map(len, order)) - 1) * _GAP) / sum(size for _, size in ranked)
    blocks = _blocks(ranked, order, scale)
    free = {key: top for key, (top, _) in blocks.items()}
    with theme():
        axes = Figure(figsize=(DESKTOP, 5.2)).subplots()
        for (path, size), end in zip(ranked, last, strict=True):
            tops = []
            for key in enumerate(step for step in path if step is not None):
                tops.append(free[key])
                free[key] -= size * scale
            for stage, (start, stop) in enumerate(pairwise(tops)):
                axes.add_patch(_ribbon(stage, start, stop, size * scale, chosen[end]))
        for (stage, step), (top, size) in blocks.items():
            corner = (stage - _BAR / 2, top - size * scale)
            axes.add_patch(Rectangle(corner, _BAR, size * scale, color=INK, lw=0))
            axes.text(
                stage + _BAR, top - size * scale / 2, f"{step}: {size:,.0f}", va="center",
                fontsize=9, bbox={"facecolor": PAPER, "alpha": 0.75, "lw": 0, "pad": 1.5},
            )  # fmt: skip
        for stage, name in enumerate(stages):
            axes.text(stage, 1.03, name, ha="center", va="bottom", fontsize=10)
        axes.set(xlim=(-0.2, len(stages) - 0.2), ylim=(0, 1.1))
        axes.set_axis_off()
    return axes


def _blocks(
    ranked: Sequence[tuple[tuple[Hashable, ...], float]],
    order: Sequence[Sequence[Hashable]],
    scale: float,
) -> dict[tuple[int, Hashable], tuple[float, float]]:
    """Finds the top and the size of each step of each stage."""
    found = {}
    for stage, steps in enumerate(order):
        sizes = [sum(size for path, size in ranked if path[stage] == step) for step in steps]
        # What has left leaves from above, so that what goes on stays level with itself.
        top = sum(sizes) * scale + (len(steps) - 1) * _GAP
        for step, size in zip(steps, sizes, strict=True):
            found[stage, step] = (top, size)
            top -= size * scale + _GAP
    return found


def _ribbon(stage: int, start: float, end: float, height: float, colour: str) -> PathPatch:
    left, right, half = stage + _BAR / 2, stage + 1 - _BAR / 2, stage + 0.5
    corners = [
        (left, start), (half, start), (half, end), (right, end),
        (right, end - height), (half, end - height), (half, start - height), (left, start - height),
        (left, start),
    ]  # fmt: skip
    curve = [Path.CURVE4] * 3
    codes = [Path.MOVETO, *curve, Path.LINETO, *curve, Path.CLOSEPOLY]
    return PathPatch(Path(corners, codes), facecolor=colour, alpha=0.55, lw=0)
