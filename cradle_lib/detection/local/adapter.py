"""Adapters: what training changed in a model, kept beside it and merged into it on loading.

A folder holds ``adapter_config.json`` and ``adapter_model.safetensors``, as PEFT writes them. A
model with an adapter has ``weights: BASE + FOLDER``. Pickled weights are not read.
"""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.detection.local.quiet import quiet
from cradle_lib.detection.models.model import Model
from cradle_lib.errors import EngineError

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"


def adapter_folder(model: Model) -> Path | None:
    """Finds a model's adapter.

    Args:
        model: An entry of the registry, or what a spec stands for.

    Returns:
        Its folder: from here, or else from the top of the repository; ``None`` if the model has
        no adapter.

    Raises:
        EngineError: If the folder lacks one of the two files.
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
    return folder


def adapter_digest(folder: Path) -> str:
    """Pins an adapter: ``sha256:`` and the digest of its two files."""
    digest = hashlib.sha256()
    for name in (CONFIG, WEIGHTS):
        content = (folder / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    return f"sha256:{digest.hexdigest()}"


def adapter_pin(model: Model) -> str | None:
    """Gives the digest of a model's adapter, after a comparison with what its entry pins.

    Args:
        model: An entry of the registry, or what a spec stands for.

    Returns:
        The digest; ``None`` if the model has no adapter.

    Raises:
        EngineError: If the adapter is not there, or not the one that is pinned.
    """
    folder = adapter_folder(model)
    if folder is None:
        return None
    found, pinned = adapter_digest(folder), model.adapter_revision
    if pinned not in (None, found):
        raise EngineError(
            f"{model.name}: the adapter {paths.shown(folder)} was changed. Its digest is "
            f"{found[:19]}..., the registry pins {str(pinned)[:19]}... Restore it, or pin the new "
            "one."
        )
    return found


def merged(lm: Any, model: Model) -> Any:
    """Merges a model's adapter into its weights.

    Args:
        lm: The base, as Transformers loaded it.
        model: What it belongs to.

    Returns:
        The base with changed weights; the base itself if there is no adapter.

    Raises:
        EngineError: If the adapter is of another base, was changed, or can't be read.
    """
    folder = adapter_folder(model)
    if folder is None:
        return lm
    adapter_pin(model)
    try:
        from peft import PeftConfig, get_peft_model, set_peft_model_state_dict
        from safetensors import SafetensorError
        from safetensors.torch import load_file
    except ImportError as error:
        raise EngineError(
            f"{model.name} has an adapter, and needs the package {error.name}. Install it with "
            f"`{paths.install_command('local')}`."
        ) from error
    try:
        config = PeftConfig.from_pretrained(str(folder))
        _require_base(model, config.base_model_name_or_path)
        config.inference_mode = True
        # Named as Transformers knows the base here, which may be a folder of the cache.
        config.base_model_name_or_path = lm.name_or_path
        with quiet():
            wrapped = get_peft_model(lm, config)
        result: Any = set_peft_model_state_dict(wrapped, load_file(folder / WEIGHTS))
    except (SafetensorError, json.JSONDecodeError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise EngineError(f"{paths.shown(folder)}: the adapter can't be read ({reason})") from error
    except (RuntimeError, ValueError, TypeError, KeyError) as error:
        raise _of_another_base(model, " ".join(str(error).split())[:200]) from error
    lacking = [name for name in result.missing_keys if "lora_" in name]
    if result.unexpected_keys or lacking:
        strange = [*result.unexpected_keys, *lacking][0]
        raise _of_another_base(model, f"no match for {strange}")
    return wrapped.merge_and_unload()


def _require_base(model: Model, named: str | None) -> None:
    """Compares the base that an adapter names; folders are told by their last part only."""
    if named and named.rstrip("/").rpartition("/")[2] != str(model.base).rpartition("/")[2]:
        raise _of_another_base(model, f"it was trained on {named}")


def _of_another_base(model: Model, reason: str) -> EngineError:
    return EngineError(
        f"{model.name}: the adapter {model.adapter} does not fit {model.base}: {reason}. Use it "
        "with the base that it was trained on."
    )
