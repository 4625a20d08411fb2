"""Consoles of the commands: results go to standard output, everything else to standard error.

Neither console interprets markup, so brackets in names and messages are printed as they are.
Control characters in the text of files and services are escaped.
"""

from __future__ import annotations

import json
import math
import shlex
import shutil
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
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
    """A console on which printed text can't change colours or move the cursor."""

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Renders with control characters escaped and long texts truncated."""
        for segment in super().render(renderable, options):
            yield segment if segment.control else segment._replace(text=printable(segment.text))


out: Final = Plain(highlight=False, soft_wrap=True, markup=False, emoji=False)
err: Final = Plain(stderr=True, highlight=False, soft_wrap=True, markup=False, emoji=False)
_NO_INTERVAL: Final = "[-]"


def command(*words: str) -> str:
    """Gives a command of this project to print, in the form in which the current one was typed."""
    typed = Path(sys.argv[0])
    if typed.parts[-2:] == ("cli", "__main__.py"):
        program = [sys.orig_argv[0], "-m", "cradle_lib.cli"]
    elif typed.stem != "cradle" or sys.argv[0] == shutil.which("cradle"):
        program = ["cradle"]
    else:
        program = [sys.argv[0]]
    return shlex.join([*program, *words])


def print_json(content: object) -> None:
    """Prints a result as JSON."""
    typer.echo(json.dumps(content, indent=2))


def print_table(
    rows: pd.DataFrame | Sequence[Mapping[Any, Any]],
    title: str | None = None,
    caption: str | None = None,
    *,
    right: Collection[str] = (),
) -> None:
    """Prints rows as a table.

    Cells are not wrapped, so that names can be copied; a table may be wider than the terminal.

    Args:
        rows: A frame, or mappings from columns to cells; the first one determines the columns.
        title: Line above the table.
        caption: Line below it.
        right: Columns that are aligned right; numeric columns always are.
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


def percent(value: float, *ends: float, digits: int = 2) -> str:
    """Formats a share in percent, with the ends of its interval; a dash if these are NaN."""
    if math.isnan(value):
        return "n/a"
    shown, *interval = (f"{100 * part:.{digits}f}" for part in (value, *ends))
    if not interval:
        return shown
    return f"{shown} {_NO_INTERVAL}" if math.isnan(ends[0]) else f"{shown} [{', '.join(interval)}]"


def interval_note(rows: Sequence[Mapping[Any, str]]) -> str | None:
    """Explains the dashes that :func:`percent` wrote in these rows; ``None`` if there are none."""
    if not any(cell.endswith(_NO_INTERVAL) for row in rows for cell in row.values()):
        return None
    return (
        f"{_NO_INTERVAL}: no interval, because the score is the same in at least 95 % of the "
        "draws, undefined in more than 5 %, or outside the middle 95 % of them."
    )
