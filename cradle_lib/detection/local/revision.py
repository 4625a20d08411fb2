"""The revision of a model's weights: the commit on the Hub, or the checksum of a folder.

A branch or a tag can point to other weights tomorrow. A run records the commit, and loads that
commit when it is resumed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path
from typing import Final

from cradle_lib.detection.local.adapter import content_pin, find_adapter, more_templates
from cradle_lib.detection.local.embedded import PREFIX, embedded_pin
from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError
from cradle_lib.files import visible_files

_NAME: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
# Weights, configuration, chat template and vocabulary: the files that Transformers reads.
_SHAPES_ANSWERS: Final = frozenset(
    {".safetensors", ".json", ".jinja", ".txt", ".model", ".tiktoken"}
)
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")


def hub_commit(model: Model) -> str | None:
    """Finds the commit of a model's weights on the Hub: forty hexadecimal digits.

    It is the commit that ``revision``, or else ``main``, names on the Hub now, or without a network
    in the Hub's cache on this machine. ``None`` for weights that are not on the Hub: embedded ones
    and folders.

    Raises:
        EngineError: If it can't be found.
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
    """Finds the pin of a model's weights: the commit on the Hub, or the checksum of a folder.

    The checksum of a folder is over its weights, configuration and tokenizer. ``None`` for embedded
    weights that their entry does not pin. With an adapter: the pin of the base, embedded or not,
    and the adapter's digest.

    Raises:
        EngineError: As :func:`hub_commit`, or if the adapter is missing or has another digest.
    """
    if (adapter := find_adapter(model)) is not None:
        return f"{base_pin(model)} + {adapter[1]}"
    unpinned = model.revision is None and model.base.startswith(PREFIX)
    return None if unpinned else base_pin(model)


def base_pin(model: Model) -> str | None:
    """Finds the pin of a model's weights without an adapter, embedded ones too."""
    folder, pinned = Path(model.base), model.base_revision
    if folder.is_dir():
        files = [f for f in visible_files(folder) if f.suffix in _SHAPES_ANSWERS]
        return content_pin(folder, [*files, *more_templates(folder)])
    if pinned is not None and pinned.startswith("sha256:"):
        # A finished run needs no weights. Loading them compares the checksum.
        return pinned
    if model.base.startswith(PREFIX):
        return embedded_pin(model.base.removeprefix(PREFIX))
    return hub_commit(model)


def unloadable(model: Model, source: str, error: Exception) -> EngineError:
    """Makes the error for weights that can't be loaded: the reason in one line, and what to do."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(" .:")
    remedy = (
        "The folder needs config.json, safetensors and a tokenizer."
        if Path(source).is_dir()
        else f"Check the name, or download them where there is a network: `hf download {source}`."
    )
    return EngineError(
        f"the weights of {model.name} ({source}) can't be loaded: {reason}. {remedy}"
    )


@cache
def _resolved(name: str, revision: str) -> str:
    # Cached, so that the recorded commit is the one that is loaded.
    import httpx2
    from huggingface_hub import hf_hub_download

    try:
        config = Path(hf_hub_download(name, "config.json", revision=revision))
    except httpx2.HTTPError as error:
        raise OSError(str(error)) from error
    # The cache keeps each commit in a separate folder: snapshots/<commit>/config.json.
    commit = config.parent.name
    if not _COMMIT.fullmatch(commit):
        raise ValueError(f"{config.parent} is not named after a commit")
    return commit
