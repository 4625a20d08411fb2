"""Loads PEFT adapters into their base, with the tokenizer and chat template saved with them.

An adapter is not merged, because merging can also change other weights, such as input embeddings
that are tied to the output layer.

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

# A folder with one of these has a complete tokenizer.
_VOCABULARIES: Final = ("tokenizer.json", "tokenizer.model", "vocab.json")
_TEMPLATE: Final = "chat_template.jinja"


def tokenizer_in_use(model: Model) -> str | None:
    """Names the parts that a model takes from its adapter's folder: tokenizer, chat template.

    ``None`` if it takes neither.

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
    """Gives the tokenizer of a model with an adapter: the adapter's, or else the base's.

    Args:
        model: The model.
        folder: The folder of its adapter.
        base: The tokenizer of its base; its chat template is replaced if the folder has one.
        notice: Called with a sentence if the two differ.

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


def apply_adapter(lm: Any, model: Model, folder: Path, tokenizer: Any, base_tokenizer: Any) -> Any:
    """Adds an adapter to the layers of a loaded base.

    Args:
        lm: The base, which is changed.
        model: The model, for messages.
        folder: The adapter.
        tokenizer: The tokenizer that the adapter was trained with.
        base_tokenizer: The base's tokenizer.

    Raises:
        EngineError: If the adapter belongs to another base, can't be read, or changes more than
            layers.
    """
    import torch

    rows = len(lm.get_input_embeddings().weight)
    # The base's tokenizer may itself have tokens without an embedding.
    without_embedding = {token for token, id in tokenizer.get_vocab().items() if id >= rows}
    try:
        if added := without_embedding - base_tokenizer.get_vocab().keys():
            raise ValueError(f"training added {len(added):,} tokens, such as {min(added)!r}")
        return _load_adapter(lm, model, folder)
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise EngineError(
            f"{model.name}: the adapter {paths.shown(folder)} can't be used with {model.base}: "
            f"{reason}. Use it with the base that it was trained on, or merge it where it was "
            "trained and use the folder of the merged model."
        ) from error


def _load_adapter(lm: Any, model: Model, folder: Path) -> Any:
    """Adds an adapter to its base.

    Raises:
        ValueError: If the adapter belongs to another base, is of an unsupported kind, or has
            missing, unexpected or non-finite tensors.
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
    # PEFT warns about tied weights, which matter only for merging. Some kinds of adapter change the
    # base by a randomized decomposition, which the fixed seed makes reproducible.
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        wrapped = peft.get_peft_model(lm, config)
        needed = peft.get_peft_model_state_dict(wrapped, save_embedding_layers=False)
        if missing := sorted(needed.keys() - tensors.keys()):
            raise ValueError(f"it lacks {missing[0]}")
        result = peft.set_peft_model_state_dict(wrapped, tensors)
    # PEFT saves second copies of trained embeddings, and does not read them.
    unexpected = [name for name in result.unexpected_keys if ".modules_to_save." not in name]
    if unexpected:
        raise ValueError(f"the base has no layer for {unexpected[0]}")
    wrapped.eval()
    ids = torch.arange(16, device=lm.device)[None]
    with torch.inference_mode():
        expected, found = (each(input_ids=ids).logits.float() for each in (wrapped, lm))
    # Adapters that add prompt tokens or depend on certain tokens act outside the layers. The
    # tolerance allows for rounding on a GPU.
    if not torch.allclose(expected, found, rtol=0, atol=0.1 * float(expected.std())):
        raise ValueError("its layers alone do not compute what PEFT computes")
    return lm
