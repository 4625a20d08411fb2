"""Reads how long a service asks to wait before the next call."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from email.utils import parsedate_to_datetime
from typing import Final

from cradle_engines.api.replies import lookup

# Seconds of a unit, by its first letters; "ms" and "milli" come before "m".
_UNITS: Final = {"ms": 0.001, "milli": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_PART: Final = re.compile(rf"(\d+(?:\.\d+)?) ?({'|'.join(_UNITS)})")
# "Please try again in 6m0s", "retry after 26 seconds": gateways may pass on a message without the
# headers of the provider.
_SENTENCE: Final = re.compile(
    r"\b(?:try again|retry|wait)(?: in| after| for)? ((?:\d[\d.]* ?[a-z]+,? ?)+)", re.IGNORECASE
)
# Fields of an error with a wait: Google's RetryInfo, and those of OpenRouter, which also quotes
# headers.
_SECONDS: Final = frozenset({"retry_delay", "retry_after", "retry_after_seconds"})


def requested_wait(
    headers: Mapping[str, str], fields: Iterable[tuple[str, object]] = ()
) -> float | None:
    """Reads the number of seconds that a service asks to wait.

    Args:
        headers: The reply's headers, looked up in lower case.
        fields: The fields of the error at any depth, as :func:`.fields_of` gives them.

    Returns:
        The longest wait that is named; ``None`` if none can be read. A time in the past is 0.
    """
    found = [_number(headers.get("retry-after-ms"), 0.001), _number(headers.get("retry-after"))]
    found.append(_until(headers.get("retry-after"), headers.get("date")))
    for name, value in fields:
        if name in _SECONDS:
            found += [_number(value), _number(lookup(value, "seconds")), _duration(value)]
        elif name == "retry_after_ms":
            found.append(_number(value, 0.001))
        elif isinstance(value, str) and (sentence := _SENTENCE.search(value)):
            found.append(_duration(sentence[1]))
    return max((wait for wait in found if wait is not None), default=None)


def _number(value: object, unit: float = 1.0) -> float | None:
    """Reads a finite number of a unit in seconds; a negative number is 0."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return None
    try:
        seconds = float(value) * unit
    except (ValueError, OverflowError):
        return None
    # Python accepts "nan" and "1e999" as numbers.
    return max(seconds, 0.0) if math.isfinite(seconds) else None


def _until(when: str | None, now: str | None) -> float | None:
    """Reads an HTTP date, relative to the time of the server, whose clock may be wrong."""
    end = _timestamp(when)
    return None if end is None else max(end - (_timestamp(now) or time.time()), 0.0)


def _timestamp(date: str | None) -> float | None:
    try:
        return parsedate_to_datetime(date or "").timestamp()
    except (ValueError, OverflowError):
        return None


def _duration(text: object) -> float | None:
    """Reads a time with units, such as ``40.2s``, ``1h2m3s`` or ``250 ms``."""
    parts = _PART.findall(text.lower()) if isinstance(text, str) else []
    return sum(float(number) * _UNITS[unit] for number, unit in parts) if parts else None
