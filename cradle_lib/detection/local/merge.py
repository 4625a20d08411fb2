"""Merges an adapter into its base, and checks that the merged model computes the same.

The reference is PEFT's own computation with the adapter beside the base. Merging can differ from
it: a merged output layer also changes the input embeddings that share its weights, for instance.
"""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from cradle_lib import paths
from cradle_lib.detection.local.adapter import WEIGHTS, new_tokens
from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError
from cradle_lib.labels import LABELS

# The prompt of the comparison: ordinary words, and the labels that answers consist of.
_PROBE: Final = f"User: I sleep badly, and 3 of 7 nights not at all.\nListener: {'; '.join(LABELS)}"
_TOKENS: Final = 128
# Largest difference of the logits, as a share of their spread: root mean squares over the prompt.
# Merging rounds each weight once to the number format, and every layer adds to it. The tuned
# SmolLM2 (30 layers) differs by 3e-6 in float32, 0.006 in float16 and 0.05 in bfloat16; several
# times that is allowed. An adapter that is merged wrongly differs by about 1.
_TOLERANCE: Final = {"float64": 1e-4, "float32": 1e-4, "float16": 0.03, "bfloat16": 0.2}


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
    from peft import PeftConfig
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    added = new_tokens(tokenizer, base_tokenizer)
    try:
        config = PeftConfig.from_pretrained(str(folder))
        trained_on = config.base_model_name_or_path or model.base
        # Only the last part of a folder's path is compared.
        if Path(trained_on).name != Path(model.base).name:
            raise ValueError(f"it was trained on {trained_on}")
        if config.is_prompt_learning:
            raise EngineError(
                f"{model.name}: {paths.shown(folder)} is an adapter of the kind "
                f"{config.peft_type.value}, which learns a prompt and can't be merged into "
                "weights. Use one that can, such as LoRA."
            )
        tensors = load_file(folder / WEIGHTS)
        # PEFT saves second copies of trained embeddings, and does not read them.
        for name in [name for name in tensors if ".modules_to_save." in name]:
            first = tensors.get(name.replace(".modules_to_save.", "."))
            if first is not None and first.equal(tensors[name]):
                del tensors[name]
        _fit_embeddings(lm, model, tensors, added)
        config.inference_mode = True
        # Named as Transformers knows the base here, which may be a folder of the cache.
        config.base_model_name_or_path = lm.name_or_path
        wrapped = _wrapped(lm, config, tensors)
    except (EngineError, torch.OutOfMemoryError):
        raise
    except (SafetensorError, json.JSONDecodeError, OSError) as error:
        reason = " ".join(str(error).split())[:200]
        raise EngineError(f"{paths.shown(folder)}: the adapter can't be read ({reason})") from error
    except (RuntimeError, ValueError, TypeError, KeyError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200]
        if isinstance(error, KeyError):
            reason = f"it lacks {reason}"
        raise EngineError(
            f"{model.name}: the adapter {model.adapter} does not fit {model.base}: {reason}. Use "
            "it with the base that it was trained on."
        ) from error
    return _merge(wrapped, model, _probe_ids(lm, tokenizer, added.values()))


def _fit_embeddings(
    lm: Any, model: Model, tensors: Mapping[str, Any], added: Mapping[str, int]
) -> None:
    """Gives the embeddings the size that the adapter was trained with.

    New rows are NaN until the adapter's tensors replace them, so that missing ones are found later.

    Raises:
        EngineError: If there are tokens without a row.
    """
    import torch

    rows = have = int(lm.get_input_embeddings().weight.shape[0])
    ends = {id(lm.get_input_embeddings()), id(lm.get_output_embeddings())}
    names = [re.escape(name) for name, module in lm.named_modules() if id(module) in ends]
    whole = re.compile(
        rf"(^|\.)({'|'.join(names)})\.((base_layer|original_module|modules_to_save)\.)?weight$"
    )
    for name, tensor in tensors.items():
        if whole.search(name):
            rows = int(tensor.shape[0])
    beyond = sorted(token for token, place in added.items() if place >= rows)
    if beyond:
        raise EngineError(
            f"{model.name}: the adapter's tokenizer has {len(beyond):,} tokens, such as "
            f"{beyond[0]!r}, beyond the {rows:,} rows of the embeddings, and the adapter holds no "
            "embeddings for them. Save it with `save_embedding_layers=True`."
        )
    if rows == have:
        return
    with torch.no_grad():
        lm.resize_token_embeddings(rows, mean_resizing=False)
        for module in (lm.get_input_embeddings(), lm.get_output_embeddings()):
            if module is not None:
                module.weight[have:] = torch.nan


def _wrapped(lm: Any, config: Any, tensors: dict[str, Any]) -> Any:
    """Puts an adapter beside its base, as PEFT computes it.

    Raises:
        ValueError: If tensors are missing, or have no place.
    """
    import torch
    from peft import get_peft_model, set_peft_model_state_dict

    of_base = {id(tensor) for tensor in lm.state_dict(keep_vars=True).values()}
    # PEFT warns of shared weights, which are untied and compared below. Some kinds of adapter
    # change the base by a decomposition with random numbers: a fixed seed makes it repeatable.
    with warnings.catch_warnings(), torch.random.fork_rng(devices=[]):
        warnings.simplefilter("ignore")
        torch.manual_seed(0)
        wrapped: Any = get_peft_model(lm, config)
        result: Any = set_peft_model_state_dict(wrapped, tensors)
    state = wrapped.state_dict(keep_vars=True)
    # One tensor can have several names, of which a file has one.
    known = of_base | {id(state[name]) for name in state.keys() - set(result.missing_keys)}
    every_bias = getattr(config, "bias", "") == "all"
    missing = [
        name
        for name in result.missing_keys
        if id(state[name]) not in known or (every_bias and "bias" in name)
    ]
    if result.unexpected_keys:
        raise ValueError(f"no match for {result.unexpected_keys[0]}")
    if missing:
        raise ValueError(f"it lacks {missing[0]}")
    return wrapped.eval()


def _probe_ids(lm: Any, tokenizer: Any, added: Any) -> Any:
    """Makes the prompt of the comparison, with the tokens that training added."""
    import torch

    rows = int(lm.get_input_embeddings().weight.shape[0])
    ids = [*tokenizer(_PROBE, add_special_tokens=False)["input_ids"], *sorted(added)]
    longest = getattr(lm.config.get_text_config(), "max_position_embeddings", None) or _TOKENS
    ids = [place for place in ids if place < rows][-min(_TOKENS, longest) :]
    return torch.tensor([ids], device=lm.get_input_embeddings().weight.device)


def _merge(wrapped: Any, model: Model, ids: Any) -> Any:
    """Merges, and compares the logits before and after.

    Raises:
        EngineError: If this kind of adapter can't be merged, or the merged model differs.
    """
    import torch

    kind = wrapped.peft_config["default"].peft_type.value
    try:
        with torch.inference_mode():
            before = wrapped(input_ids=ids).logits[0].float()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _untie(wrapped)
            lm = wrapped.merge_and_unload()
        with torch.inference_mode():
            after = lm(input_ids=ids).logits[0].float()
    except (EngineError, torch.OutOfMemoryError):
        raise
    except (RuntimeError, ValueError, TypeError, AttributeError) as error:
        reason = " ".join(str(error).split())[:200].rstrip(".")
        raise EngineError(
            f"{model.name}: PEFT can't merge the adapter {model.adapter} ({kind}): {reason}. "
            "Merge it where it was trained, and use the folder of the whole model."
        ) from error
    embeddings, outputs = lm.get_input_embeddings(), lm.get_output_embeddings()
    if outputs is not None and outputs.weight is not embeddings.weight:
        lm.config.tie_word_embeddings = False
    if not bool(torch.isfinite(before).all()):
        raise EngineError(
            f"{model.name}: the adapter {model.adapter} gives answers that are no numbers (NaN): "
            "it lacks embeddings of tokens that it added, or is damaged. Save it with "
            "`save_embedding_layers=True`."
        )
    _require_equal(before, after, model, str(lm.dtype).removeprefix("torch."))
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


def _require_equal(before: Any, after: Any, model: Model, dtype: str) -> None:
    """Refuses a merged model whose logits or likeliest tokens differ beyond rounding."""
    allowed = _TOLERANCE.get(dtype, _TOLERANCE["bfloat16"])
    spread = float((before - before.mean(-1, keepdim=True)).square().mean().sqrt())
    difference = float((after - before).square().mean().sqrt()) / max(spread, 1e-12)
    # Another token may come first only where the two were nearly equal.
    chosen = before.gather(-1, after.argmax(-1, keepdim=True))[:, 0]
    behind = (before.max(-1).values - chosen) / max(spread, 1e-12)
    agree = float((behind <= 5 * allowed).float().mean())
    if difference <= allowed and agree == 1:
        return
    raise EngineError(
        f"{model.name}: the adapter {model.adapter}, merged, computes something else than beside "
        f"its base: logits differ by {difference:.1%} of their spread (in {dtype} rounding is "
        f"{allowed:.2%} at most), and {agree:.0%} of the likeliest tokens agree. Use the folder of "
        "the whole model, merged where it was trained."
    )
