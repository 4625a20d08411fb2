"""Formats values of data frames for display.

Conventions of the library's frames: an estimate is the columns ``value``, ``low`` and ``high``;
NaN means undefined; the column ``unit`` selects the format of a row's numbers. A share is a number
from 0 to 1, shown in percent; no frame contains percentages.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from string import Formatter
from typing import Any, Final

import pandas as pd

from cradle_lib.arguments import checked, require_known
from cradle_lib.errors import ArgumentError
from cradle_lib.formatting import dollars

MISSING: Final = "\N{EN DASH}"
INFINITE: Final = "\N{INFINITY}"
_JOINERS: Final = "\N{ZERO WIDTH NON-JOINER}\N{ZERO WIDTH JOINER}"
Record = Mapping[Hashable, Any]
#: For each unit: factor, sign option of the format, and usual decimals.
UNITS: Final = {
    "share": (100, "", 1),
    "points": (100, "+", 1),
    "count": (1, "", 0),
    "number": (1, "", 2),
    "dollars": (1, "", 2),
    "p": (1, "", 3),
}
# Smaller p-values are shown as "< 0.001".
_SMALLEST_P: Final = 0.001


@dataclass(frozen=True, slots=True)
class Cell:
    """One formatted cell: plain text on one line.

    Attributes:
        text: The value.
        interval: Its confidence interval, shown in small type.
        number: Whether the cell is a number; numbers are aligned right.
        published: Whether the value is the paper's.
        best: Whether the value is the best of those compared.
        link: Address that the cell links to, such as the turns that it counts.
        value: The unformatted number, by which rows are sorted; ``None`` unless it is finite.
        estimate: The value of an estimate, alone or with the ends of its interval.
    """

    text: str
    interval: str = ""
    number: bool = False
    published: bool = False
    best: bool = False
    link: str = ""
    value: float | None = None
    estimate: tuple[float, ...] = ()

    def __str__(self) -> str:
        return f"{self.text} {self.interval}".strip()


def write(number: float, how: str = "number") -> str:
    """Writes a number with thousands separators and without its unit.

    Args:
        number: In its unit; NaN becomes a dash.
        how: A unit of :data:`UNITS` (a share and points are shown per 100, points with their
            sign), with other decimals as in ``share:2``, or a format string with one pair of
            braces.
    """
    if math.isnan(number):
        return MISSING
    if math.isinf(number):
        return INFINITE if number > 0 else f"-{INFINITE}"
    if "{" in how:
        return how.format(number)
    unit, _, decimals = how.partition(":")
    if unit == "p" and number < _SMALLEST_P:
        return f"< {_SMALLEST_P}"
    if unit == "dollars" and not decimals:
        return dollars(number)
    require_known("unit", unit, UNITS)
    factor, sign, usual = UNITS[unit]
    number, places = factor * number, int(decimals or usual)
    if sign:
        # A nonzero difference that rounds to zero keeps its sign; an exact zero has a plus.
        return f"{round(number, 6) + 0.0:{sign},.{places}f}"
    return f"{number:z,.{places}f}"


def in_order(column: pd.Series[Any]) -> list[Any]:
    """Lists the distinct values of a column by its categories, or in order of appearance."""
    if isinstance(column.dtype, pd.CategoricalDtype):
        return list(column.cat.categories)
    return list(column.unique())


def clean(text: str) -> str:
    """Puts text on one line, without control characters or marks of text direction."""
    kept = "".join(m for m in " ".join(text.split()) if m.isprintable() or m in _JOINERS)
    return " ".join(kept.split()) if kept.strip(_JOINERS + " ") else ""


def words(name: str) -> str:
    """Writes the name of a column or a score as words: ``micro_f1`` becomes "Micro F1"."""
    text = clean(name.replace("_", " "))
    return re.sub(r"\bf(?=\d)", "F", text[:1].upper() + text[1:])


def with_code(sentence: str) -> str:
    """Writes a sentence for HTML; text between backticks is shown as code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(sentence))


def missing(content: Any) -> bool:
    """Whether a single value of a frame is missing: ``None``, NaN, ``NaT`` or ``NA``."""
    return bool(pd.api.types.is_scalar(content) and pd.isna(content))


def number(content: Any) -> float:
    """Converts a value of a frame to a float, NaN if it is missing."""
    return math.nan if missing(content) else float(content)


def address(record: Record) -> str:
    """Gives the address in a row's column ``link``, empty if it has none."""
    found = record.get("link")
    return "" if missing(found) else str(found)


@checked
def listed(frame: pd.DataFrame, form: str, *, between: str = "; ") -> str:
    """Lists the rows of a frame in a sentence, for alternative texts and headlines.

    Args:
        frame: Its columns and named index levels are the fields of the form.
        form: Format string for a row, such as ``"{system} {value:.3f}"``.
        between: Separator between two rows.

    Returns:
        The text. Rows with a missing value in a field of the form are left out.
    """
    named = any(name is not None for name in frame.index.names)
    frame = frame.reset_index() if named else frame
    try:
        fields = {name for _, name, _, _ in Formatter().parse(form)}
        shown = frame.dropna(subset=[*fields.intersection(frame.columns)])
        records = shown.to_dict("records")
        return between.join(form.format_map(record) for record in records)
    except KeyError as error:
        require_known("column", str(error.args[0]), [*map(str, frame.columns)])
        raise
    except (AttributeError, IndexError, TypeError, ValueError) as error:
        raise ArgumentError(f"form is {form!r}, which can't be used: {error}") from None
