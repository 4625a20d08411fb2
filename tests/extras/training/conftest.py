from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus

from ...engines.local.tiny_models import make_weights
from .dialogues import talks


@pytest.fixture(scope="module", autouse=True)
def short_prompt(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    folder = tmp_path_factory.mktemp("prompts")
    (folder / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    (folder / "split.txt").write_text("Label.\n{history}\nNow:\n{current_turn}\n")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "PROMPTS", folder)
        yield


@pytest.fixture
def corpus() -> Corpus:
    return talks(8)


@pytest.fixture(scope="session")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("weights"))
