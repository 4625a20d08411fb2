"""Arranges the rows of a data frame as the cells of a table, and marks the best values."""

from __future__ import annotations

import math
import re
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np
import pandas as pd

from cradle_lib.display.cells import (
    MISSING,
    Cell,
    Record,
    address,
    clean,
    missing,
    number,
    words,
    write,
)
from cradle_lib.errors import BookError

_ESTIMATE: Final = ("value", "low", "high")
# Columns that describe a row's value, and are not shown as separate cells.
_ABOUT: Final = (*_ESTIMATE[1:], "unit", "signature", "competes", "link")
#: Default formats, by name of the column.
_FORMATS: Final = {
    **dict.fromkeys(("p", "adjusted_p"), "p"),
    **dict.fromkeys(("share", "baseline_score", "own_score"), "share"),
    **dict.fromkeys(("cost", "estimate", "usual_cost", "highest_cost"), "dollars"),
    **dict.fromkeys(("input_price", "output_price"), "{:g}"),
}
#: Default headings, by name of the column.
_TITLES: Final = {
    "cached": "Read from cache (%)",
    "calls": "User turns",
    "cost": "Cost ($)",
    "highest_cost": "Upper bound ($)",
    "p": "p",
    "peak_mb": "Peak memory (MB)",
    "same_answers": "Same answers (%)",
    "seconds": "Seconds per answer",
    "share": "Share (%)",
    "support": "Gold labels",
    "usual_cost": "Estimate ($)",
    "written": "Written to cache (%)",
}
#: Columns with names of scores and other measures, which are written as words: "Micro F1".
_MEASURES: Final = ("score", "measure")
#: Displayed text of the verdicts of :func:`.compare`.
_VERDICTS: Final = {
    "different": "significant",
    "not shown": "not significant",
    "insufficient": "too few cases",
}
Key = tuple[Hashable, ...]
Cells = tuple[list[tuple[str, ...]], list[list[Cell]], list[str]]


@dataclass(frozen=True)
class Layout:
    """Arranges a frame as a table; the attributes are arguments of :func:`.show`."""

    rows: tuple[str, ...] = ()
    columns: tuple[str, ...] = ()
    group: tuple[str, ...] = ()
    best: str | None = None
    formats: Mapping[Any, str] = field(default_factory=dict)
    titles: Mapping[Any, str] = field(default_factory=dict)

    def cells(self, frame: pd.DataFrame) -> Cells:
        """Gives the headings of columns, the cells of rows, and the group of each row.

        Raises:
            BookError: If two rows of the frame are for the same cell.
        """
        return self._pivoted(frame) if self.columns else self._listed(frame)

    def _listed(self, frame: pd.DataFrame) -> Cells:
        """Each row of the frame is a row of the table."""
        hidden = {*self.rows, *self.group, *links_of(frame).values()}
        hidden |= {*_ABOUT} if "value" in frame else set()
        order = [*self.rows, *(name for name in frame.columns if name not in hidden)]
        frame = frame.iloc[_order(frame, self.group, together=True)]
        columns = [
            self._estimates(frame) if name == "value" else self._column(frame, name)
            for name in order
        ]
        rows = [list(cells) for cells in zip(*columns, strict=True)]
        groups = [self._heading(key) for key in _keys(frame, self.group)]
        return [(self._title(name),) for name in order], rows, groups

    def _pivoted(self, frame: pd.DataFrame) -> Cells:
        """Each row of the frame is one cell of the table."""
        by_row = (*self.group, *self.rows)
        records: dict[tuple[Key, Key], Record] = {}
        keys = list(zip(_keys(frame, by_row), _keys(frame, self.columns), strict=True))
        for key, record in zip(keys, frame.to_dict("records"), strict=True):
            if key in records:
                place = ", ".join(f"{n} {record[n]}" for n in (*self.rows, *self.columns))
                raise BookError(
                    f"two rows of the frame are for the same cell ({place}). Add a column that "
                    "distinguishes them to `rows` or `columns`"
                )
            records[key] = record
        found = dict(zip(keys, self._estimates(frame), strict=True))
        if self.best is not None:
            self._mark_best(found, records)
        names = zip(*(self._column(frame, name) for name in self.rows), strict=True)
        names_of = {row: cells for (row, _), cells in zip(keys, names, strict=False)}
        rows_in_order = frame.iloc[_order(frame, by_row, together=bool(self.group))]
        columns_in_order = frame.iloc[_order(frame, self.columns)]
        down = list(dict.fromkeys(_keys(rows_in_order, by_row)))
        across = list(dict.fromkeys(_keys(columns_in_order, self.columns)))
        nothing = Cell(MISSING, number=True)
        rows = [
            [*names_of.get(row, ()), *(found.get((row, column), nothing) for column in across)]
            for row in down
        ]
        blank = ("",) * (len(self.columns) - 1)
        heads = [(*blank, self._title(name)) for name in self.rows]
        heads += [tuple(map(self._name, column, self.columns)) for column in across]
        return heads, rows, [self._heading(row[: len(self.group)]) for row in down]

    def _mark_best(
        self, cells: dict[tuple[Key, Key], Cell], records: Mapping[tuple[Key, Key], Record]
    ) -> None:
        """Marks the highest of the values that may be compared."""
        # If a column of `rows` competes, the others only describe the row.
        shared = [*self.group, *(self.columns if self.best in self.rows else self.rows)]
        compared: dict[Key, list[tuple[Key, Key]]] = {}
        for key, record in records.items():
            if math.isfinite(number(record["value"])):
                # Systems may be compared although their answers were decoded differently.
                signature = re.sub(r"\|dec:[^|]*", "", str(record.get("signature")))
                comparison = (signature, *(record[name] for name in shared))
                compared.setdefault(comparison, []).append(key)
        for keys in compared.values():
            competing = [key for key in keys if bool(records[key].get("competes", True))]
            if not competing:
                continue
            # Texts are compared, so that two cells that look equal are both marked.
            top = cells[max(competing, key=lambda key: number(records[key]["value"]))].text
            winners = [key for key in competing if cells[key].text == top]
            if len(winners) < len(keys):
                cells |= {key: replace(cells[key], best=True) for key in winners}

    def _column(self, frame: pd.DataFrame, name: str) -> list[Cell]:
        """Writes a column; cells other than 0 get the link of the column ``NAME_link``."""
        how, cells = self._how(frame[name], name), []
        # Records have Python's own numbers, whatever the type of the column.
        for record in frame.filter([name, f"{name}_link"]).to_dict("records"):
            content, link = record[name], record.get(f"{name}_link")
            if missing(content) or content == 0 or missing(link):
                link = ""
            cells.append(replace(self._cell(how, name, content), link=str(link)))
        return cells

    def _estimates(self, frame: pd.DataFrame) -> list[Cell]:
        usual = _default_unit(frame)
        return [self._estimate(record, usual) for record in frame.to_dict("records")]

    def _estimate(self, record: Record, usual: str) -> Cell:
        """Writes a published value, a value with its interval, or an interval without a value."""
        printed = record.get("published")
        if self.columns and missing(record.get("value")) and not missing(printed):
            return Cell(clean(str(printed)), number=True, published=True)
        unit = record.get("unit")
        # The values that name a cell, the most specific first.
        named = [record[key] for key in (*reversed(self.columns), *self.rows)]
        how = next((self.formats[k] for k in (*named, "value") if k in self.formats), usual)
        if not missing(unit):
            how = self.formats.get(unit, str(unit))
        value, low, high = (number(record.get(name)) for name in _ESTIMATE)
        shown, *ends = (write(part, how) for part in (value, low, high))
        link = address(record) if value and not math.isnan(value) else ""
        if math.isnan(low) or math.isnan(high) or low == high == value:
            known = () if math.isnan(value) else (value,)
            return replace(_number_cell(shown, value), link=link, estimate=known)
        if math.isnan(value):
            return Cell(" to ".join(ends), number=True)
        interval, estimate = f"[{', '.join(ends)}]", (value, low, high)
        cell = _number_cell(shown, value)
        return replace(cell, interval=interval, link=link, estimate=estimate)

    def _how(self, column: pd.Series[Any], name: str) -> str | None:
        """Gives the format of a column of numbers; ``None`` if each cell is written by its type."""
        if how := (_FORMATS | dict(self.formats)).get(name):
            return how
        if self._title(name).endswith("(%)"):
            return "share"
        if not pd.api.types.is_float_dtype(column):
            return None
        # Counts with missing values are floats too.
        return "count" if (column.dropna() % 1 == 0).all() else "number"

    def _cell(self, how: str | None, name: str, content: Any) -> Cell:
        """Writes a cell of a column, by the column's format, or else by its type."""
        if name == "published":
            printed = MISSING if missing(content) else clean(str(content))
            return Cell(printed, number=True, published=True)
        if how is not None:
            return _number_cell(write(number(content), how), number(content))
        if isinstance(content, bool):
            return Cell("yes" if content else "no")
        if missing(content):
            return Cell(MISSING)
        if name == "verdict":
            content = _VERDICTS.get(content, content)
        if isinstance(content, int | float):
            how = "count" if content % 1 == 0 else "number"
            return _number_cell(write(content, how), float(content))
        return Cell(self._name(content, name))

    def _title(self, column: str) -> str:
        title = self.titles.get(column) or _TITLES.get(column)
        return clean(title) if title else words(str(column))

    def _name(self, key: Any, column: str = "") -> str:
        if missing(key):
            return MISSING
        if isinstance(key, Hashable) and key in self.titles:
            return clean(self.titles[key])
        return words(str(key)) if column in _MEASURES else clean(str(key)) or MISSING

    def _heading(self, key: Key) -> str:
        return "" if key in ((), (None,), ("",)) else self._name(key[0], *self.group)


def _number_cell(text: str, value: float) -> Cell:
    return Cell(text, number=True, value=value if math.isfinite(value) else None)


def links_of(frame: pd.DataFrame) -> dict[str, str]:
    """Finds the columns with addresses: of the column ``NAME``, these are ``NAME_link``."""
    return {name: f"{name}_link" for name in frame.columns if f"{name}_link" in frame.columns}


def _default_unit(frame: pd.DataFrame) -> str:
    """Gives the default unit: count for integers and for whole numbers above 1, else share."""
    values = frame["value"].dropna().to_numpy(float) if "value" in frame else np.empty(0)
    is_integer = "value" in frame and pd.api.types.is_integer_dtype(frame["value"])
    is_count = is_integer or bool((values == np.floor(values)).all() and (values > 1).any())
    return "count" if is_count else "share"


def _order(frame: pd.DataFrame, names: Sequence[str], *, together: bool = False) -> Any:
    """Gives the positions of rows, sorted by these columns if one of them is categorical.

    Values are sorted by category or by first appearance. With ``together``, rows with equal
    values of the first column are adjacent even if no column is categorical.
    """
    is_categorical = [isinstance(frame[name].dtype, pd.CategoricalDtype) for name in names]
    by = names if any(is_categorical) else names[: int(together)]
    codes = [
        frame[name].cat.codes if kind else pd.factorize(frame[name], use_na_sentinel=False)[0]
        for name, kind in zip(by, is_categorical, strict=False)
    ]
    # The last key sorts first.
    return np.lexsort(codes[::-1]) if codes else np.arange(len(frame))


def _keys(frame: pd.DataFrame, names: Sequence[str]) -> list[Key]:
    if not names:
        return [()] * len(frame)
    # NaN is not equal to itself, so each NaN would be a different key.
    columns = ([None if missing(x) else x for x in frame[name]] for name in names)
    return list(zip(*columns, strict=True))
