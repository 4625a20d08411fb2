"""Where commands write: results to standard output, everything else to standard error.

Neither console knows markup: a name or a message with brackets is printed as it is. The text of a
file or a service can't steer the terminal either.
"""

from __future__ import annotations

import json
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import typer
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.table import Table
from rich.text import Text

from cradle_lib.errors import printable

if TYPE_CHECKING:
    import pandas as pd


class Plain(Console):
    """A console on which only the program itself uses colours and moves the cursor."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Renders; control characters are escaped and long texts are truncated."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


out: Final = Plain(highlight=False, soft_wrap=True, markup=False, emoji=False)
err: Final = Plain(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)


def print_json(content: object) -> None:
    """Prints a result for programs."""
    typer.echo(json.dumps(content, indent=2))


def print_table(
    rows: pd.DataFrame | Sequence[Mapping[Any, Any]],
    title: str | None = None,
    caption: str | None = None,
    *,
    right: Collection[str] = (),
) -> None:
    """Prints rows as a table, which has the columns of the first one.

    No cell is wrapped, so that a name can be copied; a wide table is wider than the terminal.

    Args:
        rows: A frame, or cells by column.
        title: Line above the table.
        caption: Line below it.
        right: Columns whose cells end at the right; columns of numbers do so in any case.
    """
    if isinstance(rows, Sequence):
        cells_of = {name: [row[name] for row in rows] for name in (rows[0] if rows else ())}
    else:
        cells_of = rows.to_dict("list")
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    columns = []
    for name, cells in cells_of.items():
        texts = [f"{cell:,}" if isinstance(cell, int) else str(cell) for cell in cells]
        numbers = bool(cells) and {*map(type, cells)} <= {int, float}
        table.add_column(
            str(name),
            justify="right" if name in right or numbers else "left",
            min_width=max(map(cell_len, [str(name), *texts])),
        )
        columns.append(texts)
    for row in zip(*columns, strict=True):
        table.add_row(*row)
    if title:
        out.print(Text(title, style="bold"))
    out.print(table)
    if caption:
        out.print(caption)


def percent(value: float, low: float = math.nan, high: float = math.nan, *, digits: int = 2) -> str:
    """Writes a share in percent, with its interval if there is one."""
    if math.isnan(value):
        return "n/a"
    interval = "" if math.isnan(low) else f" [{100 * low:.1f}, {100 * high:.1f}]"
    return f"{100 * value:.{digits}f}{interval}"
