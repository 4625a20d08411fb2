"""Where commands write: results to standard output, everything else to standard error.

Neither console knows markup: a name or a message with brackets is printed as it is. What a file
or a service said can't steer the terminal either.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, Final

import pandas as pd
import typer
from rich.console import Console, ConsoleOptions, RenderableType
from rich.measure import Measurement
from rich.segment import Segment
from rich.table import Column, Table
from rich.text import Text

from cradle_lib.errors import printable


class Plain(Console):
    """A console on which only the program itself uses colours and moves the cursor."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Renders; characters that show nothing are written out, and what is endless is cut."""
        if isinstance(renderable, Table):
            _keep_words(renderable, self, options or self.options)
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


def _keep_words(table: Table, console: Console, options: ConsoleOptions) -> None:
    """Gives the columns widths at which lines are broken between words only.

    Where even the longest words have no room beside each other, the table is wider than the
    terminal: it can still be read, and a name in pieces can't be copied.
    """
    needs = [_need(column, console, options) for column in table.columns]
    borders = 3 * len(needs) + 1
    room = options.max_width - borders - sum(need.minimum for need in needs)
    if not needs or sum(need.maximum for need in needs) + borders <= options.max_width:
        return
    if sum(need.maximum for need in needs) + borders - 4 <= options.max_width:
        # Enough for all cells in one line each.
        table.show_edge = table.pad_edge = False
        return
    if room < 0:
        table.width = options.max_width - room
    # Those that lack least come first: most cells then stand in one line.
    order = sorted(range(len(needs)), key=lambda place: needs[place].span)
    for done, place in enumerate(order):
        more = max(0, min(needs[place].span, room // (len(order) - done)))
        # Without a least width, a table that is too wide would still lose letters.
        table.columns[place].width = needs[place].minimum + more
        table.columns[place].min_width = needs[place].minimum
        room -= more


def _need(column: Column, console: Console, options: ConsoleOptions) -> Measurement:
    wide = options.update(max_width=10_000)
    cells = [cell for cell in (column.header, *column.cells) if cell]
    texts = [console.render_str(cell) if isinstance(cell, str) else cell for cell in cells]
    found = [Measurement.get(console, wide, text) for text in texts]
    most = max((each.maximum for each in found), default=0)
    longest = max((each.minimum for each in found), default=0)
    return Measurement(most if column.no_wrap else longest, most)


_SETTINGS: Final[dict[str, Any]] = {
    "highlight": False,
    "soft_wrap": True,
    "markup": False,
    "emoji": False,
}
out: Final = Plain(**_SETTINGS)
err: Final = Plain(stderr=True, **_SETTINGS)


def print_json(content: object) -> None:
    """Prints a result for programs."""
    typer.echo(json.dumps(content, indent=2))


def print_table(
    rows: pd.DataFrame | Sequence[Mapping[Any, Any]],
    title: str | None = None,
    caption: str | None = None,
    *,
    right: Collection[str] = (),
    whole: Collection[str] = (),
) -> None:
    """Prints rows as a table, which has the columns of the first one.

    Args:
        rows: A frame, or cells by column.
        title: Line above the table.
        caption: Line below it.
        right: Columns whose cells end at the right; columns of numbers do so in any case.
        whole: Columns whose cells stay on one line.
    """
    frame = rows if isinstance(rows, pd.DataFrame) else pd.DataFrame(rows)
    table = Table(title=title and Text(title), caption=caption)
    for name, cells in frame.items():
        at_right = name in right or cells.dtype.kind in "if"
        table.add_column(str(name), justify="right" if at_right else "left", no_wrap=name in whole)
    for row in frame.itertuples(index=False):
        table.add_row(*(f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in row))
    out.print(table)


def percent(value: float, low: float = math.nan, high: float = math.nan, *, digits: int = 2) -> str:
    """Writes a share in percent, with its interval if there is one."""
    if math.isnan(value):
        return "n/a"
    interval = "" if math.isnan(low) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * value:.{digits}f}{interval}"
