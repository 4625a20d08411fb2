"""Adapters: what training changed in a model, kept beside it and merged into it on loading.

A folder holds ``adapter_config.json`` and ``adapter_model.safetensors``, as PEFT writes them. A
model with an adapter has ``weights: BASE + FOLDER``. Pickled weights are not read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.detection.local.quiet import quiet
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import EngineError

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"


def find_adapter(model: Model) -> tuple[Path, str] | None:
    """Finds a model's adapter, if it has one: its folder and its digest.

    The folder is looked for from here, or else from the top of the repository.

    Raises:
        EngineError: If the folder lacks one of the two files, or the entry pins another digest.
    """
    if model.adapter is None:
        return None
    here, home = Path(model.adapter), paths.ROOT / model.adapter
    folder = here if here.is_dir() else home
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


def content_pin(files: Iterable[Path]) -> str:
    """Pins files, names and content: ``sha256:`` and the digest of them all, in their order."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.name}\0{file.stat().st_size}\0".encode())
        with file.open("rb") as handle:
            while piece := handle.read(1 << 24):
                digest.update(piece)
    return f"sha256:{digest.hexdigest()}"


def adapter_digest(folder: Path) -> str:
    """Pins an adapter by its two files."""
    return content_pin(folder / name for name in (CONFIG, WEIGHTS))


def merged(lm: Any, model: Model) -> Any:
    """Merges a model's adapter into the base that Transformers loaded.

    Raises:
        EngineError: If the adapter is of another base, was changed, or can't be read.
    """
    found = find_adapter(model)
    if found is None:
        return lm
    folder, _ = found
    from peft import PeftConfig, get_peft_model, set_peft_model_state_dict
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    try:
        config = PeftConfig.from_pretrained(str(folder))
        trained_on = config.base_model_name_or_path or model.base
        # Folders are told by their last part only.
        if Path(trained_on).name != Path(model.base).name:
            raise ValueError(f"it was trained on {trained_on}")
        config.inference_mode = True
        # Named as Transformers knows the base here, which may be a folder of the cache.
        config.base_model_name_or_path = lm.name_or_path
        with quiet():
            wrapped = get_peft_model(lm, config)
        result: Any = set_peft_model_state_dict(wrapped, load_file(folder / WEIGHTS))
        strange = [*result.unexpected_keys, *(k for k in result.missing_keys if "lora_" in k)]
        if strange:
            raise ValueError(f"no match for {strange[0]}")
    except (SafetensorError, json.JSONDecodeError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise EngineError(f"{paths.shown(folder)}: the adapter can't be read ({reason})") from error
    except (RuntimeError, ValueError, TypeError, KeyError) as error:
        reason = " ".join(str(error).split())[:200]
        raise EngineError(
            f"{model.name}: the adapter {model.adapter} does not fit {model.base}: {reason}. Use "
            "it with the base that it was trained on."
        ) from error
    return wrapped.merge_and_unload()
