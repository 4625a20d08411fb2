"""Links over a drawing, such as those of the cells of a heat map.

A shape that has a ``url`` becomes a link over the picture, in percent of its size, so that it stays
in place however large the picture is shown. In the picture itself nothing could be clicked.

CSS classes: ``cradle-map``, ``cradle-spot``.
"""

from __future__ import annotations

import re
from typing import Final

_LINKED: Final = re.compile(
    rb'<g id="([^"]*)">\s*<a xlink:href="([^"]*)" target="_blank">\s*'
    rb'<path d="([^"]*)"[^>]*/>\s*</a>\s*</g>\n?'
)
_SIZE: Final = re.compile(rb'viewBox="0 0 ([\d.]+) ([\d.]+)"')
_POINT: Final = re.compile(rb"[ML] (\S+) (\S+)")


def take_links(svg: bytes) -> tuple[bytes, str]:
    """Takes the shapes with a ``url`` out of what matplotlib wrote; their ``gid`` is the title.

    A heat map has hundreds: the Tab key stops at one of them, and from there arrow keys go to the
    others (``book.js``).

    Returns:
        The picture without these shapes, and the markup of links over it; empty without any.
    """
    width, height = map(float, _SIZE.findall(svg)[0])
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
