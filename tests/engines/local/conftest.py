"""A short prompt template and tiny weights, for the tests of local models."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from cradle_engines.local import revision
from cradle_engines.local.local_engine import Local, load_local
from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options
from cradle_lib.errors import EngineError

from ...detection.dialogues import make_corpus
from .tiny_models import FAMILIES, make_model, make_weights

#: Two commits.
OLD, NEW = "0" * 39 + "a", "0" * 39 + "b"


def error_of(model: Model) -> str:
    """Gives the message, of one line, with which a model is refused when it is loaded."""
    with pytest.raises(EngineError) as error:
        load_local(model, Options(device="cpu"))
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.fixture
def short_prompt(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Makes ``short`` the only prompt template."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    monkeypatch.setattr(paths, "PROMPTS", folder)


@pytest.fixture
def refs(weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Branches and tags of ``lab/tiny`` in a Hub cache, offline.

    Of its two commits, ``main`` is the newer one, and ``v1`` the older one.
    """
    for module in ("huggingface_hub", "transformers.utils.hub"):
        monkeypatch.setattr(f"{module}.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    repository = tmp_path / "hub" / "models--lab--tiny"
    (repository / "refs").mkdir(parents=True)
    for name, commit in (("main", NEW), ("v1", OLD)):
        shutil.copytree(weights, repository / "snapshots" / commit)
        (repository / "refs" / name).write_text(commit)
    revision._resolved.cache_clear()
    return repository / "refs"


@pytest.fixture(scope="session")
def families(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Folders of tiny models with random weights, by architecture; tests must not change them."""
    return {name: make_weights(tmp_path_factory.mktemp(name), family=name) for name in FAMILIES}


@pytest.fixture(scope="session")
def weights(families: dict[str, Path]) -> Path:
    """The folder of a tiny Llama."""
    return families["llama"]


@pytest.fixture(scope="session")
def loaded(weights: Path) -> Local:
    """The tiny Llama, loaded; tests must not change it."""
    return load_local(make_model(weights), Options())


@pytest.fixture(scope="session")
def hello() -> Corpus:
    """One dialogue with one question."""
    return make_corpus([[("User", "hello", "none")]])
