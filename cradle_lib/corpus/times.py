"""Reads the times and numbers that order messages, without guessing between day and month."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

_MONTH: Final = re.compile(r"\b(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)", re.IGNORECASE)
_NUMERIC: Final = re.compile(
    r"(?:(?P<a>\d{1,4})[./-](?P<b>\d{1,2})[./-](?P<c>\d{1,4}))?[,\sT]*"
    r"(?:(?P<hour>\d{1,2})[:.](?P<minute>\d{2})(?:[:.](?P<second>\d{2}(?:[.,]\d+)?))?"
    r"(?:\s?(?P<half>[ap])\.?\s?m\.?)?)?",
    re.IGNORECASE,
)
_TIME_FIRST: Final = re.compile(r"(\d{1,2}:.*?),\s(\d{1,4}[./-]\d.*)")


class Reading(NamedTuple):
    """One way to read a column.

    Attributes:
        values: The values, which increase with time; NaN for an empty cell.
        dated: Whether they order all messages; times of a day without a date don't.
        number: Whether the cells are numbers.
    """

    values: NDArray[np.float64]
    dated: bool = True
    number: bool = False


def read_times(cells: Sequence[Any]) -> list[Reading]:
    """Reads a column as numbers, seconds since 1970, or times.

    Returns:
        The possible readings: none if the column is something else, and two if a date such as
        ``05/03/2024`` leaves open which number is the day.
    """
    texts = [cell_text(cell).strip("[] \t-\u2013") for cell in cells]
    filled = [text for text in texts if text]
    for read in (_numbers, _iso_times, _written_times):
        with suppress(ValueError, OverflowError):
            return [Reading(_fill(texts, read(filled)), number=read is _numbers)]
    found = []
    for day_first in (True, False):
        with suppress(ValueError):
            moments = [_numeric_time(text, day_first=day_first) for text in filled]
            dated = all(has_date for _, has_date in moments)
            if dated or not any(has_date for _, has_date in moments):
                found.append(Reading(_fill(texts, [value for value, _ in moments]), dated))
    return found


def cell_text(cell: Any) -> str:
    """Gives a cell as text; an empty one or NaN is an empty text."""
    return "" if cell is None or cell != cell else str(cell).strip()


def _fill(texts: Sequence[str], values: Sequence[float]) -> NDArray[np.float64]:
    found = np.full(len(texts), np.nan)
    found[[place for place, text in enumerate(texts) if text]] = values
    return found


def _numbers(texts: Sequence[str]) -> list[float]:
    """Reads numbers; milliseconds, microseconds and nanoseconds since 1970 become seconds."""
    numbers = [float(text) for text in texts]
    if not all(map(math.isfinite, numbers)):
        raise ValueError
    scales = ((1e17, 1e9), (1e14, 1e6), (1e11, 1e3), (-math.inf, 1))
    return [n / next(scale for least, scale in scales if n >= least) for n in numbers]


def _iso_times(texts: Sequence[str]) -> list[float]:
    times = [datetime.fromisoformat(re.sub(" ?UTC$", "+00:00", text)) for text in texts]
    if len({time.tzinfo is None for time in times}) > 1:
        raise ValueError
    return [(time if time.tzinfo else time.replace(tzinfo=UTC)).timestamp() for time in times]


def _written_times(texts: Sequence[str]) -> list[float]:
    """Reads times with the English name of a month, which leaves no doubt about the day."""
    import pandas as pd

    if not all(map(_MONTH.search, texts)):
        raise ValueError
    return [time.timestamp() for time in pd.to_datetime([*texts], utc=True, format="mixed")]


def _numeric_time(text: str, *, day_first: bool) -> tuple[float, bool]:
    """Reads a date, a time of day, or both; the second value is whether there is a date."""
    match = _NUMERIC.fullmatch(_TIME_FIRST.sub(r"\2 \1", text))
    if match is None or not (match["a"] or match["hour"]):
        raise ValueError
    hour, minute = (int(match[name] or 0) for name in ("hour", "minute"))
    second = float((match["second"] or "0").replace(",", "."))
    if match["half"]:
        hour = hour % 12 + 12 * (match["half"].lower() == "p")
    if match["a"] is None:
        return 3600 * hour + 60 * minute + second, False
    a, b, c = (int(match[name]) for name in "abc")
    year, month, day = (a, b, c) if a > 31 else (c, b, a) if day_first else (c, a, b)
    year += 2000 * (year < 100)
    return datetime(year, month, day, hour, minute, tzinfo=UTC).timestamp() + second, True
