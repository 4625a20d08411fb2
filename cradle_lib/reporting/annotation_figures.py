"""Figures of an annotation: agreement with intervals, confusion of two, and the flow to gold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import PathPatch, Rectangle
from matplotlib.path import Path as Outline

from cradle_lib.annotation.adjudication import Adjudication
from cradle_lib.annotation.voting import Outcome
from cradle_lib.reporting.figures import DESKTOP, Figure, Theme, render


def adjudication_figure(result: Adjudication) -> Figure:
    """Draws how the dialogues flow from two annotations to gold, as an alluvial diagram.

    Args:
        result: The adjudication.

    Returns:
        Four columns: teams, two annotations, the vote, and the kind of final mismatch.
    """
    teams = {name: f"team {e[0].team}" for name, e in result.annotations.by_dialogue.items()}
    paths = Counter((teams[name], *_STAGES[outcome]) for name, outcome in result.outcomes.items())
    flows = sorted(paths.items(), key=lambda item: [_order(step) for step in item[0]])
    counts = result.counts
    final = sum(counts[o] for o in Outcome if o not in (Outcome.EXACT, Outcome.RESOLVED))

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        colours = {
            Outcome.EXACT: theme.faint,
            Outcome.RESOLVED: theme.third,
            Outcome.SAME_LABELS_3: theme.second,
            Outcome.SAME_LABELS_2: theme.second,
            Outcome.CONFLICT: theme.first,
        }
        by_path = {steps: outcome for outcome, steps in _STAGES.items()}
        _alluvial(axes, theme, flows, [colours[by_path[p[1:]]] for p, _ in flows])
        heads = ("team", "two annotations", "vote of three", "senior")
        for column, head in enumerate(heads):
            axes.text(column, 1.03, head, ha="center", va="bottom", fontsize=10)
        axes.set_xlim(-0.2, len(heads) - 0.2)
        axes.set_ylim(0, 1.1)
        axes.set_axis_off()

    parts = ", ".join(f"{str(o).removeprefix('final mismatch, ')} {counts[o]:,}" for o in Outcome)
    return render(
        draw,
        width=DESKTOP,
        height=5.2,
        alt=(
            f"Alluvial drawing of {len(result.outcomes):,} dialogues. After two annotations "
            f"{counts[Outcome.EXACT]:,} agree exactly; the vote resolves "
            f"{counts[Outcome.RESOLVED]:,} of the rest; the senior decides {final:,}. In full: "
            f"{parts}."
        ),
        caption=(
            "From two annotations to gold: dialogues on which both agree, those that a third "
            "vote resolves, and those that it leaves to the senior, by kind."
        ),
    )


_STAGES: Final[Mapping[Outcome, tuple[str, ...]]] = {
    Outcome.EXACT: ("exact agreement", "", ""),
    Outcome.RESOLVED: ("mismatch", "resolved 2:1", ""),
    Outcome.SAME_LABELS_3: ("mismatch", "final mismatch", "labels agree 3:0"),
    Outcome.SAME_LABELS_2: ("mismatch", "final mismatch", "labels agree 2:1"),
    Outcome.CONFLICT: ("mismatch", "final mismatch", "turn conflict"),
}
_ORDER: Final = [step for steps in _STAGES.values() for step in steps if step]
_GAP: Final = 0.035
_BAR: Final = 0.06


def _order(step: str) -> tuple[int, str]:
    return (_ORDER.index(step) if step in _ORDER else -1, step)


def _alluvial(
    axes: Axes,
    theme: Theme,
    flows: Sequence[tuple[tuple[str, ...], int]],
    colours: Sequence[str],
) -> None:
    """Draws blocks for the steps of each column, and a ribbon for each path between them."""
    total = sum(size for _, size in flows)
    blocks: dict[tuple[int, str], tuple[float, float]] = {}
    for column in range(len(flows[0][0])):
        steps = sorted({path[column] for path, _ in flows if path[column]}, key=_order)
        share = sum(n for path, n in flows if path[column]) / total
        # The dialogues that are done leave the flow; those that go on stay level with it.
        top = share * (1 - 3 * _GAP) + (2 + len(steps) - 1) * _GAP
        for step in steps:
            size = sum(n for path, n in flows if path[column] == step)
            height = size / total * (1 - 3 * _GAP)
            blocks[column, step] = (top, height)
            axes.add_patch(
                Rectangle((column - _BAR / 2, top - height), _BAR, height, color=theme.ink, lw=0)
            )
            axes.text(
                column + _BAR,
                top - height / 2,
                f"{step}\n{size:,}",
                va="center",
                fontsize=9,
                bbox={"facecolor": theme.paper, "alpha": 0.75, "lw": 0, "pad": 1.5},
            )
            top -= height + _GAP
    used = {key: top for key, (top, _) in blocks.items()}
    left: dict[tuple[int, str, int], float] = {}
    for index, (path, size) in enumerate(flows):
        height = size / total * (1 - 3 * _GAP)
        for column, step in enumerate(path):
            if step:
                left[column, step, index] = used[column, step]
                used[column, step] -= height
        for column in range(len(path) - 1):
            if path[column + 1]:
                start = left[column, path[column], index]
                end = left[column + 1, path[column + 1], index]
                _ribbon(axes, column, start, end, height, colours[index])


def _ribbon(axes: Axes, column: int, start: float, end: float, height: float, colour: str) -> None:
    left, right, half = column + _BAR / 2, column + 1 - _BAR / 2, column + 0.5
    corners = [
        (left, start), (half, start), (half, end), (right, end),
        (right, end - height), (half, end - height), (half, start - height), (left, start - height),
        (left, start),
    ]  # fmt: skip
    curve = [Outline.CURVE4] * 3
    codes = [Outline.MOVETO, *curve, Outline.LINETO, *curve, Outline.CLOSEPOLY]
    axes.add_patch(PathPatch(Outline(corners, codes), facecolor=colour, alpha=0.55, lw=0))
