"""Small tables that read well on a page, on a phone and in a screen reader.

A :class:`Table` holds what is shown and, beside it, the unrounded values, so that
its CSV says more than its HTML. Everything in it is escaped: no text can become
markup.

CSS classes: ``cradle-scroll`` (the box that scrolls sideways), ``cradle-table``,
``cradle-note``, ``num``, ``published``, ``best``, ``ci`` (an interval in small type).
"""

from __future__ import annotations

import csv
import hashlib
import html
import io
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count as count_up
from itertools import groupby
from typing import Final, Literal

from cradle_lib.display.escaping import markdown, with_code

Kind = Literal["text", "num", "published"]
DASH: Final = "\N{EN DASH}"
MISSING: Final = DASH
UNDEFINED: Final = "n/a"
MISSING_NOTE: Final = f"{MISSING} not stated in the text of the paper."
UNDEFINED_NOTE: Final = f"{UNDEFINED} the label is never gold in these dialogues."


_NUMBERS: Final = count_up(1)


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell.

    Attributes:
        text: What is shown.
        value: The unrounded value for the CSV; ``None`` stands for ``text`` itself.
        interval: Lower and upper bound, unrounded and in the unit of ``value``.
        interval_text: The interval as shown, in small type.
        best: Whether it is marked as the best of its column.
    """

    text: str
    value: float | None = None
    interval: tuple[float, float] | None = None
    interval_text: str = ""
    best: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title and what it holds."""

    title: str
    kind: Kind = "num"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: its cells, and the heading under which it stands, if any.

    Attributes:
        cells: As many as the table has columns; the first one names the row.
        group: Neighbouring rows of the same group stand under one heading.
        published: Whether the whole row shows the paper's values.
    """

    cells: tuple[Cell, ...]
    group: str = ""
    published: bool = False


@dataclass(frozen=True)
class Table:
    """A table with a caption.

    Attributes:
        caption: One sentence that says what the table shows.
        columns: Titles must not be empty; the first column names the rows.
        rows: In the order shown.
        notes: Sentences under the table; text between backticks is shown as code.
    """

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Refuses ragged rows, empty titles and an empty caption."""
        if not self.caption.strip() or not all(c.title.strip() for c in self.columns):
            raise ValueError("a table needs a caption and a title for every column")
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise ValueError(
                    f"{self.caption!r}: a row has {len(row.cells)} cells "
                    f"for {len(self.columns)} columns"
                )

    def _repr_html_(self) -> str:
        # Two tables of a page may be alike to the last cell, but an id stands once.
        name = f"t{next(_NUMBERS)}-" + hashlib.sha256(self.to_csv().encode()).hexdigest()[:10]
        head = "".join(
            f'<th scope="col"{_css(column.kind)}>{html.escape(column.title)}</th>'
            for column in self.columns
        )
        body = "".join(self._group(title, list(rows)) for title, rows in self._groups())
        notes = "".join(f"<p>{with_code(note)}</p>" for note in self.notes)
        return (
            f'<div class="cradle-scroll" role="group" aria-labelledby="{name}" tabindex="0">'
            f'<table class="cradle-table"><caption id="{name}">'
            f"<span>{html.escape(self.caption)}</span></caption>"
            f"<thead><tr>{head}</tr></thead>{body}</table></div>"
            + (f'<div class="cradle-note">{notes}</div>' if notes else "")
        )

    def _groups(self) -> Iterable[tuple[str, Iterable[Row]]]:
        return groupby(self.rows, key=lambda row: row.group)

    def _group(self, title: str, rows: Sequence[Row]) -> str:
        heading = (
            f'<tr class="group"><th scope="rowgroup" colspan="{len(self.columns)}">'
            f"<span>{html.escape(title)}</span></th></tr>"
            if title
            else ""
        )
        return f"<tbody>{heading}{''.join(self._row(row) for row in rows)}</tbody>"

    def _row(self, row: Row) -> str:
        cells = []
        for index, (column, cell) in enumerate(zip(self.columns, row.cells, strict=True)):
            content = html.escape(cell.text)
            if cell.interval_text:
                content += f' <span class="ci">{html.escape(cell.interval_text)}</span>'
            classes = _css("" if column.kind == "text" else column.kind, "best" * cell.best)
            if index == 0:
                cells.append(f'<th scope="row">{content}</th>')
            else:
                cells.append(f"<td{classes}>{content}</td>")
        return f"<tr{_css('published' * row.published)}>{''.join(cells)}</tr>"

    def to_markdown(self) -> str:
        """Writes a pipe table, caption first; best values are bold."""
        lines = [f"**{markdown(self.caption)}**", ""]
        lines.append("| " + " | ".join(markdown(c.title) for c in self.columns) + " |")
        marks = ("---" if c.kind == "text" else "---:" for c in self.columns)
        lines.append("| " + " | ".join(marks) + " |")
        for title, rows in self._groups():
            if title:
                lines.append(f"| *{markdown(title)}* |" + " |" * (len(self.columns) - 1))
            lines.extend("| " + " | ".join(map(_pipe_cell, row.cells)) + " |" for row in rows)
        return (
            "\n".join([*lines, *(f"\n{markdown(note, code=True)}" for note in self.notes)]) + "\n"
        )

    def to_csv(self) -> str:
        """Writes comma-separated values with unrounded numbers.

        Returns:
            One line per row. A column with intervals is followed by its bounds; a
            column ``group`` comes first if rows are grouped.
        """
        spread = [any(row.cells[i].interval for row in self.rows) for i in range(len(self.columns))]
        grouped = any(row.group for row in self.rows)
        buffer = io.StringIO()
        writer = csv.writer(buffer)
        header = ["group"] * grouped
        for column, wide in zip(self.columns, spread, strict=True):
            header += [column.title, f"{column.title} low", f"{column.title} high"][: 1 + 2 * wide]
        writer.writerow(header)
        for row in self.rows:
            line = [row.group] * grouped
            for cell, wide in zip(row.cells, spread, strict=True):
                line.append(cell.text if cell.value is None else repr(cell.value))
                if wide:
                    line += [repr(bound) for bound in cell.interval] if cell.interval else ["", ""]
            writer.writerow(line)
        return buffer.getvalue()


def text(content: str) -> Cell:
    """Makes a cell of plain text."""
    return Cell(content)


def count(number: int | None) -> Cell:
    """Makes a cell of a count, with thousands set apart; ``None`` is a dash."""
    return Cell(MISSING) if number is None else Cell(f"{number:,}", value=number)


def decimal(number: float | None, digits: int = 2) -> Cell:
    """Makes a cell of a number; ``None`` is a dash, NaN is ``n/a``."""
    if number is None:
        return Cell(MISSING)
    return Cell(UNDEFINED if math.isnan(number) else f"{number:,.{digits}f}", value=float(number))


def percent(
    share: float | None, interval: tuple[float, float] | None = None, *, digits: int = 1
) -> Cell:
    """Makes a cell of a share, shown in percent.

    Args:
        share: 0 to 1; ``None`` is a dash and NaN, a score that is not defined, ``n/a``.
        interval: Lower and upper bound, 0 to 1.
        digits: Decimals shown. One is as much as an interval of several points bears.

    Returns:
        The cell; its value and interval are percentages too.
    """
    if share is None:
        return Cell(MISSING)
    if math.isnan(share):
        return Cell(UNDEFINED, value=math.nan)
    shown = f"{100 * share:.{digits}f}"
    if interval is None or any(math.isnan(bound) for bound in interval):
        return Cell(shown, value=100 * share)
    low, high = (100 * bound for bound in interval)
    return Cell(shown, 100 * share, (low, high), f"{low:.{digits}f}{DASH}{high:.{digits}f}")


def mark_best(rows: Sequence[Row], columns: Iterable[int]) -> list[Row]:
    """Marks the highest value of each column, ties included.

    Compared is what is shown, so that two equal-looking cells are both marked. A column
    with fewer than two numbers, or in which all are equal, has no best.

    Args:
        rows: Rows that may be compared with one another.
        columns: Positions of the columns in which higher is better.

    Returns:
        The rows, some cells marked.
    """
    grid = [list(row.cells) for row in rows]
    for index in columns:
        shown = [
            float(line[index].text.replace(",", ""))
            for line in grid
            if line[index].text not in (MISSING, UNDEFINED)
        ]
        if len(set(shown)) < 2:
            continue
        top = max(shown)
        for line in grid:
            cell = line[index]
            if cell.text not in (MISSING, UNDEFINED) and float(cell.text.replace(",", "")) == top:
                line[index] = replace(cell, best=True)
    return [replace(row, cells=tuple(line)) for row, line in zip(rows, grid, strict=True)]


def _css(*names: str) -> str:
    kept = " ".join(name for name in names if name and name != "text")
    return f' class="{kept}"' if kept else ""


def _pipe_cell(cell: Cell) -> str:
    shown = f"**{markdown(cell.text)}**" if cell.best else markdown(cell.text)
    return f"{shown} ({markdown(cell.interval_text)})" if cell.interval_text else shown
