"""Installs engines of a test as another package does: by entry points in its metadata."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib.detection import Engine


def install_engines(folder: Path, monkeypatch: pytest.MonkeyPatch, *kinds: type[Engine]) -> None:
    """Adds a folder with a package's metadata to the import path.

    The name of each engine is that of its class in lower case.
    """
    about = folder / "others-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    lines = [f"{kind.__name__.lower()} = {kind.__module__}:{kind.__name__}" for kind in kinds]
    (about / "entry_points.txt").write_text("\n".join(["[cradle.engines]", *lines, ""]))
    monkeypatch.syspath_prepend(folder)
