"""Which version of this library runs: its release, and its commit in a checkout."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from cradle_lib import paths


@cache
def library_version() -> str:
    """Gives the version of this library, or ``0+unknown`` if it is not installed."""
    try:
        return version("cradle-lib")
    except PackageNotFoundError:
        return "0+unknown"


def commit() -> tuple[str, bool]:
    """Finds the first twelve digits of the commit that the library runs from.

    They are ``unknown`` outside a checkout. Also says whether tracked files were changed since.
    """
    if not paths.CHECKOUT:
        return "unknown", False
    git = ("git", "-C", str(paths.ROOT))
    options: Any = {"stderr": subprocess.DEVNULL, "text": True, "timeout": 20}
    try:
        head = subprocess.check_output((*git, "rev-parse", "--short=12", "HEAD"), **options)
        changes = subprocess.check_output((*git, "status", "--porcelain", "-uno"), **options)
    except (OSError, subprocess.SubprocessError):
        return "unknown", False
    return head.strip(), bool(changes.strip())
