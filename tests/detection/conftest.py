from __future__ import annotations

import os
from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model

from ..engines.api.services import KEY, TEMPLATE
from .dialogues import make_corpus


@pytest.fixture
def corpus() -> Corpus:
    return make_corpus(
        [
            [
                ("User", "Hi, rough week at work.", "none"),
                ("Listener", "What happened?", "none"),
                ("User", "I can't see the point of any of it.", "alert_ongoing"),
                ("Listener", "Do you think of dying?", "none"),
                ("User", "Yes, I wish I was dead.", "confirm_SI_passive_ongoing"),
            ],
            [
                ("Listener", "Welcome back.", "none"),
                ("User", "This exam is killing me.", "none"),
                ("+", "- and the next one too", "none"),
                ("User", "Anyway, my husband hit me last night.", "confirm_DV_ongoing"),
            ],
            [("User", "Just saying hello.", "none")],
        ]
    )


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lets no spec of weights be looked up on the Hub."""
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Empty folders for own and shipped journals."""
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    return tmp_path


@pytest.fixture
def always_none() -> Model:
    return Model(id="always-none", name="Always none", group="baseline", engine="always-none")


@pytest.fixture
def api(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An API key, a short template, and environment variables with wrong addresses."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "short.txt").write_text(TEMPLATE.text)
    monkeypatch.setattr(paths, "PROMPTS", folder)
    monkeypatch.setenv("TEST_KEY", KEY)
    # These must be ignored: only the registry decides where text is sent.
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "http://127.0.0.1:9")
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
