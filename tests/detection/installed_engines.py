"""Installs engines of a test as another package does: by entry points in its metadata."""

from __future__ import annotations

from pathlib import Path

import pytest


def install_engines(folder: Path, monkeypatch: pytest.MonkeyPatch, **engines: str) -> None:
    """Adds a folder with a package's metadata to the import path.

    ``engines`` are the places of the classes, such as ``module:Class``, by name.
    """
    about = folder / "others-1.0.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    lines = [f"{name} = {place}" for name, place in engines.items()]
    (about / "entry_points.txt").write_text("\n".join(["[cradle.engines]", *lines, ""]))
    monkeypatch.syspath_prepend(folder)
