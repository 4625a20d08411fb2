"""Messages about documents that optional parts read."""

from __future__ import annotations

from pydantic import ValidationError


def first_fault(error: ValidationError) -> str:
    """Describes the first validation error of a document: field, problem and value."""
    first = error.errors()[0]
    found = "" if first["type"] == "missing" else f", found {first['input']!r:.80}"
    place = ".".join(map(str, first["loc"]))
    return f"{place}: {first['msg']}{found}" if place else f"{first['msg']}{found}"
