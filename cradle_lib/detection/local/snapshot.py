"""Which commit of a repository on the Hub a run uses.

A branch or a tag says what somebody meant; what they stand for can change overnight. A run
records the commit, and loads that very one.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache
from pathlib import Path
from typing import Final

from cradle_lib.detection.local.adapter import adapter_pin
from cradle_lib.detection.local.weights import PREFIX, embedded_pin
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import EngineError

_NAME: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
# Weights, configuration, chat template and vocabulary: what Transformers reads from a folder.
_SHAPES_ANSWERS: Final = frozenset({".safetensors", ".json", ".jinja", ".txt", ".model"})
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


def hub_commit(model: Model) -> str | None:
    """Finds the commit that a model's weights on the Hub are at.

    Args:
        model: An entry of the registry.

    Returns:
        Forty hexadecimal digits: what ``revision``, or else ``main``, stands for on the Hub
        now, or without a network in the Hub's cache on this machine. ``None`` for weights
        that are not on the Hub: embedded ones and folders.

    Raises:
        EngineError: If that can't be found out.
    """
    weights = model.base
    if weights.startswith(PREFIX) or Path(weights).is_dir():
        return None
    if not _NAME.fullmatch(weights):
        raise EngineError(
            f"{model.name}: there is no folder {weights} (from {Path.cwd()}), and a repository "
            "on the Hub is called ORG/NAME. Check the path."
        )
    pinned = model.base_revision
    if pinned is not None and _COMMIT.fullmatch(pinned):
        return pinned
    try:
        return _resolved(weights, pinned or "main")
    except (OSError, ValueError) as error:
        raise unloadable(model, weights, error) from error


def weights_pin(model: Model) -> str | None:
    """Finds what pins a model's weights: the commit on the Hub, or the content of a folder.

    Args:
        model: An entry of the registry.

    Returns:
        What :func:`hub_commit` gives; for a folder, the SHA-256 of its weights, configuration
        and tokenizer; ``None`` for embedded weights, which the registry pins. With an adapter,
        what pins the base, embedded or not, and after it the adapter's digest.

    Raises:
        EngineError: As :func:`hub_commit`, or if the adapter is missing or another one.
    """
    base, adapter = _base_pin(model), adapter_pin(model)
    if adapter is None:
        return base
    if base is None and model.base.startswith(PREFIX):
        base = model.base_revision or embedded_pin(model.base.removeprefix(PREFIX))
    return f"{base} + {adapter}"


def _base_pin(model: Model) -> str | None:
    folder = Path(model.base)
    if not folder.is_dir():
        # A run that is finished goes without its weights; whoever loads them looks again.
        pinned = model.base_revision or ""
        return pinned if pinned.startswith("sha256:") else hub_commit(model)
    digest = hashlib.sha256()
    for file in sorted(folder.iterdir()):
        if file.suffix in _SHAPES_ANSWERS:
            digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
            with file.open("rb") as handle:
                while piece := handle.read(1 << 24):
                    digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def unloadable(model: Model, source: str, error: Exception) -> EngineError:
    """Says in one line why weights can't be had, and what to do."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
    return EngineError(
        f"the weights of {model.name} ({source}) can't be loaded: {reason}. Check the name, "
        f"or download them where there is a network: `hf download {source}`."
    )


@cache
def _resolved(name: str, revision: str) -> str:
    # Asked once, so that what is recorded and what is loaded can't differ.
    import httpx2
    from huggingface_hub import hf_hub_download

    try:
        config = Path(hf_hub_download(name, "config.json", revision=revision))
    except httpx2.HTTPError as error:
        raise OSError(str(error)) from error
    # The cache keeps every commit in a folder of its own: snapshots/<commit>/config.json.
    commit = config.parent.name
    if not _COMMIT.fullmatch(commit):
        raise ValueError(f"{config.parent} is not named after a commit")
    return commit
