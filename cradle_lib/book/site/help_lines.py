"""The help lines that stand on every page, from one data file."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from urllib.parse import quote

from pydantic import BaseModel, ConfigDict, HttpUrl, computed_field, model_validator

from cradle_lib import paths
from cradle_lib.book.yaml_file import read_yaml

HELP_LINES = paths.DATA / "help_lines.yml"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Way(_Part):
    """One way to reach a line: what to do in words, and the address that does it on a phone."""

    words: str
    address: str


class Line(_Part):
    """One line: who answers, what about, where.

    There is a number to ``call`` or one to ``text``, perhaps with a ``message`` that must be
    written there.
    """

    name: str
    about: str
    country: str
    call: str | None = None
    text: str | None = None
    message: str | None = None
    url: HttpUrl

    @model_validator(mode="after")
    def _can_be_reached(self) -> Line:
        if not self.ways:
            raise ValueError(f"{self.name} has neither a number to call nor one to text")
        return self

    @computed_field  # type: ignore[prop-decorator]
    @property
    def ways(self) -> tuple[Way, ...]:
        """How to reach it, calling first."""
        found = []
        if self.call is not None:
            found.append(Way(words=f"call {self.call}", address=f"tel:{_digits(self.call)}"))
        if self.text is not None:
            address = f"sms:{_digits(self.text)}"
            words = f"text {self.text}"
            if self.message is not None:
                words = f"text {self.message} to {self.text}"
                address += f"?&body={quote(self.message)}"
            found.append(Way(words=words, address=address))
        return tuple(found)


class Elsewhere(_Part):
    """A directory for everybody whom no line of the list serves."""

    name: str
    contact: str
    url: HttpUrl


class HelpLines(_Part):
    """All help lines, the most general first; when and how every line was last checked.

    ``emergency`` says what to do in immediate danger.
    """

    verified_on: date
    how_verified: str
    emergency: str
    elsewhere: Elsewhere
    lines: tuple[Line, ...]


def _digits(number: str) -> str:
    """Writes a number as a telephone takes it; one with a country's code begins with a plus."""
    digits = "".join(filter(str.isdigit, number))
    return f"+{digits}" if "-" in number else digits


def load_help_lines(path: Path = HELP_LINES) -> HelpLines:
    """Reads the help lines; no page is built without them."""
    return read_yaml(path, HelpLines, "no help lines; every page needs them")
