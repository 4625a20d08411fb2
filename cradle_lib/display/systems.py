"""The paper's systems by name, and which of them each model of the registry is."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from cradle_lib import paths, strict_yaml
from cradle_lib.errors import BookError

#: Names of the paper's systems, by the last part of their keys.
PAPER_SYSTEMS: Final[Mapping[str, str]] = MappingProxyType(
    {
        "claude": "Claude",
        "gpt": "GPT",
        "gemini": "Gemini",
        "gpt-oss-120b": "gpt-oss-120b",
        "gpt-oss-20b": "gpt-oss-20b",
        "qwen3-32b": "Qwen3-32B",
        "qwen3-14b": "Qwen3-14B",
        "qwen2.5-72b": "Qwen2.5-72B",
        "llama-4-scout-17b": "Llama-4-Scout-17B",
        "cradle-qwen3-32b": "Qwen3-32B, fine-tuned",
    }
)


def published_systems() -> dict[str, str]:
    """Reads the registry as plain data.

    Returns:
        For each model's name the last part of the keys of its published numbers: its entry's
        ``published``, or else its id.

    Raises:
        BookError: If the file can't be read, or is not YAML.
    """
    try:
        entries = strict_yaml.read(paths.REGISTRY)
    except (OSError, ValueError) as error:
        place = paths.shown(paths.REGISTRY)
        raise BookError(f"{place}: expected a mapping of ids to models ({error})") from None
    models = entries.items() if isinstance(entries, dict) else ()
    return {
        str(model["name"]): str(model.get("published") or key)
        for key, model in models
        if isinstance(model, dict) and "name" in model
    }
