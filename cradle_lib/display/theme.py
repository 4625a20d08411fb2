"""The style of figures, and the conversion of matplotlib and seaborn drawings to SVG for a page.

A drawing is made in the colours of a light page. On a dark page the style sheet inverts its
lightness and keeps its hues. Text stays text in the SVG, and is never parsed as mathematics.

A shape with a ``url`` becomes a link over the picture, positioned in percent of its size, because
links inside an embedded SVG can't be clicked.

CSS classes: ``cradle-figure``, ``cradle-title``, ``cradle-wide``, ``cradle-scroll``,
``cradle-map``, ``cradle-spot``.
"""

from __future__ import annotations

import base64
import html
import io
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol, runtime_checkable

import matplotlib
import pandas as pd
from cycler import cycler
from matplotlib import pyplot
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from matplotlib.ticker import LogFormatterMathtext, NullFormatter, StrMethodFormatter

from cradle_lib.arguments import checked
from cradle_lib.corpus.needs import Need
from cradle_lib.display.cells import clean
from cradle_lib.display.downloads import link_to_csv, next_file, to_csv
from cradle_lib.display.notice import Notice, lacks
from cradle_lib.errors import BookError

#: Wide enough for a page, narrow enough that 10 point text is readable on a phone, in inches.
WIDTH: Final = 5.2
#: As wide as a page's column on a desktop, in inches; on a phone such a figure scrolls.
DESKTOP: Final = 6.9
INK: Final = "#1f2328"
FAINT: Final = "#c9ced6"
#: Ten colours that can be distinguished with any kind of colour vision, on light and dark pages.
#: The first two are those of Okabe and Ito. A search chose the others: as far as possible from
#: all others under simulated dichromacy (Machado et al. 2009), with a contrast of at least 3.
PALETTE: Final = (
    "#0072b2", "#d55e00", "#9d62ff", "#1e3928", "#2700d4",
    "#8794bb", "#724600", "#a58d8e", "#c88551", "#606946",
)  # fmt: skip
#: Colour map of shares from 0 to 1; text in :data:`INK` is readable on every shade.
RAMP: Final = LinearSegmentedColormap.from_list("cradle", ["#f4f7fa", "#6fc1ee"])

_STYLE: Final = Path(__file__).with_name("book.mplstyle")
_TEXTS: Final = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
_COLOURS: Final = {
    "axes.prop_cycle": cycler(color=PALETTE),
    "grid.color": FAINT,
    **dict.fromkeys(_TEXTS, INK),
}
# A shape with a link as matplotlib writes it: its title, address and path.
_LINKED: Final = re.compile(
    rb'<g id="([^"]*)">\s*<a xlink:href="([^"]*)" target="_blank">\s*'
    rb'<path d="([^"]*)"[^>]*/>\s*</a>\s*</g>\n?'
)
_POINT: Final = re.compile(rb"[ML] (\S+) (\S+)")
# CSS pixels per point.
_PIXELS: Final = 96 / 72
# Margin around a drawing, in inches.
_PAD: Final = 0.05


@runtime_checkable
class Drawing(Protocol):
    """A figure of matplotlib, its axes, or a grid of seaborn."""

    @property
    def figure(self) -> Any:
        """The figure."""


@contextmanager
def theme() -> Iterator[None]:
    """Draws figures in the style of the book, whatever the user's matplotlib settings.

    Text is shown literally: a dollar sign starts no formula. Write Greek letters as characters.
    """
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        pyplot.style.use([_STYLE, _COLOURS])
        yield


@dataclass(frozen=True)
class Picture:
    """A finished figure: title, SVG, alternative text, caption, and links over its shapes.

    A wide figure scrolls sideways on a phone instead of shrinking. ``csv`` has its data, if given,
    and ``file`` the name of the download. The lines ``on_phone`` replace the drawing on a phone.
    """

    title: str
    svg: bytes
    alt: str
    caption: str
    wide: bool
    csv: str | None
    links: str
    file: str
    on_phone: Sequence[str]

    def _repr_html_(self) -> str:
        # With a size, the browser reserves the space before it has loaded the picture.
        width, height = (round(_PIXELS * points) for points in _size(self.svg))
        image = (
            f'<img alt="{html.escape(self.alt)}" width="{width}" height="{height}" '
            f'src="data:image/svg+xml;base64,{base64.b64encode(self.svg).decode()}">'
        )
        if self.links:
            image = (
                '<div class="cradle-map" role="group" aria-label="Cells that lead to their turns: '
                f'arrow keys go from one to the next">{image}{self.links}</div>'
            )
        if self.wide:
            image = (
                f'<div class="cradle-scroll" role="group" aria-label="{html.escape(self.caption)}" '
                f'tabindex="0">{image}</div>'
            )
        kind = (
            "cradle-figure" + " cradle-wide" * self.wide + " cradle-has-list" * bool(self.on_phone)
        )
        lines = "".join(f"<li>{html.escape(line)}</li>" for line in self.on_phone)
        ranked = f'<ol class="cradle-ranked">{lines}</ol>' if lines else ""
        title = f'<p class="cradle-title">{html.escape(self.title)}</p>' if self.title else ""
        downloads = "" if self.csv is None else link_to_csv(self.file, self.caption, self.csv)
        return (
            f'<figure class="{kind}">{title}{image}{ranked}'
            f"<figcaption>{html.escape(self.caption)}</figcaption></figure>{downloads}"
        )

    def __repr__(self) -> str:
        """Gives the title, the caption and the alternative text."""
        return " ".join(filter(None, ("Figure:", self.title, self.caption, self.alt)))


@checked
def show_figure(
    drawing: Drawing | Callable[..., Drawing],
    data: pd.DataFrame | None = None,
    *,
    title: str = "",
    alt: str,
    caption: str,
    on_phone: Sequence[str] = (),
    needs: Need | None = None,
) -> Picture | Notice:
    """Puts a drawing on a page, with its title, caption, alternative text and data.

    Args:
        drawing: A function that draws ``data`` and returns a matplotlib figure, its axes, or a
            seaborn grid. It is called under :func:`theme`. An existing drawing can be given
            instead. The figure is closed, so that a notebook does not show it twice.
        data: The data of the drawing, offered as a CSV file.
        title: What the figure shows: its result, in one sentence.
        alt: Alternative text for readers who can't see the figure: what it shows, and the result.
        caption: One or two sentences.
        on_phone: Lines that replace a wide drawing on a phone, such as its largest numbers.
        needs: What the figure needs of the page's corpus, such as gold ``labels``: see
            :func:`cradle_lib.corpus.needs.unmet`.

    Returns:
        The picture. Elements with a ``url`` are links, with their ``gid`` as the title. A drawing
        wider than :data:`WIDTH` scrolls on a phone, others shrink. A notice if the data are empty
        or the corpus lacks what is needed.

    Raises:
        BookError: If the alternative text or the caption is empty, or nothing was drawn.
    """
    title, alt, caption = clean(title), clean(alt), clean(caption)
    # As in the tables; a format of Python leaves no space.
    title = re.sub(r"(?<=\d)%", " %", title)
    why = lacks(needs)
    if why or (data is not None and not len(data)):
        # A function has no figure yet.
        if isinstance(existing := getattr(drawing, "figure", None), Figure):
            pyplot.close(existing)
        return Notice(f"{why or 'There are no data.'} Not shown: {caption}")
    drawn: Any = drawing
    if callable(drawing):
        with theme():
            drawn = drawing(data)
    if not isinstance(drawn, Drawing):
        found = type(drawn).__name__
        raise BookError(f"the drawing is a {found}. Return a figure, its axes or a seaborn grid.")
    figure = drawn.figure
    try:
        if not alt or not caption:
            raise BookError("a figure needs an alternative text (`alt`) and a caption")
        if isinstance(drawn, Figure | Axes) and figure.get_layout_engine() is None:
            figure.set_layout_engine("constrained")
        with theme():
            svg, links = _take_links(_svg(figure))
        # Points are converted to inches; a picture has two margins, and one more is tolerated.
        wide = _size(svg)[0] / 72 > WIDTH + 3 * _PAD
    finally:
        pyplot.close(figure)
    csv, file = (None, "") if data is None else (to_csv(data), next_file())
    return Picture(title, svg, alt, caption, wide, csv, links, file, on_phone)


def _svg(figure: Figure) -> bytes:
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            if isinstance(axis.get_major_formatter(), LogFormatterMathtext):
                # It writes powers as mathematics, which the style shows literally.
                axis.set_major_formatter(StrMethodFormatter("{x:,g}"))
                axis.set_minor_formatter(NullFormatter())
    buffer = io.BytesIO()
    figure.savefig(
        buffer,
        format="svg",
        transparent=True,
        bbox_inches="tight",
        pad_inches=_PAD,
        metadata={"Date": None, "Creator": None},
    )
    return re.sub(rb"[ \t]+\n", b"\n", buffer.getvalue())


def _size(svg: bytes) -> tuple[float, float]:
    """Width and height of a drawing in points."""
    [(width, height)] = re.findall(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    return float(width), float(height)


def _take_links(svg: bytes) -> tuple[bytes, str]:
    """Replaces shapes with a ``url`` by links over the drawing, with their ``gid`` as the title.

    A heat map has hundreds of links: the Tab key stops only at the first, and arrow keys go from
    one to the next (``book.js``).
    """
    width, height = _size(svg)
    links: list[str] = []
    # matplotlib has escaped titles and addresses.
    for title, address, path in _LINKED.findall(svg):
        xs, ys = zip(*_POINT.findall(path), strict=True)
        across = [100 * float(x) / width for x in xs]
        down = [100 * float(y) / height for y in ys]
        left, top = min(across), min(down)
        links.append(
            f'<a class="cradle-spot" tabindex="{-1 if links else 0}" href="{address.decode()}" '
            f'title="{title.decode()}" style="left:{left:.2f}%;top:{top:.2f}%;'
            f'width:{max(across) - left:.2f}%;height:{max(down) - top:.2f}%"></a>'
        )
    return _LINKED.sub(b"", svg), "".join(links)
