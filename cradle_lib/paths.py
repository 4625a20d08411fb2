"""Where things lie, and how more of them are had: no other module builds such a path by hand.

In a checkout everything lies in the repository. A wheel carries what the library needs inside the
package, and what is made or fetched lies where the command is started.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent
#: What a wheel brings along; a repository has no such folder.
_IN_WHEEL: Final = _PACKAGE / "shipped"
#: Whether the library stands in its repository, with the book and everything that was run.
CHECKOUT: Final = not _IN_WHEEL.is_dir()
#: Top of what is written and fetched: the repository, or else the working directory.
ROOT: Final = _PACKAGE.parent if CHECKOUT else Path.cwd()
#: Top of what ships.
SHIPPED: Final = ROOT if CHECKOUT else _IN_WHEEL
DATA: Final = SHIPPED / "data"
SURROGATE: Final = DATA / "surrogate"
PHRASES: Final = SURROGATE / "phrases"
PUBLISHED: Final = DATA / "published"
SHIPPED_RUNS: Final = DATA / "runs"
RELEASE: Final = ROOT / "data" / "release"
PROMPTS: Final = ROOT / "data" / "prompts"
RUNS: Final = ROOT / "runs"
NOTEBOOKS: Final = ROOT / "notebooks"
BOOK: Final = ROOT / "book"
BENCH_RESULTS: Final = SHIPPED / "benchmarks" / "results"
_OWN_REGISTRY: Final = ROOT / "models.yml"
#: A file of one's own comes before the one in a wheel.
REGISTRY: Final = _OWN_REGISTRY if _OWN_REGISTRY.exists() else SHIPPED / "models.yml"


def cache() -> Path:
    """Gives the folder, perhaps not there yet, for converted weights and what can be made again.

    It is ``$CRADLE_CACHE`` if it is set, else ``.cache`` at the top of the repository, or without
    one ``~/.cache/cradle``.
    """
    usual = ROOT / ".cache" if CHECKOUT else Path("~/.cache/cradle")
    return Path(os.environ.get("CRADLE_CACHE") or usual).expanduser().absolute()


def shown(path: Path) -> str:
    """Shortens a path for people: relative to :data:`ROOT` where it lies inside."""
    absolute = path.absolute()
    return str(absolute.relative_to(ROOT)) if absolute.is_relative_to(ROOT) else str(path)


def install_command(extra: str) -> str:
    """Gives the command that installs the packages of an extra, for this way of installation."""
    if CHECKOUT:
        return f".venv/bin/python -m pip install -c requirements.lock -e '.[{extra}]'"
    return f"python -m pip install 'cradle-lib[{extra}]'"
