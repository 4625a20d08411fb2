"""The version of this library: its release, and its commit in a checkout."""

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
    """Gives the commit of the checkout, and whether tracked files differ from it.

    The commit has twelve digits; it is ``unknown`` outside a checkout or if git fails.
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
