"""An adapter's own tokenizer and chat template, as TRL saves them beside it.

The model was trained on their tokens, so they are used instead of the base's.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.detection.local.adapter import (
    SETTINGS,
    TEMPLATE,
    VOCABULARIES,
    adapter_folder,
    more_templates,
)
from cradle_lib.detection.local.quiet import quiet
from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError

_SPECIAL: Final = ("bos_token", "eos_token", "pad_token", "unk_token")


def tokenizer_in_use(model: Model) -> str | None:
    """Names what a model uses of its adapter's folder: tokenizer, chat template, both or nothing.

    Raises:
        EngineError: If the settings of the tokenizer can't be read.
    """
    folder = adapter_folder(model)
    if folder is None:
        return None
    parts = []
    if _has_vocabulary(folder):
        parts.append("tokenizer")
    if _template(model, folder) is not None or more_templates(folder):
        parts.append("chat template")
    return f"the adapter's {' and '.join(parts)}" if parts else None


def adapter_tokenizer(model: Model, folder: Path, base: Any, notice: Callable[[str], None]) -> Any:
    """Gives the tokenizer of a model with an adapter: the base's, where the adapter has none.

    Args:
        model: The model.
        folder: The folder of its adapter.
        base: The tokenizer of its base.
        notice: Takes a sentence on how the two differ.

    Raises:
        EngineError: If the adapter's tokenizer can't be read.
    """
    own = _read(model, folder, base) if _has_vocabulary(folder) else base
    differences = [] if own is base else _differences(own, base)
    before = base.chat_template
    if own is not base and not own.chat_template:
        own.chat_template = before
    elif own is base and (template := _template(model, folder)) is not None:
        base.chat_template = template
    if own.chat_template != before:
        differences.append("it has another chat template")
    if differences:
        notice(
            f"{model.name} uses the tokenizer and chat template beside its adapter, which differ "
            f"from the base's: {'; '.join(differences)}."
        )
    return own


def new_tokens(own: Any, base: Any) -> dict[str, int]:
    """Gives the tokens that a tokenizer has and the base's has not, with their ids."""
    known = base.get_vocab()
    return {token: place for token, place in own.get_vocab().items() if token not in known}


def _has_vocabulary(folder: Path) -> bool:
    return any((folder / name).is_file() for name in VOCABULARIES)


def _read(model: Model, folder: Path, base: Any) -> Any:
    from transformers import AutoTokenizer

    try:
        with quiet():
            # Older folders do not name the tokenizer's class; the base's is as good as known.
            kind = AutoTokenizer if _settings(model, folder).get("tokenizer_class") else type(base)
            return kind.from_pretrained(str(folder), trust_remote_code=False)
    except (OSError, ValueError, KeyError, TypeError, RuntimeError, ImportError) as error:
        raise _unreadable(model, folder, error) from error


def _unreadable(model: Model, folder: Path, error: Exception) -> EngineError:
    reason = " ".join(str(error).split())[:200]
    return EngineError(
        f"{model.name}: the tokenizer beside the adapter {paths.shown(folder)} can't be read "
        f"({reason}). Save it again, or remove its files to use the base's."
    )


def _settings(model: Model, folder: Path) -> dict[str, Any]:
    if not (folder / SETTINGS).is_file():
        return {}
    try:
        found = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
    except ValueError as error:
        raise _unreadable(model, folder, error) from error
    return found if isinstance(found, dict) else {}


def _template(model: Model, folder: Path) -> Any:
    """Reads the chat template of a folder; ``None`` if it has none."""
    if (folder / TEMPLATE).is_file():
        return (folder / TEMPLATE).read_text(encoding="utf-8")
    found = _settings(model, folder).get("chat_template")
    if isinstance(found, list):
        return {entry["name"]: entry["template"] for entry in found}
    return found


def _differences(own: Any, base: Any) -> list[str]:
    """Says how two tokenizers differ in special tokens and vocabulary."""
    found = []
    for name in _SPECIAL:
        here, there = getattr(own, name, None), getattr(base, name, None)
        if here != there:
            found.append(f"its {name} is {here!r}, not {there!r}")
    here, there = own.get_vocab(), base.get_vocab()
    for text, count in (
        ("more", len(here.keys() - there.keys())),
        ("fewer", len(there.keys() - here.keys())),
        ("moved", sum(here[token] != there[token] for token in here.keys() & there.keys())),
    ):
        if count:
            found.append(f"{count:,} token{'s' if count != 1 else ''} {text}")
    special = set(own.all_special_tokens) ^ set(base.all_special_tokens)
    if special and not found:
        found.append(f"other special tokens: {', '.join(sorted(map(repr, special))[:3])}")
    return found
