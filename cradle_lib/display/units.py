"""How a number is written: by its unit, the same on every page.

A share is a number from 0 to 1 and is shown in percent; nothing in a frame is a percentage.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from cradle_lib.detection.cost.money import dollars
from cradle_lib.errors import BookError

MISSING: Final = "\N{EN DASH}"
INFINITE: Final = "\N{INFINITY}"

#: A unit of :data:`UNITS`, a format string such as ``{:.3g}``, or a function.
Format = str | Callable[[float], str]

#: For each unit: what a number is multiplied by, its sign option, and its usual decimals.
UNITS: Final[Mapping[str, tuple[float, str, int]]] = MappingProxyType(
    {
        "share": (100, "", 1),
        "points": (100, "+", 1),
        "count": (1, "", 0),
        "number": (1, "", 2),
        "dollars": (1, "", 2),
        "p": (1, "", 3),
    }
)
# Smaller p-values are not told apart.
_SMALLEST_P: Final = 0.001


def write(number: float, how: Format = "number", digits: int | None = None) -> str:
    """Writes a number for a reader.

    Args:
        number: In its unit; NaN is a dash, and an infinite number the sign of infinity.
        how: ``share`` and ``points`` (0 to 1; shown per 100, points with their sign), ``count``,
            ``number``, ``dollars``, ``p`` (a probability); or a format string with one pair of
            braces, or a function of the number.
        digits: Decimals; those of the unit if ``None``.

    Returns:
        The number with thousands set apart, without its unit.

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
    factor, sign, usual = _unit(how)
    if how == "p" and number < _SMALLEST_P:
        return f"< {_SMALLEST_P}"
    if how == "dollars" and digits is None:
        return dollars(number)
    decimals = usual if digits is None or how == "count" else digits
    return f"{factor * number:{sign}z,.{decimals}f}"


def write_stated(number: float, how: Format = "number", digits: int | None = None) -> str:
    """Writes a published number as it is stated: never rounded, and never made more exact.

    Args:
        number: As for :func:`write`.
        how: As for :func:`write`.
        digits: Decimals with which it is stated, zeros at its end among them; those that it needs
            if ``None``.

    Returns:
        The number.
    """
    if callable(how) or "{" in how or not math.isfinite(number):
        return write(number, how)
    factor, sign, _ = _unit(how)
    exact = ".12g" if digits is None else f".{digits}f"
    return f"{factor * number:{sign},{exact}}"


def _unit(name: str) -> tuple[float, str, int]:
    if name not in UNITS:
        raise BookError(
            f"no unit is called {name!r}. Use one of {', '.join(UNITS)}, "
            "or a format string such as '{:.3g}'"
        )
    return UNITS[name]
