"""A picture of the wave engine's cache: what is stored once, what grows, what is taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Canvas
from matplotlib.patches import Rectangle

from cradle_lib.reporting.figures import Figure, Theme, render


@dataclass(frozen=True, slots=True)
class _Slot:
    """One dialogue as it is drawn: lengths in tokens of no particular number.

    Attributes:
        kept: Computed before, and part of the next prompt too.
        waiting: Computed before, but only for this turn.
        lasting: Computed now, and part of the next prompt too.
        passing: Computed now, but only for this turn.
    """

    kept: int
    waiting: int
    lasting: int
    passing: int

    @property
    def new(self) -> int:
        """What is computed now."""
        return self.lasting + self.passing


# One at the start of its prompt, one in the middle of its answer, one late in a long dialogue.
_SLOTS: Final = (_Slot(3, 0, 4, 3), _Slot(9, 3, 0, 1), _Slot(12, 0, 3, 3))
_WIDE: Final = 20


def cache_figure() -> Figure:
    """Draws the prefix, the slots of three dialogues, and one packed forward pass.

    Returns:
        A schematic drawing; it shows no measurement.
    """

    def draw(canvas: Canvas, theme: Theme) -> None:
        axes = canvas.subplots()
        axes.set_axis_off()
        axes.set_xlim(-0.2, _WIDE + 0.2)
        axes.set_ylim(-3.1, 9.3)
        _text(axes, 0, 8.65, "Static prefix: the instruction. Stored once.")
        _bar(axes, theme, 0, 7.5, _WIDE, "prefix")
        _text(axes, 0, 6.65, "Slots: each dialogue's own keys and values")
        for place, slot in enumerate(_SLOTS):
            y = 5.35 - 1.4 * place
            before = slot.kept + slot.waiting
            _bar(axes, theme, 1, y, before, "cached")
            _bar(axes, theme, 1 + before, y, slot.new, "new")
            back = slot.waiting + slot.passing
            _bar(axes, theme, 1 + before + slot.new - back, y, back, "back")
            _text(axes, 0.1, y + 0.42, str(place + 1), middle=True)
        _text(axes, 0, 1.15, "One forward pass: the new tokens of all, no padding")
        start = 1.0
        for place, slot in enumerate(_SLOTS):
            _bar(axes, theme, start, -0.1, slot.new, "new")
            _text(axes, start + slot.new / 2, 0.32, str(place + 1), middle=True, centre=True)
            start += slot.new
        keys = (("cached", "in the cache"), ("new", "computed now"), ("back", "rolled back later"))
        for place, (kind, meaning) in enumerate(keys):
            _bar(axes, theme, 1, -1.2 - 0.85 * place, 1.2, kind, height=0.55)
            _text(axes, 2.6, -0.92 - 0.85 * place, meaning, middle=True)

    return render(
        draw,
        height=4.9,
        alt=(
            "Schematic drawing. On top one long bar, the static prefix, stored once for all. Below "
            "it three bars of different lengths, one slot for each dialogue: first what is in the "
            "cache, then the tokens that are computed now (many, one, several). The end of each "
            "slot is framed: it will be rolled back. At the bottom a single bar in which the new "
            "tokens of the three dialogues stand side by side: one forward pass without padding."
        ),
        caption=(
            "The cache of a wave. Every new token attends to the one copy of the prefix and to its "
            "own dialogue's slot. What the next prompt does not repeat, such as the current-turn "
            "section and the end of the chat template, is rolled back when it comes."
        ),
    )


def _bar(
    axes: Axes, theme: Theme, x: float, y: float, width: float, kind: str, height: float = 0.84
) -> None:
    if kind == "back":
        _frame(axes, theme, x, y, width, height)
        return
    colour = {"prefix": theme.third, "cached": theme.second, "new": theme.first}[kind]
    hatch = "///" if kind == "new" else ""
    axes.add_patch(Rectangle((x, y), width, height, facecolor=colour, alpha=0.35, lw=0))
    axes.add_patch(
        Rectangle((x, y), width, height, fill=False, edgecolor=colour, hatch=hatch, lw=1.4)
    )


def _frame(axes: Axes, theme: Theme, x: float, y: float, width: float, height: float) -> None:
    rim = 0.14
    axes.add_patch(
        Rectangle(
            (x - rim / 2, y - rim),
            width + rim,
            height + 2 * rim,
            fill=False,
            edgecolor=theme.ink,
            linestyle="--",
            lw=1.4,
        )
    )


def _text(
    axes: Axes, x: float, y: float, words: str, *, middle: bool = False, centre: bool = False
) -> None:
    axes.text(x, y, words, va="center" if middle else "bottom", ha="center" if centre else "left")
