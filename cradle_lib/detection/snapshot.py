"""Which commit of a repository on the Hub a run uses.

A branch or a tag says what somebody meant; what they stand for can change overnight. A run
records the commit, and loads that very one.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from cradle_lib.detection.registry import Model
from cradle_lib.detection.weights import PREFIX
from cradle_lib.errors import EngineError

_NAME: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
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
    weights = str(model.weights)
    if weights.startswith(PREFIX) or Path(weights).is_dir() or not _NAME.fullmatch(weights):
        return None
    if model.revision is not None and _COMMIT.fullmatch(model.revision):
        return model.revision
    try:
        return _resolved(weights, model.revision or "main")
    except (OSError, ValueError) as error:
        raise unloadable(model, weights, error) from error


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
