"""Where commands write: results to standard output, everything else to standard error.

Neither console knows markup: a name or a message with brackets is printed as it is. What a file
or a service said can't steer the terminal either.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from cradle_lib.errors import printable


class Plain(Console):
    """A console on which only the program itself uses colours and moves the cursor."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Renders; characters that show nothing are written out, and what is endless is cut."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


_SETTINGS: Final[dict[str, Any]] = {
    "highlight": False,
    "soft_wrap": True,
    "markup": False,
    "emoji": False,
}
out: Final = Plain(**_SETTINGS)
err: Final = Plain(stderr=True, **_SETTINGS)
