"""Dates in the settings of a model, such as the one that a chat template prints."""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Annotated

from pydantic import BeforeValidator


def _read_day(value: object) -> str:
    try:
        return date.fromisoformat(str(value)).isoformat()
    except ValueError:
        raise ValueError("must be a date such as 2026-11-25") from None


#: A date such as ``2026-11-25``, as text. YAML reads an unquoted one as a date.
Day = Annotated[str, BeforeValidator(_read_day)]


def today() -> str:
    """Gives today's date in UTC, such as ``2026-11-25``."""
    return datetime.now(UTC).date().isoformat()
