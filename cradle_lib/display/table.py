"""One way to show a data frame on a page: :func:`show`."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal

import pandas as pd

from cradle_lib.display import export
from cradle_lib.display.cells import STATED_MARK, Format, clean
from cradle_lib.display.grid import Grid, Layout, links_of
from cradle_lib.display.notice import Notice
from cradle_lib.display.origin import PAGE
from cradle_lib.errors import BookError
from cradle_lib.formatting import slug

if TYPE_CHECKING:
    from cradle_lib.corpus.needs import Need

Names = str | Sequence[str]


@dataclass(frozen=True)
class Table:
    """A data frame with the way in which it is shown.

    Attributes:
        frame: The frame as it was given.
        caption: One sentence that says what the table shows.
        grid: What a reader sees.
        notes: Sentences under the table; text between backticks is shown as code.
        sortable: Whether a reader can sort the rows.
        bars: Whether shares are drawn as bars.
    """

    frame: pd.DataFrame
    caption: str
    grid: Grid
    notes: tuple[str, ...]
    sortable: bool = False
    bars: bool = False

    def to_csv(self) -> str:
        """Writes the whole frame but its links: see :func:`.export.to_csv`."""
        data = _without_index(self.frame)
        links = ["link", *links_of(data).values()]
        return export.to_csv(data.drop(columns=links, errors="ignore"))

    def to_latex(self) -> str:
        r"""Writes the table as shown, for a paper; it needs ``\usepackage{booktabs}``."""
        return export.to_latex(self.grid, self.caption, self.notes)

    def _repr_latex_(self) -> str:
        return self.to_latex()

    def _repr_html_(self) -> str:
        name = slug(self.caption)
        files = (
            ("CSV", f"{name}.csv", "text/csv", self.to_csv()),
            ("LaTeX", f"{name}.tex", "application/x-tex", self.to_latex()),
        )
        links = export.links(self.caption, files)
        return export.to_html(
            self.grid, self.caption, self.notes, links, sortable=self.sortable, bars=self.bars
        )

    def __repr__(self) -> str:
        """The table in plain text, for a terminal."""
        lines = [list(map(str, row)) for row in self.grid.rows]
        shown = pd.DataFrame(lines, columns=self.grid.titles, index=self.grid.groups)
        text = shown.to_string(index=any(self.grid.groups))
        return "\n".join([clean(self.caption), text, *map(clean, self.notes)])


def show(
    frame: pd.DataFrame,
    caption: str,
    *,
    rows: Names = (),
    columns: Names = (),
    group: str | None = None,
    best: str | None = None,
    unit: Format = "share",
    formats: Mapping[str, Format] | None = None,
    titles: Mapping[Any, str] | None = None,
    published: Literal["rows", "columns"] | None = None,
    notes: Names = (),
    empty: str = "",
    needs: Need | None = None,
    sortable: bool = False,
    bars: bool = False,
) -> Table | Notice:
    """Shows a data frame as a table, with its files.

    With ``columns`` the frame is long: each of its rows is one cell of the table, made of
    ``value`` and, if they are there, ``low`` and ``high`` (the interval), ``published`` (what the
    paper states, or ``published_low`` and ``published_high``), ``derived`` (what only follows from
    the paper's numbers, marked by a dagger), ``unit`` and ``link`` (the address of what a number
    other than 0 counts: see :func:`.with_links`). Without ``columns``
    the table has a row for each row of the frame, with all of its columns; an estimate among them
    is one cell. Rows and columns come in their order of appearance, or in that of their
    categories. Undefined values, values that are not stated and missing cells appear as a dash.
    A column ``NAME_link`` has the addresses to which the cells of the column ``NAME`` lead.

    Args:
        frame: The data; an index that has a name is a column like any other. Its signature is
            the column ``signature``, or ``frame.attrs["signature"]`` (one or a list) if there is
            none; it is printed below the table.
        caption: One sentence that says what the table shows.
        rows: Columns that name a row. The first of them is its heading.
        columns: Columns that name a column of the table, the outermost first.
        group: Column whose values are headings between rows; empty or missing is no heading.
        best: The one of ``rows`` and ``columns`` whose values compete: the highest value is
            marked, all else being equal. Only values that share a signature (except the decoding,
            which is the system's) and a group are compared, as they are shown; equal values are
            all marked, unless all are equal. A row whose column ``competes`` is false takes no
            part. If ``best`` is the first of ``rows``, the others of them describe the row.
        unit: How numbers of ``value`` are written, unless the frame has a column ``unit``: see
            :func:`.write`. A share is a number from 0 to 1, shown in percent.
        formats: How other numbers are written, by the name of a column of the frame, by a value
            that names a row or column of the table, or by a unit of the column ``unit``.
        titles: Headings and names on the page that differ from those in the frame. Scores have
            their names already; ``published`` is the name of published values.
        published: Whether published values are rows below those of the frame or columns
            beside them; by default columns if there is one column of values, else rows.
        notes: Sentences below the table; text between backticks is shown as code.
        empty: Sentence in place of the table if the frame has no rows.
        needs: What the table needs of the page's corpus, such as gold ``labels``: see
            :func:`cradle_lib.corpus.needs.unmet`.
        sortable: Whether the headings sort the rows, within each group. A page without scripts
            shows the rows in their order in the frame.
        bars: Whether shares from 0 to 1 are drawn below their numbers, with their intervals.

    Returns:
        The table, or a notice if the frame has no rows or the corpus lacks what is needed. A
        notebook shows it by itself; a table's ``to_csv()`` and ``to_latex()`` give it as text.

    Raises:
        BookError: If the caption is empty, the frame has no columns with cells, a column that is
            named is not there or not of numbers, a unit is unknown, or two rows of the frame are
            for the same cell.
    """
    if not clean(caption):
        raise BookError("a table needs a caption: one sentence that says what it shows")
    if missing := PAGE.lacks(needs):
        return Notice(f"{missing} Not shown: {clean(caption)}")
    if not len(frame):
        return Notice(empty or f"Nothing to show: {clean(caption)}")
    data = _without_index(frame)
    layout = Layout(
        rows=_tuple(rows),
        columns=_tuple(columns),
        group=() if group is None else (group,),
        best=best,
        unit=unit,
        formats=formats or {},
        titles=titles or {},
        published=published,
    )
    signatures = _signatures(data)
    grid = layout.grid(data)
    below = [f"{STATED_MARK}: {layout.stated}."] if grid.names_published else []
    below += [*_tuple(notes), *(f"Signature `{line}`." for line in signatures)]
    if "low" in data and data["low"].notna().any() and any(map(_DRAWN.search, signatures)):
        below.append(RESAMPLED)
    return Table(frame, caption, grid, tuple(below), sortable, bars)


#: The note on intervals over dialogues.
RESAMPLED: Final = "Intervals reflect the choice of dialogues, not run-to-run variation."
_DRAWN: Final = re.compile(r"\|boot:[1-9]")


def _signatures(frame: pd.DataFrame) -> list[str]:
    found = frame.attrs.get("signature", [])
    if "signature" in frame.columns:
        # The attributes of a part of a frame are still those of the whole frame.
        found = frame["signature"].dropna().tolist()
    # One line, or the signature of an evaluation as it is.
    lines = found if isinstance(found, list | tuple) else [found]
    return list(dict.fromkeys(map(str, lines)))


def _without_index(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.reset_index() if any(n is not None for n in frame.index.names) else frame


def _tuple(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
