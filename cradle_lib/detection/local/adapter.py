"""Adapters: their tokenizer and chat template, and merging them into the base.

Training saves a tokenizer and chat template with the adapter, as TRL does. The adapter was trained
on their tokens, so they are used instead of the base's.

After merging, the model must compute what PEFT computes with the adapter beside the base. It can
differ: a merged output layer also changes the input embeddings that share its weights, for
instance.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.detection.local.revision import WEIGHTS, find_adapter
from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError
from cradle_lib.labels import LABELS

# A folder with one of these has a whole tokenizer.
_VOCABULARIES: Final = ("tokenizer.json", "tokenizer.model", "vocab.json")
# The prompt of the comparison: ordinary words, and the labels that answers consist of.
_PROBE: Final = f"User: I sleep badly, and 3 of 7 nights not at all.\nListener: {'; '.join(LABELS)}"
_TOKENS: Final = 128
# Largest difference of the logits, as a share of their spread: root mean squares over the prompt.
# Merging rounds each weight once to the number format, and every layer adds to it. The tuned
# SmolLM2 (30 layers) differs by 3e-6 in float32, 0.006 in float16 and 0.05 in bfloat16; several
# times that is allowed. An adapter that is merged wrongly differs by about 1.
_TOLERANCE: Final = {"float64": 1e-4, "float32": 1e-4, "float16": 0.03, "bfloat16": 0.2}


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
    parts += ["chat template"] * (_read_template(model, folder) is not None)
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
    own, template = base, base.chat_template
    if _has_vocabulary(folder):
        own = _read_tokenizer(model, folder, base)
    own.chat_template = _read_template(model, folder) or template
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


def _read_tokenizer(model: Model, folder: Path, base: Any) -> Any:
    from transformers import AutoTokenizer

    # Older folders do not name the tokenizer's class, which is then the base's.
    kind = AutoTokenizer if _settings(model, folder).get("tokenizer_class") else type(base)
    try:
        return kind.from_pretrained(str(folder), trust_remote_code=False)
    except Exception as error:
        raise _unreadable(model, folder, error) from error


def _read_template(model: Model, folder: Path) -> Any:
    """Reads the chat template of a folder; ``None`` if it has none."""
    file = folder / "chat_template.jinja"
    if file.is_file():
        return file.read_text(encoding="utf-8")
    found = _settings(model, folder).get("chat_template")
    # Older versions list several, by name.
    return {t["name"]: t["template"] for t in found} if isinstance(found, list) else found


def _settings(model: Model, folder: Path) -> dict[str, Any]:
    file = folder / "tokenizer_config.json"
    try:
        found: dict[str, Any] = json.loads(file.read_bytes()) if file.is_file() else {}
    except ValueError as error:
        raise _unreadable(model, folder, error) from error
    return found


def _unreadable(model: Model, folder: Path, error: Exception) -> EngineError:
    reason = " ".join(str(error).split())[:200]
    return EngineError(
        f"{model.name}: the tokenizer of the adapter {paths.shown(folder)} can't be read "
        f"({reason}). Save it again, or remove its files to use the base's."
    )


def merged(lm: Any, model: Model, folder: Path, tokenizer: Any, base_tokenizer: Any) -> Any:
    """Merges the adapter in a folder into the base that Transformers loaded.

    Args:
        lm: The base.
        model: The model, for messages.
        folder: The adapter.
        tokenizer: The tokenizer that the adapter was trained with.
        base_tokenizer: That of the base.

    Raises:
        EngineError: If the adapter is of another base, can't be read or can't be merged.
    """
    import torch

    rows = len(lm.get_input_embeddings().weight)
    beyond = {token for token, place in tokenizer.get_vocab().items() if place >= rows}
    try:
        if added := beyond - base_tokenizer.get_vocab().keys():
            raise ValueError(f"training added {len(added):,} tokens, such as {min(added)!r}")
        wrapped = _load_adapter(lm, model, folder)
        return _merge(wrapped, tokenizer(_PROBE, add_special_tokens=False)["input_ids"])
    except torch.OutOfMemoryError:
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:300].rstrip(".")
        raise EngineError(
            f"{model.name}: the adapter {paths.shown(folder)} can't be merged into {model.base}: "
            f"{reason}. Use it with the base that it was trained on, or merge it where it was "
            "trained and use the folder of the whole model."
        ) from error


def _load_adapter(lm: Any, model: Model, folder: Path) -> Any:
    """Puts an adapter beside its base, as PEFT computes it.

    Raises:
        ValueError: If it is of another base or kind, or tensors are missing or have no place.
    """
    import torch
    from peft import (
        PeftConfig,
        get_peft_model,
        get_peft_model_state_dict,
        set_peft_model_state_dict,
    )
    from safetensors.torch import load_file

    config = PeftConfig.from_pretrained(str(folder))
    trained_on = config.base_model_name_or_path or model.base
    # Only the last part of a folder's path is compared.
    if Path(trained_on).name != Path(model.base).name:
        raise ValueError(f"it was trained on {trained_on}")
    if config.is_prompt_learning:
        raise ValueError(f"its kind, {config.peft_type.value}, learns a prompt and not weights")
    tensors = load_file(folder / WEIGHTS)
    config.inference_mode = True
    # PEFT warns of shared weights, which are untied and compared below. Some kinds of adapter
    # change the base by a decomposition with random numbers: a fixed seed makes it repeatable.
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        wrapped: Any = get_peft_model(lm, config)
        needed = get_peft_model_state_dict(wrapped, save_embedding_layers=False)
        if missing := sorted(needed.keys() - tensors.keys()):
            raise ValueError(f"it lacks {missing[0]}")
        result: Any = set_peft_model_state_dict(wrapped, tensors)
    # PEFT saves second copies of trained embeddings, and does not read them.
    strange = [name for name in result.unexpected_keys if ".modules_to_save." not in name]
    if strange:
        raise ValueError(f"the base has no place for {strange[0]}")
    return wrapped.eval()


def _merge(wrapped: Any, ids: list[int]) -> Any:
    """Merges, and compares the logits of a prompt before and after.

    Raises:
        ValueError: If the logits differ beyond rounding, or are not numbers.
    """
    import torch

    device = wrapped.get_input_embeddings().weight.device
    prompt = torch.tensor([ids[:_TOKENS]], device=device)
    with torch.inference_mode():
        before = wrapped(input_ids=prompt).logits[0].float()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        _untie(wrapped)
        lm = wrapped.merge_and_unload()
    with torch.inference_mode():
        after = lm(input_ids=prompt).logits[0].float()
    outputs = lm.get_output_embeddings()
    if outputs is not None and outputs.weight is not lm.get_input_embeddings().weight:
        lm.config.tie_word_embeddings = False
    dtype = str(lm.dtype).removeprefix("torch.")
    allowed = _TOLERANCE.get(dtype, _TOLERANCE["bfloat16"])
    spread = float((before - before.mean(-1, keepdim=True)).square().mean().sqrt())
    difference = float((after - before).square().mean().sqrt()) / max(spread, 1e-12)
    # Also false for NaN.
    if not difference <= allowed:
        raise ValueError(
            f"merged, it computes other values than unmerged: logits differ by "
            f"{difference:.1%} of their spread (in {dtype} rounding is {allowed:.2%} at most, and "
            "nan means damaged weights)"
        )
    return lm


def _untie(wrapped: Any) -> None:
    """Gives each module its own copy of a weight that an adapter changes and others share."""
    import torch
    from peft.tuners.tuners_utils import BaseTunerLayer
    from peft.utils.other import AuxiliaryTrainingWrapper

    owners: dict[int, list[tuple[Any, str]]] = {}
    changed: set[int] = set()
    adapted: Any = (BaseTunerLayer, AuxiliaryTrainingWrapper)
    for module in wrapped.modules():
        if isinstance(module, adapted):
            changed.update(id(parameter) for parameter in module.parameters())
        for name, parameter in module.named_parameters(recurse=False, remove_duplicate=False):
            owners.setdefault(id(parameter), []).append((module, name))
    for number in changed & owners.keys():
        for module, name in owners[number][1:]:
            copy = getattr(module, name).detach().clone()
            setattr(module, name, torch.nn.Parameter(copy, requires_grad=False))
