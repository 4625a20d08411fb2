"""Cells: what a reader sees of a value, an estimate or a name.

The convention of the library's frames: an estimate is the columns ``value``, ``low`` and
``high``; what the paper states of it is ``published``, or ``published_low`` and
``published_high``, with ``published_digits`` decimals; what follows from the paper's numbers is
``derived``, or a range; ``unit`` says how a row's numbers are written. NaN is what is undefined or
not stated.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import pandas as pd

from cradle_lib.display.units import MISSING, Format, write, write_stated
from cradle_lib.scoring.core.scores import OVERALL, PER_LABEL

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


@dataclass(frozen=True, slots=True)
class Cell:
    """One cell as a reader sees it.

    Attributes:
        text: Plain text on one line.
        interval: What stands beside it in small type.
        number: Whether it is a number, to be set flush right.
        published: Whether it is the paper's.
        derived: Whether it only follows from what is the paper's.
        best: Whether it is marked as the best of its contest.
        link: Address of what it counts, if it has one.
    """

    text: str
    interval: str = ""
    number: bool = False
    published: bool = False
    derived: bool = False
    best: bool = False
    link: str = ""

    def __str__(self) -> str:
        """The text and its interval."""
        return f"{self.text} {self.interval}".strip()


BLANK: Final = Cell("")


@dataclass(frozen=True)
class Writer:
    """Writes cells; the attributes are the arguments of :func:`.show`.

    Attributes:
        unit: How an estimate is written if nothing else says it.
        digits: Decimals of estimates; those of their unit if ``None``.
        formats: How numbers are written, by a column or by a value in one of ``keys``.
        titles: What columns and values are called.
        keys: Columns whose values name a cell, the most telling first.
    """

    unit: Format = "share"
    digits: int | None = None
    formats: Mapping[Any, Format] = field(default_factory=dict)
    titles: Mapping[Any, str] = field(default_factory=dict)
    keys: Sequence[str] = ()

    def estimate(self, record: Record) -> Cell:
        """Writes the value of a row with its interval, or an interval that has no value."""
        how = self._how(record)
        value, low, high = (number(record.get(name)) for name in ESTIMATE)
        shown, *ends = (write(part, how, self.digits) for part in (value, low, high))
        link = address(record) if value and not math.isnan(value) else ""
        if math.isnan(low) or math.isnan(high) or (math.isinf(low) and low == high):
            return Cell(shown, number=True, link=link)
        if math.isnan(value):
            return Cell(" to ".join(ends), number=True)
        return Cell(shown, f"[{', '.join(ends)}]", number=True, link=link)

    def stated(self, record: Record) -> Cell:
        """Writes what the paper states of a row, a number or a range, or else what follows."""
        how = self._how(record)
        digits = number(record.get(STATED_DIGITS))
        exact = None if math.isnan(digits) else int(digits)
        value, low, high = (number(record.get(name)) for name in STATED)
        if math.isnan(value) and not math.isnan(low + high):
            text = " to ".join(write_stated(end, how, exact) for end in (low, high))
        else:
            text = write_stated(value, how, exact)
        value, low, high = (number(record.get(name)) for name in DERIVED)
        if text != MISSING or math.isnan(value):
            return Cell(text, number=True, published=True)
        ends = [value] if math.isnan(low + high) else [low, high]
        text = " to ".join(write(end, how, 2) for end in ends) + DERIVED_MARK
        return Cell(text, number=True, published=True, derived=True)

    def column(self, column: pd.Series[Any], name: str) -> Callable[[Any], Cell]:
        """Chooses how the cells of a column are written: by its format, else by its type."""
        how: Format | None = self.formats.get(name)
        if how is None and pd.api.types.is_float_dtype(column):
            # Counts of which some are missing.
            how = "count" if (column.dropna() % 1 == 0).all() else "number"
        if how is None:
            return self._plain
        chosen = how
        return lambda content: Cell(write(number(content), chosen), number=True)

    def title(self, column: str) -> str:
        """Gives the heading of a column of the frame."""
        return clean(self.titles[column]) if column in self.titles else _words(str(column))

    def name(self, key: Any) -> str:
        """Gives what a value that names a row, a column or a group is called."""
        if missing(key):
            return MISSING
        if isinstance(key, Hashable) and key in self.titles:
            return clean(self.titles[key])
        return _words(key) if key in (*OVERALL, *PER_LABEL) else clean(str(key)) or MISSING

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
        named = (record[key] for key in self.keys)
        return next((self.formats[k] for k in (*named, "value") if k in self.formats), self.unit)


def clean(text: str) -> str:
    """Puts text on one line, without characters that steer a terminal or turn text round."""
    kept = "".join(m for m in " ".join(text.split()) if m.isprintable() or m in _JOINERS)
    return " ".join(kept.split()) if kept.strip(_JOINERS + " ") else ""


def address(record: Record, column: str = "link") -> str:
    """Gives the address that a row of a frame has in a column, empty if it has none."""
    found = record.get(column)
    return "" if missing(found) else str(found)


def with_code(sentence: str) -> str:
    """Writes a sentence for HTML; what stands between backticks is shown as code."""
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
