"""Vector figures in one style, once for light and once for dark pages.

A drawing is a function that puts its marks on a matplotlib figure, in the colours of
a :class:`Theme`. It is called twice; the page shows the one that fits. Pyplot and its
global state are not used, and the same input gives the same bytes.

Colours are those of Okabe and Ito, told apart also by people who see fewer colours;
no figure relies on colour alone.

References:
    Okabe M, Ito K. Color Universal Design (2008).
"""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure as Canvas

from cradle_lib.files import replacing

# Wide enough for a page, narrow enough that 10 point text is readable on a phone.
WIDTH: Final = 5.2
# As wide as a page's column on a desktop: on a phone such a figure scrolls.
DESKTOP: Final = 6.9
# Inches of a letter at 10 points, on average, and of a legend's mark with what is around it.
LETTER: Final = 0.087
HANDLE: Final = 0.6
# Of runs, in order.
MARKERS: Final = ("o", "s", "D", "^", "v", "P", "X", "*")


@dataclass(frozen=True, slots=True)
class Theme:
    """The colours of a page.

    Attributes:
        name: ``light`` or ``dark``.
        ink: Text and axes.
        faint: Grid lines and marks that stay in the background.
        first: The first colour of a pair: ongoing.
        second: The second colour of a pair: past.
        third: A colour for a third series.
        ramp: From nothing to all, for heat maps: two colours.
        paper: The page behind the figure.
    """

    name: str
    ink: str
    faint: str
    first: str
    second: str
    third: str
    ramp: tuple[str, str]
    paper: str


LIGHT: Final = Theme(
    "light",
    "#1f2328",
    "#c9ced6",
    "#D55E00",
    "#0072B2",
    "#009E73",
    ("#f4f7fa", "#0072B2"),
    "#ffffff",
)
DARK: Final = Theme(
    "dark", "#e6e9ee", "#4a525c", "#E69F00", "#56B4E9", "#009E73", ("#1d232b", "#56B4E9"), "#14181e"
)
Draw = Callable[[Canvas, Theme], None]


@dataclass(frozen=True)
class Figure:
    """A finished figure.

    Attributes:
        light: SVG for light pages.
        dark: SVG for dark pages.
        alt: What a reader who can't see it needs to know.
        caption: What everybody reads under it.
        wide: Whether it scrolls sideways on a phone instead of shrinking.
    """

    light: bytes
    dark: bytes
    alt: str
    caption: str
    wide: bool = False

    def _repr_html_(self) -> str:
        images = "".join(
            f'<img class="only-{name}" alt="{html.escape(self.alt)}" '
            f'src="data:image/svg+xml;base64,{base64.b64encode(svg).decode()}">'
            for name, svg in (("light", self.light), ("dark", self.dark))
        )
        if self.wide:
            label = html.escape(self.caption)
            images = (
                f'<div class="cradle-scroll" role="region" aria-label="{label}" tabindex="0">'
                f"{images}</div>"
            )
        wide = " cradle-wide" if self.wide else ""
        return (
            f'<figure class="cradle-figure{wide}">{images}'
            f"<figcaption>{html.escape(self.caption)}</figcaption></figure>"
        )

    def __repr__(self) -> str:
        """Gives the caption and the alt text, for readers of plain text."""
        return f"Figure: {self.caption} {self.alt}"

    def save(self, path: Path) -> None:
        """Writes the light version.

        Args:
            path: An ``.svg`` file; written to a temporary name first.

        Raises:
            CradleError: If it can't be written there.
        """
        with replacing(path) as part:
            part.write_bytes(self.light)


def render(draw: Draw, *, height: float, alt: str, caption: str, width: float = WIDTH) -> Figure:
    """Draws a figure for light and for dark pages.

    Args:
        draw: Puts the marks on a figure.
        height: In inches.
        alt: What a reader who can't see it needs to know: what is shown, and the finding.
        caption: One or two sentences.
        width: In inches; wider than :data:`WIDTH` makes it scroll on a phone.

    Returns:
        The figure.

    Raises:
        ValueError: If the alt text or the caption is empty.
    """
    if not alt.strip() or not caption.strip():
        raise ValueError("a figure needs an alt text and a caption")
    light, dark = (_svg(draw, theme, width, height) for theme in (LIGHT, DARK))
    return Figure(light, dark, alt, caption, wide=width > WIDTH)


def drawn(draw: Draw, theme: Theme, width: float, height: float) -> Canvas:
    """Puts a drawing on a canvas; see :func:`render`."""
    canvas = Canvas(figsize=(width, height), layout="constrained")
    FigureCanvasSVG(canvas)
    draw(canvas, theme)
    return canvas


def _svg(draw: Draw, theme: Theme, width: float, height: float) -> bytes:
    # The reader's own matplotlibrc must not change the figures of the book.
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        for key, value in _style(theme).items():
            matplotlib.rcParams[key] = value
        canvas = drawn(draw, theme, width, height)
        buffer = io.BytesIO()
        canvas.savefig(
            buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None}
        )
    return re.sub(rb"[ \t]+\n", b"\n", buffer.getvalue())


def _style(theme: Theme) -> dict[Any, Any]:
    return {
        "svg.fonttype": "none",
        "svg.hashsalt": "cradle",
        # A dollar sign in a name is one, and begins no formula.
        "text.parse_math": False,
        "font.family": ["sans-serif"],
        "font.sans-serif": ["DejaVu Sans", "Verdana", "Segoe UI", "Roboto", "sans-serif"],
        "font.size": 11,
        "axes.labelsize": 11,
        "axes.titlesize": 11,
        "xtick.labelsize": 10,
        "ytick.labelsize": 10,
        "legend.fontsize": 10,
        "legend.frameon": False,
        "text.color": theme.ink,
        "axes.labelcolor": theme.ink,
        "axes.edgecolor": theme.ink,
        "xtick.color": theme.ink,
        "ytick.color": theme.ink,
        "axes.linewidth": 0.8,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.axisbelow": True,
        "axes.grid": True,
        "grid.color": theme.faint,
        "grid.linewidth": 0.6,
    }


def colours(theme: Theme) -> tuple[str, ...]:
    """The colours of runs, in order; after the last one they begin again, with other marks."""
    return theme.second, theme.first, theme.third, theme.ink


def wrapped(name: str, inches: float = 1.9) -> str:
    """Breaks a name into lines, so that a long one takes no more than its part of a figure.

    Args:
        name: For instance that of a run.
        inches: How wide a line may be.

    Returns:
        The name, with line breaks at spaces and hyphens; a word that has none stays whole.
    """
    letters, lines = int(inches / LETTER), [""]
    # Unlike textwrap, which keeps a hyphen before a digit: names of models are full of these.
    for piece in re.findall(r"[^\s-]*-+|[^\s-]+\s*|\s+", name):
        if lines[-1] and len((lines[-1] + piece).rstrip()) > letters:
            lines.append("")
        lines[-1] += piece
    return "\n".join(line.rstrip() for line in lines)


def labelled(name: str) -> str:
    """Gives a name that stands in a legend, from which matplotlib leaves out ``_names``."""
    return f"\N{ZERO WIDTH SPACE}{name}" if name.startswith("_") else name


def legend(canvas: Canvas, *, columns: int = 2, right: bool = False) -> None:
    """Says above the panels what the marks of the first one mean.

    Args:
        canvas: The figure.
        columns: Most columns.
        right: Whether it stands on the right, and not on the left.
    """
    handles, names = canvas.axes[0].get_legend_handles_labels()
    columns = max(min(columns, len(names)), 1)
    room = canvas.get_figwidth() / columns - HANDLE
    told = [wrapped(str(name), room) for name in names]
    loc: Final = "outside upper right" if right else "outside upper left"
    canvas.legend(handles, told, loc=loc, ncols=columns)


def bare(axes: Axes, *, grid: str = "x") -> None:
    """Takes away the grid along the other axis, and ticks that carry no number.

    Args:
        axes: To be tidied.
        grid: The axis along which values are read: ``x``, ``y`` or ``none``.
    """
    axes.grid(False)
    axes.tick_params(length=0)
    if grid in ("x", "y"):
        axes.grid(True, axis="x" if grid == "x" else "y")
        axes.spines["left" if grid == "x" else "bottom"].set_visible(grid == "y")
