"""Which version of this library runs: its release, and its commit in a checkout."""

from __future__ import annotations

import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version

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
    head = _git("rev-parse", "--short=12", "HEAD")
    return (head, bool(_git("status", "--porcelain", "-uno"))) if head else ("unknown", False)


def _git(*arguments: str) -> str:
    try:
        done = subprocess.run(
            ("git", "-C", str(paths.ROOT), *arguments),
            capture_output=True,
            text=True,
            check=False,
            timeout=20,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.strip() if done.returncode == 0 else ""
