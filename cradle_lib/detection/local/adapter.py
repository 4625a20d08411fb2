"""Adapters: what training changed in a model, kept beside it and merged into it on loading.

A folder holds ``adapter_config.json`` and ``adapter_model.safetensors``, as PEFT writes them, and
perhaps a tokenizer and chat template, as TRL writes them. A model with an adapter has
``weights: BASE + FOLDER``. Pickled weights are not read.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError
from cradle_lib.files import visible_files

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"
# A folder with one of these has a whole tokenizer.
VOCABULARIES: Final = (
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "vocab.json",
    "vocab.txt",
)
TEMPLATE: Final = "chat_template.jinja"
SETTINGS: Final = "tokenizer_config.json"
_BESIDE: Final = ("added_tokens.json", "merges.txt", "special_tokens_map.json")
#: Folder with further chat templates, each by its name.
MORE_TEMPLATES: Final = "additional_chat_templates"


def adapter_folder(model: Model) -> Path | None:
    """Gives the folder of a model's adapter, from here or else from the top of the repository."""
    if model.adapter is None:
        return None
    here, home = Path(model.adapter), paths.ROOT / model.adapter
    return here if here.is_dir() else home


def find_adapter(model: Model) -> tuple[Path, str] | None:
    """Finds a model's adapter, if it has one: its folder and its digest.

    Raises:
        EngineError: If the folder lacks one of the two files, or the entry pins another digest.
    """
    folder = adapter_folder(model)
    if folder is None:
        return None
    for name in (CONFIG, WEIGHTS):
        if not (folder / name).is_file():
            raise EngineError(
                f"{model.name}: the adapter {paths.shown(folder)} has no {name}. An adapter is a "
                f"folder with {CONFIG} and {WEIGHTS}, as `cradle train` or PEFT writes it; those "
                "of this project come with its source distribution, not with a wheel."
            )
    found, pinned = adapter_digest(folder), model.adapter_revision
    if pinned not in (None, found):
        raise EngineError(
            f"{model.name}: the adapter {paths.shown(folder)} was changed. Its digest is "
            f"{found[:19]}..., the registry pins {str(pinned)[:19]}... Restore it, or pin the new "
            "one."
        )
    return folder, found


def content_pin(folder: Path, files: Iterable[Path]) -> str:
    """Pins files of a folder: ``sha256:`` and the digest of their names and content, in order."""
    digest = hashlib.sha256()
    for file in files:
        name = file.relative_to(folder).as_posix()
        digest.update(f"{name}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as handle:
            while piece := handle.read(1 << 24):
                digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def adapter_digest(folder: Path) -> str:
    """Pins an adapter by its two files, and by its tokenizer and chat template if it has them."""
    return content_pin(folder, [folder / CONFIG, folder / WEIGHTS, *tokenizer_files(folder)])


def tokenizer_files(folder: Path) -> list[Path]:
    """Lists the files of an adapter's own tokenizer and chat template: often none."""
    named = (folder / name for name in sorted({*VOCABULARIES, TEMPLATE, SETTINGS, *_BESIDE}))
    return [*(file for file in named if file.is_file()), *more_templates(folder)]


def more_templates(folder: Path) -> list[Path]:
    """Lists the chat templates in the subfolder for them."""
    return visible_files(folder / MORE_TEMPLATES, "*.jinja")
