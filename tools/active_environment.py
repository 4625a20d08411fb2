"""Prints why the active environment can't build the book, or nothing if it can.

The Makefile runs this with the environment's own Python: any version, with any packages.
"""

import os
import sys
from importlib import metadata


def main() -> None:
    """Prints the first reason found, in one line, or nothing."""
    here = sys.prefix
    if sys.version_info < (3, 11):  # noqa: UP036 - not the project's Python
        _say(f"{here} has Python {sys.version.split()[0]}, 3.11 or newer is needed")
        return
    try:
        wanted = metadata.requires("cradle-lib") or []
        from packaging.requirements import Requirement
    except ModuleNotFoundError:
        _say(
            f"{here} lacks this project. To build in it: "
            "python -m pip install -c requirements.lock -e '.[book]'"
        )
        return
    lacking = []
    for line in wanted:
        need = Requirement(line)
        if need.marker is not None and not need.marker.evaluate({"extra": "book"}):
            continue
        try:
            found = metadata.version(need.name)
        except metadata.PackageNotFoundError:
            lacking.append(need.name)
            continue
        if not need.specifier.contains(found, prereleases=True):
            lacking.append(f"{need.name}{need.specifier} (it has {found})")
    if lacking:
        _say(f"{here} lacks {', '.join(lacking)}")


def _say(sentence: str) -> None:
    sys.stdout.write(sentence + os.linesep)


if __name__ == "__main__":
    main()
