"""Cells: what a reader sees of a value, an estimate or a name.

The convention of the library's frames: an estimate is the columns ``value``, ``low`` and
``high``; what the paper states of it is ``published``, or ``published_low`` and
``published_high``, with ``published_digits`` decimals; what follows from the paper's numbers is
``derived``, or a range; ``unit`` says how a row's numbers are written. NaN is what is undefined or
not stated. A share is a number from 0 to 1 and is shown in percent; nothing in a frame is a
percentage.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any, Final

import pandas as pd

from cradle_lib.errors import BookError
from cradle_lib.formatting import dollars

MISSING: Final = "\N{EN DASH}"
INFINITE: Final = "\N{INFINITY}"
ESTIMATE: Final = ("value", "low", "high")
STATED: Final = ("published", "published_low", "published_high")
#: Column with the decimals of what is stated, as it is shown: 47.20 has two.
STATED_DIGITS: Final = "published_digits"
DERIVED: Final = ("derived", "derived_low", "derived_high")
#: Put behind what follows from published numbers without being one of them.
DERIVED_MARK: Final = "\N{DAGGER}"
#: Put behind the name of a row of published numbers.
STATED_MARK: Final = "\N{DOUBLE DAGGER}"
_JOINERS: Final = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
Record = Mapping[Hashable, Any]
#: A unit of :data:`UNITS`, perhaps with decimals as in ``share:2``; a format string such as
#: ``{:.3g}``; or a function.
Format = str | Callable[[float], str]
#: For each unit: what a number is multiplied by, its sign option, and its usual decimals.
UNITS: Final = {
    "share": (100, "", 1),
    "points": (100, "+", 1),
    "count": (1, "", 0),
    "number": (1, "", 2),
    "dollars": (1, "", 2),
    "p": (1, "", 3),
}
#: Scores, whose names are written as words: "Micro F1".
SCORES: Final = (
    *("exact_match", "jaccard", "micro_precision", "micro_recall", "micro_f1"),
    *("macro_precision", "macro_recall", "macro_f1", "precision", "recall", "f1"),
)
# Smaller p-values are shown as one.
_SMALLEST_P: Final = 0.001


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell as a reader sees it: plain text on one line, and an interval in small type.

    A number is set flush right. What is published is the paper's, what is derived only follows from
    it, and the best is that of its contest. The link is the address of what the cell counts. The
    estimate is the number behind the text, unrounded, alone or with the ends of its interval.
    """

    text: str
    interval: str = ""
    number: bool = False
    published: bool = False
    derived: bool = False
    best: bool = False
    link: str = ""
    estimate: tuple[float, ...] = ()

    def __str__(self) -> str:
        """The text and its interval."""
        return f"{self.text} {self.interval}".strip()


BLANK: Final = Cell("")


@dataclass(frozen=True)
class Writer:
    """Writes cells; the attributes are arguments of :func:`.show`."""

    rows: tuple[str, ...]
    columns: tuple[str, ...]
    unit: Format
    formats: Mapping[Any, Format]
    titles: Mapping[Any, str]

    def estimate(self, record: Record) -> Cell:
        """Writes the value of a row with its interval, or an interval that has no value."""
        how = self._how(record)
        value, low, high = (number(record.get(name)) for name in ESTIMATE)
        shown, *ends = (write(part, how) for part in (value, low, high))
        link = address(record) if value and not math.isnan(value) else ""
        if math.isnan(low) or math.isnan(high) or (math.isinf(low) and low == high):
            alone = () if math.isnan(value) else (value,)
            return Cell(shown, number=True, link=link, estimate=alone)
        if math.isnan(value):
            return Cell(" to ".join(ends), number=True)
        estimate = (value, low, high)
        return Cell(shown, f"[{', '.join(ends)}]", number=True, link=link, estimate=estimate)

    def cited(self, record: Record) -> Cell:
        """Writes what the paper states of a row, a number or a range, or else what follows."""
        how = self._how(record)
        digits = number(record.get(STATED_DIGITS))
        exact = None if math.isnan(digits) else int(digits)
        value, low, high = (number(record.get(name)) for name in STATED)
        ends = [low, high] if math.isnan(value) and not math.isnan(low + high) else [value]
        text = " to ".join(write(end, how, exact, stated=True) for end in ends)
        value, low, high = (number(record.get(name)) for name in DERIVED)
        if text != MISSING or math.isnan(value):
            return Cell(text, number=True, published=True)
        ends = [value] if math.isnan(low + high) else [low, high]
        text = " to ".join(write(end, how, 2) for end in ends) + DERIVED_MARK
        return Cell(text, number=True, published=True, derived=True)

    def column(self, column: pd.Series[Any], name: str) -> Callable[[Any], Cell]:
        """Chooses how the cells of a column are written: by its format, else by its type."""
        if name in self.formats:
            how = self.formats[name]
        elif pd.api.types.is_float_dtype(column):
            # Counts of which some are missing.
            how = "count" if (column.dropna() % 1 == 0).all() else "number"
        else:
            return self._plain
        return lambda content: Cell(write(number(content), how), number=True)

    def title(self, column: str) -> str:
        """Gives the heading of a column of the frame."""
        return clean(self.titles[column]) if column in self.titles else _words(str(column))

    def name(self, key: Any) -> str:
        """Gives what a value that names a row, a column or a group is called."""
        if missing(key):
            return MISSING
        if isinstance(key, Hashable) and key in self.titles:
            return clean(self.titles[key])
        return _words(key) if key in SCORES else clean(str(key)) or MISSING

    def _plain(self, content: Any) -> Cell:
        if missing(content):
            return Cell(MISSING)
        if isinstance(content, bool):
            return Cell("yes" if content else "no")
        if isinstance(content, int | float):
            return Cell(write(content, "count" if content % 1 == 0 else "number"), number=True)
        return Cell(self.name(content))

    def _how(self, record: Record) -> Format:
        unit = record.get("unit")
        if not missing(unit):
            return self.formats.get(unit, str(unit))
        # The values that name a cell, the most telling first.
        named = (record[key] for key in (*reversed(self.columns), *self.rows))
        return next((self.formats[k] for k in (*named, "value") if k in self.formats), self.unit)


def write(
    number: float, how: Format = "number", digits: int | None = None, *, stated: bool = False
) -> str:
    """Writes a number for a reader, with thousands set apart and without its unit.

    Args:
        number: In its unit; NaN is a dash, and an infinite number the sign of infinity.
        how: ``share`` and ``points`` (0 to 1; shown per 100, points with their sign), ``count``,
            ``number``, ``dollars``, ``p`` (a probability), with other decimals as in ``share:2``;
            or a format string with one pair of braces, or a function of the number.
        digits: Decimals; those of the unit if ``None``, or those that a stated number needs.
        stated: Whether it is a published number: never rounded, and never made more exact.

    Raises:
        BookError: If there is no such unit.
    """
    if math.isnan(number):
        return MISSING
    if math.isinf(number):
        return INFINITE if number > 0 else f"-{INFINITE}"
    if callable(how):
        return how(number)
    if "{" in how:
        return how.format(number)
    how, _, decimals = how.partition(":")
    if how not in UNITS or not re.fullmatch("[0-9]?", decimals):
        raise BookError(
            f"no unit is called {how!r}. Use one of {', '.join(UNITS)}, with decimals as in "
            "'share:2', or a format string such as '{:.3g}'"
        )
    factor, sign, usual = UNITS[how]
    if stated:
        exact = ".12g" if digits is None else f".{digits}f"
        return f"{factor * number:{sign},{exact}}"
    if how == "p" and number < _SMALLEST_P:
        return f"< {_SMALLEST_P}"
    if how == "dollars" and not decimals:
        return dollars(number)
    if digits is None or how == "count":
        digits = int(decimals or usual)
    return f"{factor * number:{sign}z,.{digits}f}"


def in_order(column: pd.Series[Any]) -> list[Any]:
    """Lists the values of a column once: by its categories, or by when each appeared."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories)
    return list(column.unique())


def clean(text: str) -> str:
    """Puts text on one line, without characters that steer a terminal or turn text round."""
    kept = "".join(m for m in " ".join(text.split()) if m.isprintable() or m in _JOINERS)
    return " ".join(kept.split()) if kept.strip(_JOINERS + " ") else ""


def address(record: Record, column: str = "link") -> str:
    """Gives the address that a row of a frame has in a column, empty if it has none."""
    found = record.get(column)
    return "" if missing(found) else str(found)


def with_code(sentence: str) -> str:
    """Writes a sentence for HTML; text between backticks is shown as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(sentence))


def missing(content: Any) -> bool:
    """Whether a single value of a frame is missing: ``None``, NaN, ``NaT`` or ``NA``."""
    return bool(pd.api.types.is_scalar(content) and pd.isna(content))


def number(content: Any) -> float:
    """Gives a number of a frame as a float, NaN if it is missing."""
    return math.nan if missing(content) else float(content)


def _words(name: str) -> str:
    words = clean(name.replace("_", " "))
    return (words[:1].upper() + words[1:]).replace(" f1", " F1")
