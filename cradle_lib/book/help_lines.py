"""The help lines that stand on every page, from one data file."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from pydantic import BaseModel, ConfigDict, HttpUrl

from cradle_lib import paths
from cradle_lib.book.yaml_file import read_yaml

HELP_LINES = paths.DATA / "help_lines.yml"


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Line(_Part):
    """One line: who answers, what about, where, how to reach it, and its own site."""

    name: str
    about: str
    country: str
    contact: str
    url: HttpUrl


class Elsewhere(_Part):
    """A directory for everybody whom no line of the list serves."""

    name: str
    contact: str
    url: HttpUrl


class HelpLines(_Part):
    """All help lines.

    Attributes:
        verified_on: When every line was last checked.
        how_verified: Against what, in a few words.
        emergency: What to do in immediate danger.
        elsewhere: A directory of lines in other countries.
        lines: The lines, the most general first.
    """

    verified_on: date
    how_verified: str
    emergency: str
    elsewhere: Elsewhere
    lines: tuple[Line, ...]


def load_help_lines(path: Path = HELP_LINES) -> HelpLines:
    """Reads the help lines.

    Args:
        path: The data file.

    Returns:
        The help lines.

    Raises:
        BookError: If the file is missing or malformed: no page is built without them.
    """
    return read_yaml(path, HelpLines, "no help lines; every page needs them")
