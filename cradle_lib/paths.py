"""File locations: the repository, the user's cache, and the data that ships with the package.

No other module builds such a path by hand. In a checkout everything is in the repository. A wheel
has its data inside the package, and writes to the folder in which the command is started.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

_PACKAGE: Final = Path(__file__).resolve().parent
#: Data in a wheel; a repository has no such folder.
_IN_WHEEL: Final = _PACKAGE / "shipped"
#: Whether the library runs from its repository, with the book and all runs.
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
#: Page that `cradle fork` copies, and the run of the model on it.
TEMPLATE: Final = "add-a-model"
TEMPLATE_RUN: Final = "your-model"
BENCH_RESULTS: Final = SHIPPED / "benchmarks" / "results"
_OWN_REGISTRY: Final = ROOT / "models.yml"
#: The user's own file comes before the one in a wheel.
REGISTRY: Final = _OWN_REGISTRY if _OWN_REGISTRY.exists() else SHIPPED / "models.yml"


def cache() -> Path:
    """Gives the folder of the cache, for converted weights and other files that can be made again.

    It may not exist yet. It is ``$CRADLE_CACHE`` if it is set, else ``.cache`` at the top of the
    repository, or without one ``~/.cache/cradle``.
    """
    usual = ROOT / ".cache" if CHECKOUT else Path("~/.cache/cradle")
    return Path(os.environ.get("CRADLE_CACHE") or usual).expanduser().absolute()


def shown(path: Path) -> str:
    """Shortens a path for people: relative to :data:`ROOT` if it is inside."""
    absolute = path.absolute()
    return str(absolute.relative_to(ROOT)) if absolute.is_relative_to(ROOT) else str(path)


def install_command(extra: str) -> str:
    """Gives the command that installs the packages of an extra, for this way of installation."""
    if CHECKOUT:
        return f".venv/bin/python -m pip install -c requirements.lock -e '.[{extra}]'"
    return f"python -m pip install 'cradle-lib[{extra}]'"
