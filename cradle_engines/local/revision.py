"""Pins of a model's weights: a commit on the Hub, or a checksum of local files.

A branch or a tag can move to other weights, so a run records the commit and loads that commit when
it is resumed. A model with an adapter has ``weights: BASE + ADAPTER``, a folder or a repository on
the Hub; its pin consists of the pin of the base and the digest or commit of the adapter.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Final

from cradle_engines.local.embedded import PREFIX, embedded_pin
from cradle_lib import paths
from cradle_lib.detection.models.adapters import CONFIG
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import EngineError
from cradle_lib.files import visible_files

#: The weights of an adapter, as PEFT writes them. Pickled weights are not read.
WEIGHTS: Final = "adapter_model.safetensors"
# The files that an adapter's digest covers, in alphabetical order: its own, and those of the
# tokenizer and chat template that TRL saves with it.
_ADAPTER_FILES: Final = (
    CONFIG,
    WEIGHTS,
    "added_tokens.json",
    "chat_template.jinja",
    "merges.txt",
    "special_tokens_map.json",
    "tokenizer.json",
    "tokenizer.model",
    "tokenizer_config.json",
    "vocab.json",
)
# Weights, configuration, chat template and vocabulary: the files that Transformers reads.
_PINNED_SUFFIXES: Final = frozenset(
    {".safetensors", ".json", ".jinja", ".txt", ".model", ".tiktoken"}
)
_NAME: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
_COMMIT: Final = re.compile(r"[0-9a-f]{40}")
# Converts an adapter's pickled weights in the working directory; `weights_only` runs no code.
_CONVERT: Final = (
    'python -c "import torch; from safetensors.torch import save_file; '
    "save_file({k: v.contiguous() for k, v in torch.load('adapter_model.bin', map_location='cpu', "
    "weights_only=True).items()}, 'adapter_model.safetensors')\""
)


def weights_pin(model: Model) -> str:
    """Finds the pin of a model's weights, including its adapter.

    Raises:
        EngineError: As :func:`hub_commit` and :func:`find_adapter`.
    """
    folder = find_adapter(model)
    return base_pin(model) + (f" + {_adapter_pin(model, folder)}" if folder is not None else "")


def known_pin(model: Model) -> str:
    """Finds the pin of a model's weights and adapter without a network.

    Each part that is not known is ``*``: weights or an adapter on the Hub without a commit, or a
    missing folder without a digest.
    """

    def fixed(pinned: str | None) -> str:
        found = pinned or ""
        return found if found.startswith("sha256:") or is_commit(found) else "*"

    found = base_pin(model) if Path(model.base).is_dir() else fixed(model.base_revision)
    if model.adapter is None:
        return found
    adapter = _adapter_folder(model.adapter)
    digest = adapter_digest(adapter) if adapter.is_dir() else fixed(model.adapter_revision)
    return f"{found} + {digest}"


def base_pin(model: Model) -> str:
    """Finds the pin of a model's weights without an adapter."""
    folder, pinned = Path(model.base), model.base_revision
    if folder.is_dir():
        files = (file for file in visible_files(folder) if file.suffix in _PINNED_SUFFIXES)
        return _content_pin(folder, files)
    if pinned is not None and pinned.startswith("sha256:"):
        # The checksum is compared when the weights are loaded; a finished run needs none.
        return pinned
    if model.base.startswith(PREFIX):
        return embedded_pin(model.base)
    return hub_commit(model)


def hub_commit(model: Model) -> str:
    """Finds the commit of a model's weights on the Hub: forty hexadecimal digits.

    ``revision``, by default ``main``, is looked up on the Hub, or without a network in the Hub's
    local cache.

    Raises:
        EngineError: If it can't be found.
    """
    weights = model.base
    if not _NAME.fullmatch(weights):
        raise EngineError(
            f"{model.name}: there is no folder {weights} (from {Path.cwd()}), and a repository "
            "on the Hub is called ORG/NAME. Check the path."
        )
    pinned = model.base_revision
    if pinned is not None and is_commit(pinned):
        return pinned
    try:
        return _resolved(weights, pinned or "main")
    except Exception as error:
        raise load_error(model.name, weights, error) from error


def is_commit(revision: str) -> bool:
    """Whether a revision is a commit, and not a branch or a tag."""
    return _COMMIT.fullmatch(revision) is not None


@cache
def _resolved(name: str, revision: str) -> str:
    # Cached, so that the recorded commit is the one that is loaded.
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError

    try:
        file = hf_hub_download(name, "config.json", revision=revision)
    except EntryNotFoundError:
        # An adapter, which is refused with its base's name when it is loaded.
        file = hf_hub_download(name, CONFIG, revision=revision)
    # The Hub's cache keeps each commit in a separate folder: snapshots/<commit>/config.json.
    return Path(file).parent.name


def find_adapter(model: Model) -> Path | None:
    """Finds the folder of an adapter, relative to the working directory or else to the repository.

    An adapter on the Hub is downloaded into the Hub's cache.

    Raises:
        EngineError: If the folder lacks one of the two files, the entry pins another digest, or
            the Hub has no such adapter.
    """
    if model.adapter is None:
        return None
    folder, is_on_hub = _adapter_folder(model.adapter), _is_on_hub(model.adapter)
    if is_on_hub:
        try:
            folder = _downloaded(model.adapter, model.adapter_revision or "main")
        except Exception as error:
            raise load_error(f"{model.name}'s adapter", model.adapter, error) from error
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise EngineError(
                f"{model.name}: the adapter {_shown(model.adapter)} has no {name}. An adapter is a "
                f"folder or a repository on the Hub with {CONFIG} and {WEIGHTS}, as `cradle train` "
                "or PEFT writes it; those of this project come with its source distribution, not "
                f"with a wheel. If it has adapter_model.bin, convert that in its folder: {_CONVERT}"
            )
    found, pinned = _adapter_pin(model, folder), model.adapter_revision
    if not is_on_hub and pinned not in (None, found):
        raise EngineError(
            f"{model.name}: the adapter {paths.shown(folder)} was changed. Its digest is "
            f"{found[:19]}..., the registry pins {str(pinned)[:19]}... Restore it, or pin the new "
            "one."
        )
    return folder


def _adapter_folder(name: str) -> Path:
    folder = Path(name)
    return folder if folder.is_dir() else paths.ROOT / name


def _is_on_hub(adapter: str) -> bool:
    """Whether an adapter is no folder, and its name is ORG/NAME."""
    is_name = "/" in adapter and _NAME.fullmatch(adapter) is not None
    return is_name and not _adapter_folder(adapter).is_dir()


def _shown(adapter: str) -> str:
    return adapter if _is_on_hub(adapter) else paths.shown(_adapter_folder(adapter))


@cache
def _downloaded(name: str, revision: str) -> Path:
    # Cached, so that the recorded commit is the one that is loaded.
    from huggingface_hub import snapshot_download

    return Path(snapshot_download(name, revision=revision, allow_patterns=list(_ADAPTER_FILES)))


def _adapter_pin(model: Model, folder: Path) -> str:
    """Pins an adapter by its commit on the Hub, or by its digest."""
    return folder.name if _is_on_hub(str(model.adapter)) else adapter_digest(folder)


def adapter_digest(folder: Path) -> str:
    """Pins an adapter by its two files, and by its tokenizer and chat template if it has them."""
    return _content_pin(folder, (folder / name for name in _ADAPTER_FILES))


def _content_pin(folder: Path, files: Iterable[Path]) -> str:
    """Pins files of a folder: ``sha256:`` and the digest of their names and contents, in order."""
    states = [(file, file.stat()) for file in files if file.is_file()]
    return _digest_files(folder, tuple((file, s.st_size, s.st_mtime_ns) for file, s in states))


# Cached, because weights may have many gigabytes. A changed file has another time or size.
@cache
def _digest_files(folder: Path, files: tuple[tuple[Path, int, int], ...]) -> str:
    digest = hashlib.sha256()
    for file, size, _ in files:
        digest.update(f"{file.relative_to(folder).as_posix()}\0{size}\0".encode())
        with file.open("rb") as handle:
            while piece := handle.read(1 << 24):
                digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def load_error(name: str, source: str, error: Exception) -> EngineError:
    """Makes the error for weights that can't be loaded: the reason in one line, and what to do."""
    reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200].rstrip(" .:")
    remedy = (
        "The folder needs config.json, safetensors and a tokenizer."
        if Path(source).is_dir()
        else f"Check the name, or download them on another machine: `hf download {source}`."
    )
    return EngineError(f"the weights of {name} ({source}) can't be loaded: {reason}. {remedy}")
