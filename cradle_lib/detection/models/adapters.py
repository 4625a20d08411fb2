"""Completes a spec of an adapter alone with the base that the adapter's configuration names."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final

from cradle_lib import paths
from cradle_lib.errors import RegistryError

#: The configuration of an adapter, as PEFT writes it.
CONFIG: Final = "adapter_config.json"
_REPOSITORY: Final = re.compile(r"[\w-][\w.-]*(/[\w-][\w.-]*)?")
# Names of quantized copies, such as `unsloth/Qwen3-32B-bnb-4bit` and `Qwen/Qwen3-8B-AWQ`.
_QUANTIZED: Final = re.compile(r"bnb|[2-8]-?bit|gptq|awq|gguf|(int|fp)[48]", re.IGNORECASE)


def with_base(spec: str, notice: Callable[[str], None]) -> str:
    """Completes the spec of an adapter, ``hf:ADAPTER``, to ``hf:BASE + ADAPTER``.

    The adapter is a folder or a repository on the Hub, whose configuration is downloaded into the
    Hub's cache; a page of the book looks only into that cache. If the Hub can't be reached, the
    spec is not changed, and loading the weights reports the reason.

    Args:
        spec: A spec that begins with ``hf:``.
        notice: Called with a sentence if the spec is completed.

    Returns:
        The completed spec; any other spec unchanged.

    Raises:
        RegistryError: If the configuration can't be read, or names no base that can be used: none
            at all, a quantized copy, or neither a folder nor a repository.
    """
    adapter = spec.removeprefix("hf:").strip()
    config = _config(adapter)
    if config is None:
        return spec
    try:
        base = json.loads(config.read_text(encoding="utf-8")).get("base_model_name_or_path")
    except (OSError, ValueError, AttributeError) as error:
        raise RegistryError(
            f"{adapter} is an adapter, but its {CONFIG} can't be read ({error}). Save or download "
            "it again."
        ) from error
    if (problem := _problem(base)) is not None:
        raise RegistryError(
            f"{adapter} is an adapter, and its {CONFIG} names {problem}. Name the base to use: "
            f"`hf:BASE + {adapter}`, with `--set trained_on={base or 'NAME'}` if that is another "
            "name of the same model."
        )
    notice(
        f"{adapter} is an adapter, whose {CONFIG} names the base {base}: `hf:{base} + {adapter}` "
        f"is used. With another copy of that base, add `--set trained_on={base}`."
    )
    return f"hf:{base} + {adapter}"


def _config(adapter: str) -> Path | None:
    """Finds the configuration of an adapter; ``None`` if the weights are none, or out of reach."""
    if os.path.isdir(adapter):
        file = Path(adapter, CONFIG)
        return file if file.is_file() else None
    if "/" not in adapter or not _REPOSITORY.fullmatch(adapter):
        return None
    from huggingface_hub import file_exists, hf_hub_download, try_to_load_from_cache

    found: object = None
    with suppress(Exception):  # No network, no access, or a name that is too long.
        # An object of another type if the last known commit lacks the file.
        found = try_to_load_from_cache(adapter, CONFIG)
        # Without a network, this fails at once, and a download only after half a minute.
        if found is None and paths.PAGE not in os.environ and file_exists(adapter, CONFIG):
            found = hf_hub_download(adapter, CONFIG)
    return Path(found) if isinstance(found, str) else None


def _problem(base: object) -> str | None:
    """Says why the base that an adapter names can't be used; ``None`` if it can."""
    if not base or not isinstance(base, str):
        return "no base"
    if _QUANTIZED.search(Path(base).name):
        return f"{base}, a quantized copy of its base"
    if os.path.isdir(base) or base.startswith("embedded:") or _may_be_on_hub(base):
        return None
    return f"{base}, which is neither a folder here nor a repository on the Hub"


def _may_be_on_hub(name: str) -> bool:
    """Whether a name is that of a repository, unless the Hub says that there is none."""
    if not _REPOSITORY.fullmatch(name):
        return False
    from huggingface_hub import repo_exists, try_to_load_from_cache

    if paths.PAGE not in os.environ:
        with suppress(Exception):  # No network, or a name that is too long.
            return bool(try_to_load_from_cache(name, "config.json")) or repo_exists(name)
    return True
