"""Adapters: PEFT's layers in the base, and the tokenizer and chat template that go with them.

An adapter is not merged: merging can change more than the adapter, such as the input embeddings
that share their weights with the output layer.

Training saves a tokenizer and chat template with the adapter, as TRL does. The adapter was trained
on their tokens, so they are used instead of the base's.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.detection.local.revision import WEIGHTS, find_adapter
from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError

# A folder with one of these has a whole tokenizer.
_VOCABULARIES: Final = ("tokenizer.json", "tokenizer.model", "vocab.json")
_TEMPLATE: Final = "chat_template.jinja"


def tokenizer_in_use(model: Model) -> str | None:
    """Says which of tokenizer and chat template a model takes from its adapter's folder.

    ``None`` if neither.

    Raises:
        EngineError: If the adapter is missing or damaged.
    """
    folder = find_adapter(model)
    if folder is None:
        return None
    parts = ["tokenizer"] * _has_vocabulary(folder)
    parts += ["chat template"] * (folder / _TEMPLATE).is_file()
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
    from transformers import AutoTokenizer

    own, template = base, base.chat_template
    if _has_vocabulary(folder):
        try:
            own = AutoTokenizer.from_pretrained(str(folder), trust_remote_code=False)
        except Exception as error:
            reason = " ".join(str(error).split())[:200]
            raise EngineError(
                f"{model.name}: the tokenizer of the adapter {paths.shown(folder)} can't be read "
                f"({reason}). Save it again, or remove its files to use the base's."
            ) from error
    if (folder / _TEMPLATE).is_file():
        own.chat_template = (folder / _TEMPLATE).read_text(encoding="utf-8")
    own.chat_template = own.chat_template or template
    differences = [
        f"its {name} is {getattr(own, name)!r}, not {getattr(base, name)!r}"
        for name in ("bos_token", "eos_token", "pad_token", "unk_token")
        if getattr(own, name) != getattr(base, name)
    ]
    if own.get_vocab() != base.get_vocab():
        differences.append(f"it has other tokens ({len(own):,}, not {len(base):,})")
    if own.chat_template != template:
        differences.append("it has another chat template")
    if differences:
        notice(
            f"{model.name} uses the tokenizer and chat template saved with its adapter, which "
            f"differ from the base's: {'; '.join(differences)}."
        )
    return own


def _has_vocabulary(folder: Path) -> bool:
    return any((folder / name).is_file() for name in _VOCABULARIES)


def adapted(lm: Any, model: Model, folder: Path, tokenizer: Any, base_tokenizer: Any) -> Any:
    """Puts the adapter in a folder into the layers of the base that Transformers loaded.

    Args:
        lm: The base, which is changed.
        model: The model, for messages.
        folder: The adapter.
        tokenizer: The tokenizer that the adapter was trained with.
        base_tokenizer: That of the base.

    Raises:
        EngineError: If the adapter is of another base, can't be read, or is no change of layers.
    """
    import torch

    rows = len(lm.get_input_embeddings().weight)
    beyond = {token for token, place in tokenizer.get_vocab().items() if place >= rows}
    try:
        if added := beyond - base_tokenizer.get_vocab().keys():
            raise ValueError(f"training added {len(added):,} tokens, such as {min(added)!r}")
        return _load_adapter(lm, model, folder)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise EngineError(
            f"{model.name}: the adapter {paths.shown(folder)} can't be used with {model.base}: "
            f"{reason}. Use it with the base that it was trained on, or merge it where it was "
            "trained and use the folder of the whole model."
        ) from error


def _load_adapter(lm: Any, model: Model, folder: Path) -> Any:
    """Puts an adapter into its base.

    Raises:
        ValueError: If it is of another base or kind, or tensors are missing or have no place.
    """
    import peft
    import torch
    from safetensors.torch import load_file

    config = peft.PeftConfig.from_pretrained(str(folder))
    trained_on = config.base_model_name_or_path or model.base
    # Only the last part of a folder's path is compared.
    if Path(trained_on).name != Path(model.base).name:
        raise ValueError(f"it was trained on {trained_on}")
    tensors = load_file(folder / WEIGHTS)
    if any(not tensor.isfinite().all() for tensor in tensors.values()):
        raise ValueError("some of its weights are NaN or infinite")
    config.inference_mode = True
    # PEFT warns of shared weights, which matter for merging only. Some kinds of adapter change the
    # base by a decomposition with random numbers: a fixed seed makes it repeatable.
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        wrapped = peft.get_peft_model(lm, config)
        needed = peft.get_peft_model_state_dict(wrapped, save_embedding_layers=False)
        if missing := sorted(needed.keys() - tensors.keys()):
            raise ValueError(f"it lacks {missing[0]}")
        result = peft.set_peft_model_state_dict(wrapped, tensors)
    # PEFT saves second copies of trained embeddings, and does not read them.
    strange = [name for name in result.unexpected_keys if ".modules_to_save." not in name]
    if strange:
        raise ValueError(f"the base has no place for {strange[0]}")
    wrapped.eval()
    ids = torch.arange(16, device=lm.device)[None]
    with torch.inference_mode():
        whole, layers = (part(input_ids=ids).logits.float() for part in (wrapped, lm))
    # Prompt learning, and what depends on certain tokens, is not in the layers. Sums may differ by
    # rounding on a GPU.
    if not torch.allclose(whole, layers, rtol=0, atol=0.1 * float(whole.std())):
        raise ValueError("its layers alone do not compute what PEFT computes")
    return lm
