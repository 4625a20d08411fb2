"""Absolute paths of the compendium's folders: no other module builds one by hand."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
DATA: Final = ROOT / "data"
SURROGATE: Final = DATA / "surrogate"
PHRASES: Final = SURROGATE / "phrases"
PUBLISHED: Final = DATA / "published"
SHIPPED_RUNS: Final = DATA / "runs"
RELEASE: Final = DATA / "release"
PROMPTS: Final = DATA / "prompts"
RUNS: Final = ROOT / "runs"
NOTEBOOKS: Final = ROOT / "notebooks"
BOOK: Final = ROOT / "book"
REGISTRY: Final = ROOT / "models.yml"
BENCH_RESULTS: Final = ROOT / "benchmarks" / "results"


def cache() -> Path:
    """Gives the folder for converted weights and other things that can be made again.

    Returns:
        ``$CRADLE_CACHE`` if it is set, else ``.cache`` at the top of the repository.
        The folder may not exist yet.
    """
    return Path(os.environ.get("CRADLE_CACHE") or ROOT / ".cache").expanduser().absolute()


def shown(path: Path) -> str:
    """Shortens a path for people: relative to the repository where it lies inside."""
    absolute = path.absolute()
    return str(absolute.relative_to(ROOT)) if absolute.is_relative_to(ROOT) else str(path)
