"""Arranges the cells of a table: pivots, orders, adds published values and marks the best."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import numpy as np
import pandas as pd

from cradle_lib.display.cells import (
    BLANK,
    DERIVED,
    ESTIMATE,
    MISSING,
    STATED,
    STATED_DIGITS,
    STATED_MARK,
    Cell,
    Record,
    Writer,
    address,
    clean,
    missing,
    number,
)
from cradle_lib.errors import BookError

# Columns that say something about a row's numbers, and are no cells of their own.
_ABOUT: Final = ("unit", "signature", "competes", "link")
Key = tuple[Hashable, ...]


@dataclass(frozen=True)
class Grid:
    """The cells of a table.

    Attributes:
        heads: One tuple for each column, as long as there are rows of headings; the last text
            is right above the cells.
        rows: As many cells as there are heads in each; the first one names the row.
        groups: For each row the heading of its group; empty if there is none.
    """

    heads: list[tuple[str, ...]]
    rows: list[list[Cell]]
    groups: list[str]

    @property
    def titles(self) -> list[str]:
        """The headings of each column on one line."""
        return [", ".join(filter(None, head)) for head in self.heads]

    @property
    def names_published(self) -> bool:
        """Whether a row or a column has the mark of published numbers."""
        named = [*self.titles, *(row[0].text for row in self.rows)]
        return any(name.endswith(STATED_MARK) for name in named)


@dataclass(frozen=True)
class Layout(Writer):
    """How a frame becomes a grid; the attributes are the arguments of :func:`.show`.

    The group is one column or none.
    """

    group: tuple[str, ...]
    best: str | None
    published: Literal["rows", "columns"] | None

    @property
    def stated(self) -> str:
        """What published numbers are called."""
        return clean(self.titles.get("published", "published"))

    def grid(self, frame: pd.DataFrame) -> Grid:
        """Lays out a frame.

        Its columns are data; an index is not looked at. Refused are a column that is missing or
        holds text where numbers belong, and two rows of the frame for one cell.
        """
        self._check(frame)
        grid = self._pivoted(frame) if self.columns else self._listed(frame)
        for title, times in Counter(grid.titles).items():
            if times > 1:
                raise BookError(f"two columns are called {title!r}. Tell them apart with `titles`")
        return grid

    def _check(self, frame: pd.DataFrame) -> None:
        needed = "value" if self.columns or self.best else None
        for name in (*self.rows, *self.columns, *self.group, self.best, needed):
            if name is not None and name not in frame.columns:
                there = ", ".join(map(str, frame.columns))
                raise BookError(f"the frame has no column {name!r}. It has: {there}")
        for name in (*ESTIMATE, *STATED, *DERIVED):
            if name in frame.columns and not pd.api.types.is_numeric_dtype(frame[name]):
                raise BookError(
                    f"column {name!r} holds {frame[name].dtype}, where numbers belong. "
                    "What is undefined is NaN, not text"
                )
        if self.columns and not self.rows:
            raise BookError("`columns` needs `rows`: the columns that name a row of the table")
        if self.best is not None and self.best not in (*self.rows, *self.columns):
            raise BookError(f"`best` is {self.best!r}, which is none of `rows` and `columns`")

    def _listed(self, frame: pd.DataFrame) -> Grid:
        """Each row of the frame is a row of the table."""
        estimate = "value" in frame.columns
        hidden = (
            {*ESTIMATE[1:], *STATED[1:], STATED_DIGITS, *DERIVED, *_ABOUT} if estimate else set()
        )
        links = links_of(frame)
        hidden |= set(links.values())
        kept = [c for c in frame.columns if c not in {*self.rows, *hidden, *self.group}]
        order = [*self.rows, *kept]
        if not order:
            raise BookError("nothing to show: the frame has no columns with cells")
        records = _ordered(frame, self.group, together=True).to_dict("records")
        estimates = self._estimates(dict(enumerate(records))) if estimate else {}
        write = {name: self.column(frame[name], name) for name in order}

        def cells(index: int, record: Record) -> Iterable[Cell]:
            for name in order:
                if estimate and name == "value":
                    yield estimates[index]
                elif estimate and name == "published":
                    yield self.cited(record)
                else:
                    yield replace(write[name](record[name]), link=_link(record, name, links))

        return Grid(
            [(self.title(name),) for name in order],
            [list(cells(index, record)) for index, record in enumerate(records)],
            [self._grouped(*(record[name] for name in self.group)) for record in records],
        )

    def _pivoted(self, frame: pd.DataFrame) -> Grid:
        """Each row of the frame is one cell of the table."""
        by_row = (*self.group, *self.rows)
        records: dict[tuple[Key, Key], Record] = {}
        every = (_keys(frame, names) for names in (by_row, self.columns))
        for row, column, record in zip(*every, frame.to_dict("records"), strict=True):
            if (row, column) in records:
                raise BookError(self._clash(records[row, column], record))
            records[row, column] = record
        measured = self._estimates(records)
        stated = {key: self.cited(record) for key, record in records.items()}
        keys = [
            list(dict.fromkeys(_keys(_ordered(frame, names, together=together), names)))
            for names, together in ((by_row, bool(self.group)), (self.columns, False))
        ]
        along = ("rows", "columns").index(
            self.published or ("columns" if len(keys[1]) == 1 else "rows")
        )

        def lines(place: int) -> Iterable[tuple[Key, bool]]:
            """Each key for what was measured, and again for what is published, if anything is."""
            ours, papers = (
                {key[place] for key, cell in cells.items() if cell.text != MISSING}
                for cells in (measured, stated)
            )
            for key in keys[place]:
                paper = place == along and key in papers
                if key in ours or not paper:
                    yield key, False
                if paper:
                    yield key, True

        about, links = {row: record for (row, _), record in records.items()}, links_of(frame)
        # Systems of the paper are no rivals of those that were run: they come last.
        down, across = (
            sorted(lines(place), key=lambda line: line[1] and "system" in names)
            for place, names in enumerate((self.rows, self.columns))
        )
        stubs = [self.column(frame[name], name) for name in self.rows]
        blank = ("",) * (len(self.columns) - 1)
        rows: list[list[Cell]] = []
        groups: list[str] = []
        for row, paper in down:
            above, names = row[: len(self.group)], row[len(self.group) :]
            first, *rest = (
                replace(write(name), link=_link(about[row], column, links))
                for write, column, name in zip(stubs, self.rows, names, strict=True)
            )
            if paper:
                first = replace(first, text=f"{first.text} {STATED_MARK}", published=True)
                rest = [BLANK for _ in rest]
            for column, published in across:
                cells = stated if paper or published else measured
                rest.append(cells.get((row, column), Cell(MISSING, number=True)))
            apart = paper and "system" in self.rows
            if apart and [first, *rest] in rows:
                continue
            rows.append([first, *rest])
            groups.append(self._published_group if apart else self._grouped(*above))
        heads: list[tuple[str, ...]] = [(*blank, self.title(name)) for name in self.rows]
        for key, paper in across:
            *outer, last = (self.name(part) for part in key)
            heads.append((*outer, f"{last}: {self.stated}" if paper else last))
        return Grid(heads, rows, groups)

    @property
    def _published_group(self) -> str:
        stated = self.stated if "published" in self.titles else "published values"
        return f"{stated[0].upper()}{stated[1:]} ({STATED_MARK})"

    def _grouped(self, key: Any = "") -> str:
        return "" if missing(key) or key == "" else self.name(key)

    def _clash(self, one: Record, other: Record) -> str:
        place = ", ".join(f"{name} {one[name]}" for name in (*self.rows, *self.columns))
        spare = [
            str(name)
            for name in one
            if name not in (*ESTIMATE, *STATED, STATED_DIGITS, *DERIVED)
            and not _equal(one[name], other[name])
        ]
        advice = f"Add {' or '.join(map(repr, spare))} to `rows` or `columns`" if spare else ""
        return f"two rows of the frame are for the same cell ({place}). {advice}".strip()

    def _estimates(self, records: Mapping[Any, Record]) -> dict[Any, Cell]:
        cells = {key: self.estimate(record) for key, record in records.items()}
        if self.best is None:
            return cells
        # If rows compete, their other columns describe them.
        rows = () if self.best in self.rows[:1] else self.rows
        alike = [c for c in (*rows, *self.columns, *self.group) if c != self.best]
        contests: dict[Key, list[Any]] = {}
        aside: set[Key] = set()
        for key, record in records.items():
            if math.isfinite(number(record["value"])):
                # Two systems may be compared although their answers were decoded differently.
                signature = re.sub(r"\|dec:[^|]*", "", str(record.get("signature")))
                what = (signature, *(record.get(name) for name in alike))
                if bool(record.get("competes", True)):
                    contests.setdefault(what, []).append(key)
                else:
                    aside.add(what)
        for what, rivals in contests.items():
            # Shown texts are compared, so that two cells that look equal are both marked.
            top = cells[max(rivals, key=lambda key: number(records[key]["value"]))].text
            winners = [key for key in rivals if cells[key].text == top]
            if len(winners) < len(rivals) or what in aside:
                cells |= {key: replace(cells[key], best=True) for key in winners}
        return cells


def _ordered(frame: pd.DataFrame, names: Sequence[str], *, together: bool) -> pd.DataFrame:
    """Sorts rows by all of these columns if one of them is categorical, else not at all.

    What is sorted by is the categories, or when each value appeared. If asked, rows with equal
    values of the first column are adjacent in any case.
    """
    kinds = [isinstance(frame[name].dtype, pd.CategoricalDtype) for name in names]
    by = names if any(kinds) else names[: int(together)]
    codes = [
        frame[name].cat.codes if kind else pd.factorize(frame[name], use_na_sentinel=False)[0]
        for name, kind in zip(by, kinds, strict=False)
    ]
    # The last key sorts first.
    return frame.iloc[np.lexsort(codes[::-1])] if codes else frame


def _keys(frame: pd.DataFrame, names: Sequence[str]) -> list[Key]:
    # NaN is not equal to itself, and so would be a new key each time.
    columns = ([None if missing(x) else x for x in frame[name]] for name in names)
    return list(zip(*columns, strict=True))


def _equal(one: Any, other: Any) -> bool:
    return missing(other) if missing(one) else bool(one == other)


def links_of(frame: pd.DataFrame) -> dict[str, str]:
    """Finds the columns with addresses: of the column ``NAME``, these are ``NAME_link``."""
    return {name: f"{name}_link" for name in frame.columns if f"{name}_link" in frame.columns}


def _link(record: Record, name: str, links: Mapping[str, str]) -> str:
    if name not in links or missing(record[name]) or record[name] == 0:
        return ""
    return address(record, links[name])
