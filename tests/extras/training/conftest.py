from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus

from ...detection.local.tiny_models import make_weights
from .dialogues import talks


@pytest.fixture(autouse=True)
def short_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    (folder / "split.txt").write_text("Label.\n{history}\nNow:\n{current_turn}\n")
    monkeypatch.setattr(paths, "PROMPTS", folder)


@pytest.fixture
def corpus() -> Corpus:
    return talks(8)


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("weights"))
