"""Exceptions of the optional parts."""

from __future__ import annotations

from pydantic import ValidationError

from cradle_lib.errors import CradleError


class TrainingError(CradleError, RuntimeError):
    """A training that can't start or can't go on; what was saved stays."""


class ExchangeError(CradleError, ValueError):
    """A bundle, or a log of another tool, that can't be made or read."""


def first_fault(error: ValidationError) -> str:
    """Describes the first validation error of a document: field, problem and value."""
    first = error.errors()[0]
    found = "" if first["type"] == "missing" else f", found {first['input']!r:.80}"
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}{found}" if place else f"{first['msg']}{found}"
