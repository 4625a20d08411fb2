"""Shows a data frame as a table: :func:`show`.

The template ``table.html`` makes the HTML, with group headings, scopes for screen readers, a
scrolling box and notes.

CSS classes: ``cradle-scroll`` (the box), ``cradle-table``, ``cradle-note``, ``num``, ``published``,
``best``, ``ci`` (an interval in small type), ``cradle-sortable`` (sorted by book.js, by the
``data-value`` of cells or their text), ``cradle-bar`` (a share with its interval, by book.css).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pandas as pd

from cradle_lib.arguments import checked, require_known
from cradle_lib.corpus.needs import Need
from cradle_lib.display.cells import Cell, clean, with_code, words
from cradle_lib.display.downloads import link_to_csv, next_file, to_csv
from cradle_lib.display.layout import Layout, links_of
from cradle_lib.display.notice import Notice, lacks
from cradle_lib.errors import BookError
from cradle_lib.labels import BITS

if TYPE_CHECKING:
    from jinja2 import Template

    from cradle_lib.display.choice import Choice

Names = str | Sequence[str]
# Prefixes of notes about the scoring: in general, and with several signatures.
_IN_WORDS: Final = ("In words: ", "The first signature in words: ")
_FOLDED: Final = ("Signature `", *_IN_WORDS)
#: The note on intervals over dialogues.
RESAMPLED: Final = "Intervals cover the sampling of dialogues only."
#: The note on values without an interval.
NO_INTERVAL: Final = (
    "A value has no interval if it is the same in at least 95 % of the draws, undefined in more "
    "than 5 %, outside the middle 95 % of the draws, or for a reason that another note gives."
)


@dataclass(frozen=True)
class Table:
    """A data frame as a table with a caption, notes and a CSV download.

    Attributes:
        frame: The frame as it was given.
        caption: One sentence that says what the table shows.
        heads: One tuple for each column, outermost heading first.
        rows: The cells of each row; the first one names the row.
        groups: For each row the heading of its group, empty if there is none.
        notes: Sentences under the table; text between backticks is shown as code.
        file: Name of the download.
        ranking: Whether rows compete, so that shares have bars.
        sortable: Whether headings sort the rows.
    """

    frame: pd.DataFrame
    caption: str
    heads: list[tuple[str, ...]]
    rows: list[list[Cell]]
    groups: list[str]
    notes: tuple[str, ...]
    file: str
    ranking: bool = False
    sortable: bool = False

    @property
    def titles(self) -> list[str]:
        """The headings of each column on one line."""
        return [", ".join(filter(None, head)) for head in self.heads]

    def to_csv(self) -> str:
        """Writes the whole frame except its links: see :func:`.downloads.to_csv`."""
        data = _with_index(self.frame)
        return to_csv(data.drop(columns=["link", *links_of(data).values()], errors="ignore"))

    def _repr_html_(self) -> str:
        # Adjacent equal headings are merged, except in the last row of headings.
        above = [
            [(head[-1], len([*equal])) for head, equal in groupby(h[:level] for h in self.heads)]
            for level in range(1, len(self.heads[0]))
        ]
        numeric = [any(cell.number for cell in column) for column in zip(*self.rows, strict=True)]
        # Notes on the scoring are long and rarely read, so they are folded.
        folded = [note for note in self.notes if note.startswith(_FOLDED)]
        return _template().render(
            table=self,
            caption=clean(self.caption),
            above=above,
            numeric=numeric,
            labels=BITS,
            notes=[with_code(clean(note)) for note in self.notes if note not in folded],
            signatures=[with_code(clean(note)) for note in folded],
            links=link_to_csv(self.file, self.caption, self.to_csv()),
        )

    def __repr__(self) -> str:
        """The table in plain text, for a terminal."""
        lines = [list(map(str, row)) for row in self.rows]
        shown = pd.DataFrame(lines, columns=self.titles, index=self.groups)
        text = shown.to_string(index=any(self.groups))
        return "\n".join([clean(self.caption), text, *map(clean, self.notes)])


@checked
def show(
    frame: pd.DataFrame,
    caption: str,
    *,
    rows: Names = (),
    columns: Names = (),
    group: str | None = None,
    best: str | None = None,
    formats: str | Mapping[Any, str] | None = None,
    titles: Mapping[Any, str] | None = None,
    notes: Names | Mapping[Any, Names] = (),
    empty: str = "",
    needs: Need | None = None,
    choose: str | None = None,
    sort: bool = False,
) -> Table | Choice | Notice:
    """Shows a data frame as a table, with its CSV file.

    Without ``columns`` the table has a row for each row of the frame, with all of its columns.
    With ``columns`` each row of the frame is one cell. A cell is an estimate, made of ``value``
    and, if the frame has them, ``low`` and ``high`` (the interval), ``unit`` and ``link`` (the
    address of the turns that a number counts, unused for 0: see :func:`.with_links`). Where
    ``value`` is missing and ``published`` has text, the cell is the number as the paper prints it:
    see :func:`.published_frame`.
    A column ``NAME_link`` has the addresses that cells of the column ``NAME`` link to.
    Rows and columns are in order of their categories, or else of appearance. Undefined and
    missing values appear as a dash.

    Args:
        frame: The data; an index that has a name is a column like any other. Its signature is
            the column ``signature``, or ``frame.attrs["signature"]`` (one or a list); it is
            printed below the table.
        caption: One sentence that says what the table shows.
        rows: Columns that name a row. The first of them is its heading.
        columns: Columns that name a column of the table, the outermost first.
        group: Column whose values are headings between rows; empty or missing values give no
            heading.
        best: With ``columns``: the name in ``rows`` or ``columns`` whose values compete. The
            highest value is marked. Only values with the same group and signature (except its
            decoding, which differs by system) are compared, as rounded for display; ties are all
            marked, unless all values are equal. Rows with a false ``competes`` are ignored. If
            rows compete, headings sort the rows within each group, and shares have bars.
        formats: How numbers are written: one unit of :func:`.write` for ``value``, or a mapping
            to such units. Its keys are columns of the frame, values that name a row or column of
            the table, or units of the column ``unit``. By default whole numbers are counts,
            and other values are shares from 0 to 1, shown in percent; so is a column with a
            heading that ends in "(%)".
        titles: Headings and names on the page that differ from those in the frame. Scores and
            some columns have theirs already; ``value`` in points is a "Difference".
        notes: Sentences below the table; text between backticks is shown as code.
        empty: Sentence in place of the table if the frame has no rows.
        needs: What the table needs of the page's corpus, such as gold ``labels``: see
            :func:`cradle_lib.corpus.needs.unmet`.
        choose: Column by which the frame is split into tables, of which the reader chooses one.
            Captions begin with its value, and ``notes`` may be a mapping from its values.
        sort: Whether headings sort the rows within each group, for a table whose order carries no
            meaning. If rows compete, they always do.

    Returns:
        The table, or a notice if the frame has no rows or the corpus lacks what is needed. A
        notebook shows it by itself; its ``to_csv()`` gives the file as text. With ``choose`` a
        choice of tables.

    Raises:
        BookError: If the caption is empty, or two rows of the frame are for the same cell.
    """
    if not clean(caption):
        raise BookError("a table needs a caption: one sentence that says what it shows")
    if why := lacks(needs):
        return Notice(f"{why} Not shown: {clean(caption)}")
    if not len(frame):
        return Notice(empty or f"Nothing to show: {clean(caption)}")
    known = [str(name) for name in (*frame, *frame.index.names) if name is not None]
    for column in (*_tuple(rows), *_tuple(columns), group, choose):
        if column is not None:
            require_known("column", column, known)
    if best is not None:
        require_known("name in `rows` or `columns`", best, (*_tuple(rows), *_tuple(columns)))
    names: dict[Any, str] = {"value": "Difference"} if formats == "points" else {}
    names |= titles or {}
    layout = Layout(
        rows=_tuple(rows),
        columns=_tuple(columns),
        group=() if group is None else (group,),
        best=best,
        formats={"value": formats} if isinstance(formats, str) else formats or {},
        titles=names,
    )
    if choose is None:
        return _table(frame, caption, layout, _tuple(notes), sort=sort)
    # Imported here, because few tables need it.
    from cradle_lib.display.choice import Choice

    shown = {}
    for value, part in _with_index(frame).groupby(choose, sort=False, observed=True):
        name = clean(str(names.get(value, value)))
        below = notes.get(value, ()) if isinstance(notes, Mapping) else notes
        # Without columns, the table has all columns of the frame.
        part = part if columns else part.drop(columns=choose)
        shown[name] = _table(part, f"{name}: {caption}", layout, _tuple(below), sort=sort)
    return Choice(names.get(choose, words(choose)), shown)


def _table(
    frame: pd.DataFrame, caption: str, layout: Layout, notes: tuple[str, ...], *, sort: bool
) -> Table:
    data = _with_index(frame)
    heads, cells, groups = layout.cells(data)
    signatures = _signatures(data)
    if len(signatures) > 1:
        notes = tuple(note.replace(*_IN_WORDS) for note in notes)
    below = [*notes, *(f"Signature `{line}`." for line in signatures)]
    resampled = any(re.search(r"\|boot:[1-9]", line) for line in signatures)
    if resampled and "low" in data:
        if data["low"].notna().any():
            below.append(RESAMPLED)
        shares = data.get("unit", "share") != "count"
        zero_width = data["low"].eq(data["value"]) & data["high"].eq(data["value"])
        if (data["value"].notna() & (data["low"].isna() | zero_width) & shares).any():
            below.append(NO_INTERVAL)
    ranking = layout.best is not None and layout.best in layout.rows
    return Table(
        frame, caption, heads, cells, groups, tuple(below), next_file(), ranking, sort or ranking
    )


@cache
def _template() -> Template:
    # Imported here, because a table printed in a terminal does not need jinja2.
    from jinja2 import Environment, FileSystemLoader

    folder = FileSystemLoader(Path(__file__).parent)
    return Environment(loader=folder, autoescape=True).get_template("table.html")


def _signatures(frame: pd.DataFrame) -> list[str]:
    found = frame.attrs.get("signature", [])
    if "signature" in frame.columns:
        # A filtered frame keeps the attributes of the whole frame, so the column has precedence.
        found = frame["signature"].dropna().tolist()
    # Several signatures, or a single one, possibly an object.
    lines = found if isinstance(found, list | tuple) else [found]
    return list(dict.fromkeys(map(str, lines)))


def _with_index(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.reset_index() if any(n is not None for n in frame.index.names) else frame


def _tuple(names: Names | Mapping[Any, Names]) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else tuple(names)
