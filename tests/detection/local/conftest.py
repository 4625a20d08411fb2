"""A short prompt template and tiny weights, for the tests of local models."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib import paths

from .tiny_models import make_weights


@pytest.fixture
def short_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes ``short`` the only prompt template."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    monkeypatch.setattr(paths, "PROMPTS", folder)


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny Llama with random weights, which no test changes."""
    return make_weights(tmp_path_factory.mktemp("weights"))
