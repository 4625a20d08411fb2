"""File locations: the repository, the user's cache, and the data that ships with the package.

Other modules take these paths from here. In a checkout all files are in the repository. A wheel has
its data inside the package and writes to the working directory.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

#: Folder of this package.
PACKAGE: Final = Path(__file__).resolve().parent
#: Data folder of a wheel, which does not exist in a repository.
_IN_WHEEL: Final = PACKAGE / "shipped"
#: Whether the library runs from its repository, with the book and all runs.
CHECKOUT: Final = not _IN_WHEEL.is_dir()
#: Root of written and downloaded files: the repository, or else the working directory.
ROOT: Final = PACKAGE.parent if CHECKOUT else Path.cwd()
#: Root of the shipped files.
SHIPPED: Final = ROOT if CHECKOUT else _IN_WHEEL
DATA: Final = SHIPPED / "data"
SURROGATE: Final = DATA / "surrogate"
PUBLISHED: Final = DATA / "published"
SHIPPED_RUNS: Final = DATA / "runs"
RELEASE: Final = ROOT / "data" / "release"
PROMPTS: Final = ROOT / "data" / "prompts"
RUNS: Final = ROOT / "runs"
NOTEBOOKS: Final = ROOT / "notebooks"
BOOK: Final = ROOT / "book"
#: Page that `cradle fork` copies, and the model id of the run on it.
TEMPLATE: Final = "add-a-model"
TEMPLATE_RUN: Final = "your-model"
#: Environment variable with the name of the page that is being executed.
PAGE: Final = "CRADLE_PAGE"
BENCH_RESULTS: Final = SHIPPED / "benchmarks" / "results"
_OWN_REGISTRY: Final = ROOT / "models.yml"
#: The user's own file takes precedence over the one in a wheel.
REGISTRY: Final = _OWN_REGISTRY if _OWN_REGISTRY.exists() else SHIPPED / "models.yml"


def cache() -> Path:
    """Gives the cache folder, for converted weights and other files that can be recreated.

    It is ``$CRADLE_CACHE`` if set, else ``.cache`` in a checkout and ``~/.cache/cradle`` for a
    wheel. It may not exist yet.
    """
    default = ROOT / ".cache" if CHECKOUT else Path("~/.cache/cradle")
    return Path(os.environ.get("CRADLE_CACHE") or default).expanduser().absolute()


def shown(path: Path) -> str:
    """Gives a path for display, usable where a command was typed: relative to it, or absolute."""
    absolute, here = path.absolute(), Path.cwd()
    return str(absolute.relative_to(here) if absolute.is_relative_to(here) else absolute)


def install_command(extra: str) -> str:
    """Gives the pip command that installs an extra, in a checkout or from a package index."""
    if CHECKOUT:
        return f".venv/bin/python -m pip install -c requirements.lock -e '.[{extra}]'"
    return f"python -m pip install 'cradle-lib[{extra}]'"
