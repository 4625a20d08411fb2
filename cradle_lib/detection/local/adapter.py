"""Adapters: their files, the digest that pins them, and their own tokenizer and chat template.

A folder holds ``adapter_config.json`` and ``adapter_model.safetensors``, as PEFT writes them, and
perhaps a tokenizer and chat template, as TRL writes them. The model was trained on the tokens of
these, so they are used instead of the base's. A model with an adapter has ``weights: BASE +
FOLDER``. Pickled weights are not read.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError
from cradle_lib.files import visible_files

CONFIG: Final = "adapter_config.json"
WEIGHTS: Final = "adapter_model.safetensors"
# A folder with one of these has a whole tokenizer.
_VOCABULARIES: Final = (
    "tokenizer.json",
    "tokenizer.model",
    "spiece.model",
    "sentencepiece.bpe.model",
    "vocab.json",
    "vocab.txt",
)
_TEMPLATE: Final = "chat_template.jinja"
_SETTINGS: Final = "tokenizer_config.json"
_BESIDE: Final = ("added_tokens.json", "merges.txt", "special_tokens_map.json")


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
    names = sorted({*_VOCABULARIES, _TEMPLATE, _SETTINGS, *_BESIDE})
    own = [folder / name for name in names if (folder / name).is_file()]
    return content_pin(folder, [folder / CONFIG, folder / WEIGHTS, *own, *more_templates(folder)])


def more_templates(folder: Path) -> list[Path]:
    """Lists the chat templates in the subfolder for them, each named after its purpose."""
    return visible_files(folder / "additional_chat_templates", "*.jinja")


def tokenizer_in_use(model: Model) -> str | None:
    """Says which of tokenizer and chat template a model takes from its adapter's folder.

    ``None`` if neither.

    Raises:
        EngineError: If the settings of the tokenizer can't be read.
    """
    folder = adapter_folder(model)
    if folder is None:
        return None
    parts = ["tokenizer"] * _has_vocabulary(folder)
    if _template(model, folder) is not None or more_templates(folder):
        parts.append("chat template")
    return f"the adapter's {' and '.join(parts)}" if parts else None


def adapter_tokenizer(model: Model, folder: Path, base: Any, notice: Callable[[str], None]) -> Any:
    """Gives the tokenizer of a model with an adapter: the base's, where the adapter has none.

    Args:
        model: The model.
        folder: The folder of its adapter.
        base: The tokenizer of its base; its chat template is replaced if the folder has one.
        notice: Takes a sentence on how the two differ.

    Raises:
        EngineError: If the adapter's tokenizer can't be read.
    """
    own = _read_tokenizer(model, folder, base) if _has_vocabulary(folder) else base
    differences = [] if own is base else _differences(own, base)
    before = base.chat_template
    template = _template(model, folder) if own is base else own.chat_template or before
    if template is not None:
        own.chat_template = template
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
    return any((folder / name).is_file() for name in _VOCABULARIES)


def _read_tokenizer(model: Model, folder: Path, base: Any) -> Any:
    from transformers import AutoTokenizer

    # Older folders do not name the tokenizer's class, which is then the base's.
    kind = AutoTokenizer if _settings(model, folder).get("tokenizer_class") else type(base)
    try:
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
    if not (folder / _SETTINGS).is_file():
        return {}
    try:
        found = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
    except ValueError as error:
        raise _unreadable(model, folder, error) from error
    return found if isinstance(found, dict) else {}


def _template(model: Model, folder: Path) -> Any:
    """Reads the chat template of a folder; ``None`` if it has none."""
    if (folder / _TEMPLATE).is_file():
        return (folder / _TEMPLATE).read_text(encoding="utf-8")
    found = _settings(model, folder).get("chat_template")
    if isinstance(found, list):
        return {entry["name"]: entry["template"] for entry in found}
    return found


def _differences(own: Any, base: Any) -> list[str]:
    """Lists how two tokenizers differ in special tokens and vocabulary."""
    found = []
    for name in ("bos_token", "eos_token", "pad_token", "unk_token"):
        here, there = getattr(own, name, None), getattr(base, name, None)
        if here != there:
            found.append(f"its {name} is {here!r}, not {there!r}")
    here, there = own.get_vocab(), base.get_vocab()
    counts = {
        "more": len(here.keys() - there.keys()),
        "fewer": len(there.keys() - here.keys()),
        "moved": sum(here[token] != there[token] for token in here.keys() & there.keys()),
    }
    for text, count in counts.items():
        if count:
            found.append(f"{count:,} token{'s' if count != 1 else ''} {text}")
    special = set(own.all_special_tokens) ^ set(base.all_special_tokens)
    if special and not found:
        found.append(f"other special tokens: {', '.join(sorted(map(repr, special))[:3])}")
    return found
