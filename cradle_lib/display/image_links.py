"""Parts of a drawing that lead somewhere, such as the cells of a heat map.

A shape that has a ``url`` becomes a link over the picture, in percent of its size, so that it stays
in place however large the picture is shown. In the picture itself nothing could be clicked.

CSS classes: ``cradle-map``, ``cradle-spot``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

_LINKED: Final = re.compile(
    rb'<g id="([^"]*)">\s*<a xlink:href="([^"]*)" target="_blank">\s*'
    rb'<path d="([^"]*)"[^>]*/>\s*</a>\s*</g>\n?'
)
_SIZE: Final = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_POINT: Final = re.compile(rb"[ML] (\S+) (\S+)")


@dataclass(frozen=True, slots=True)
class ImageLink:
    """One part: where it leads and what it is, escaped for HTML, and its place in percent."""

    address: str
    title: str
    left: float
    top: float
    width: float
    height: float


def take_links(svg: bytes) -> tuple[bytes, tuple[ImageLink, ...]]:
    """Takes the shapes with a ``url`` out of what matplotlib wrote; their ``gid`` is the title."""
    width, height = map(float, _SIZE.findall(svg)[0])
    found = []
    for title, link, path in _LINKED.findall(svg):
        xs, ys = zip(*_POINT.findall(path), strict=True)
        across = [100 * float(x) / width for x in xs]
        down = [100 * float(y) / height for y in ys]
        left, top = min(across), min(down)
        box = (left, top, max(across) - left, max(down) - top)
        found.append(ImageLink(link.decode(), title.decode(), *box))
    return _LINKED.sub(b"", svg), tuple(found)


def with_image_links(images: str, links: Sequence[ImageLink]) -> str:
    """Puts links over the markup of a picture.

    A heat map has hundreds: the Tab key stops at one of them, and from there arrow keys go to the
    others (``book.js``).
    """
    if not links:
        return images
    markup = "".join(
        f'<a class="cradle-spot" tabindex="{0 if link is links[0] else -1}" href="{link.address}" '
        f'title="{link.title}" '
        f'style="left:{link.left:.2f}%;top:{link.top:.2f}%;'
        f'width:{link.width:.2f}%;height:{link.height:.2f}%"></a>'
        for link in links
    )
    label = "Cells that lead to their turns: arrow keys go from one to the next"
    return f'<div class="cradle-map" role="group" aria-label="{label}">{images}{markup}</div>'
