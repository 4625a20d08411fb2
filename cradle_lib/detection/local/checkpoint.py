"""Checks that a checkpoint holds exactly the tensors that its model needs.

Transformers fills tensors that are missing with random numbers and passes over tensors that fit
nothing. Both are errors here, except for tensors that the architecture itself declares: tied
weights, and the names that its class lists to be ignored. The report of Transformers is the first
check. The second reads the names in the safetensors files, without Transformers' renaming.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final

WEIGHTS: Final = "model.safetensors"
INDEX: Final = "model.safetensors.index.json"
# Number formats of weights that are not quantized, as safetensors names them.
_PLAIN: Final = frozenset({"F64", "F32", "F16", "BF16"})
_SHOWN: Final = 3
# Buffers that older versions of Transformers saved and that are computed today: positions, and
# causal masks (four dimensions) with the number that they put in (none).
_POSITIONS: Final = re.compile(r"rotary_emb\.inv_freq$|(^|\.)position_ids$")
_MASK: Final = re.compile(r"\.(attn|attention)\.(masked_)?bias$")
_EXPERT: Final = re.compile(r"(.*experts)\.(\d+)\.(.*)")
_LAYER: Final = re.compile(r"\.(?:layers|h|blocks)\.(\d+)\.")

# Parts of tensor names, and what to do about a checkpoint that has them.
_REMEDIES: Final = (
    (r"_orig_mod\.", "It was saved from a compiled model: save `model._orig_mod` instead."),
    (
        r"_fsdp_wrapped_module\.|(^|\.)module\.|_checkpoint_wrapped_module\.",
        "It was saved from a wrapped model: save the unwrapped model, such as `model.module`.",
    ),
    (
        r"\.lora_|\.base_layer\.|^base_model\.",
        "It was saved with an adapter inside: save `model.merge_and_unload()`, or name the base "
        "and the adapter's folder, `weights: BASE + FOLDER`.",
    ),
    (
        r"(weight_scale|scale_inv|qweight|qzeros|scales|g_idx|absmax|quant_map|quant_state|SCB"
        r"|weight_packed|weight_shape|_blocks|_scales)(\.|_|$)",
        "It is quantized, and its config.json has no fitting quantization_config: use the "
        "config.json that it was saved with, or the unquantized weights.",
    ),
    (
        r"^(score|classifier|v_head|value_head|reward_head)\.",
        "It is a classifier or a reward model, not a language model.",
    ),
)
_GENERIC: Final = (
    "Save the whole model again with save_pretrained, and use the config.json that belongs to it."
)


class IncompleteError(ValueError):
    """A checkpoint and its model do not fit each other; the message says what to do."""


def require_whole(lm: Any, info: Mapping[str, Any], folder: Path | None = None) -> None:
    """Checks the report of Transformers, and the names in the files.

    Args:
        lm: The model as it was loaded.
        info: What ``from_pretrained`` gave for ``output_loading_info=True``.
        folder: Where the safetensors files are; ``None`` for weights in another format.

    Raises:
        IncompleteError: If tensors are missing, superfluous, of other shapes or no numbers, or if
            they are not tied although the configuration says so.
    """
    written = {}
    if folder is not None:
        written = read_names(folder, getattr(lm.config, "transformers_weights", None))
    _require_no_report(lm, info, written)
    _require_tied(lm)
    _require_each_once(lm, written)
    _require_numbers(lm)


def _require_no_report(
    lm: Any, info: Mapping[str, Any], written: Mapping[str, tuple[str, list[int]]]
) -> None:
    """Checks that Transformers reports no missing, superfluous or misshapen tensors."""
    computed = {
        way
        for name, (_, shape) in written.items()
        if _POSITIONS.search(name) or (_MASK.search(name) and len(shape) in (0, 4))
        for way in _ways(lm, name)
    }
    missing, unexpected = sorted(info["missing_keys"]), sorted(info["unexpected_keys"] - computed)
    wrong = [
        f"{name} is {list(there)} in the file and {list(needed)} by the configuration"
        for name, there, needed in sorted(info["mismatched_keys"])
    ]
    wrong += [" ".join(str(message).split())[:200] for message in info.get("error_msgs", ())]
    parts = []
    if missing:
        parts.append(f"the file lacks {_count(missing)} that the model needs ({_some(missing)})")
    if unexpected:
        named = _some(unexpected)
        parts.append(f"the file has {_count(unexpected)} that the model has no place for ({named})")
    if wrong:
        parts.append(_some(wrong))
    if parts:
        raise IncompleteError(f"{'; '.join(parts)}. {_remedy(lm, missing, unexpected)}")


def _ways(lm: Any, name: str) -> tuple[str, str, str]:
    """Names of one tensor: as it is, and with and without the name of the decoder before it."""
    prefix = f"{lm.base_model_prefix}."
    return name, prefix + name, name.removeprefix(prefix)


def _count(names: Collection[str]) -> str:
    return f"{len(names):,} tensor{'s' if len(names) != 1 else ''}"


def _some(names: Collection[str]) -> str:
    """Lists the first names."""
    shown = ", ".join(list(names)[:_SHOWN])
    return f"{shown}, ..." if len(names) > _SHOWN else shown


def _remedy(lm: Any, missing: Collection[str], unexpected: Collection[str]) -> str:
    for pattern, remedy in _REMEDIES:
        if any(re.search(pattern, name) for name in unexpected):
            return remedy
    tied_by_class = getattr(lm, "_tied_weights_keys", None) or {}
    if missing and not unexpected and set(missing) <= set(tied_by_class):
        return (
            "If the model shares these with its input embeddings, set `tie_word_embeddings: true` "
            "in config.json; if not, save it again with them."
        )
    layers = {int(found[1]) for name in unexpected if (found := _LAYER.search(name))}
    count = getattr(lm.config.get_text_config(), "num_hidden_layers", None)
    if count is not None and layers and min(layers) >= count:
        return (
            f"config.json says num_hidden_layers: {count}, the file has {max(layers) + 1} layers: "
            "use the config.json that belongs to it."
        )
    return _GENERIC


def _require_tied(lm: Any) -> None:
    """Checks that weights which the configuration ties are the same weights."""
    for target, source in lm.get_expanded_tied_weights_keys(all_submodels=True).items():
        one, other = lm.get_parameter_or_buffer(target), lm.get_parameter_or_buffer(source)
        if one is not other and "meta" not in (one.device.type, other.device.type):
            raise IncompleteError(
                f"config.json ties {target} to {source} (`tie_word_embeddings: true`), and the "
                "file has different values for both. Set it to false if both were trained, or "
                f"remove {target} from the file."
            )


def _require_each_once(lm: Any, written: Mapping[str, tuple[str, list[int]]]) -> None:
    """Compares the names in the files with the model: Transformers takes one of two without a word.

    Left out where Transformers converts tensors (experts that it joins, say), or where they are
    quantized: names in the file are others then.
    """
    numbers: dict[tuple[str, str], set[int]] = {}
    for name in written:
        if found := _EXPERT.fullmatch(name):
            numbers.setdefault((found[1], found[3]), set()).add(int(found[2]))
    for (before, after), there in numbers.items():
        # Transformers only counts experts.
        if missing := set(range(max(there))) - there:
            raise IncompleteError(f"the file lacks {before}.{min(missing)}.{after}. {_GENERIC}")
    if getattr(lm, "_weight_conversions", None) or getattr(lm, "hf_quantizer", None) is not None:
        return
    expected = lm.state_dict()
    taken: dict[str, str] = {}
    for name, (kind, _) in written.items():
        target = next((way for way in _ways(lm, name) if way in expected), None)
        if target is None:
            continue
        if target in taken:
            raise IncompleteError(
                f"{taken[target]} and {name} in the file both are the model's {target}. {_GENERIC}"
            )
        taken[target] = name
        if kind not in _PLAIN and expected[target].is_floating_point():
            raise IncompleteError(f"{name} holds {kind} numbers. {_remedy(lm, (), ['.SCB'])}")


def read_names(folder: Path, file: str | None = None) -> dict[str, tuple[str, list[int]]]:
    """Reads the names of a checkpoint's tensors, each with its number format and shape.

    Args:
        folder: Where the weights are.
        file: Name of the weights or of their index, if the configuration gives another.

    Raises:
        IncompleteError: If the index and the files do not fit each other, or if two files have
            a tensor of the same name.
    """
    from safetensors import safe_open

    name = file or (WEIGHTS if (folder / WEIGHTS).is_file() else INDEX)
    places: dict[str, str] = {}
    files = [name]
    if name.endswith(".json"):
        places = json.loads((folder / name).read_text(encoding="utf-8"))["weight_map"]
        files = sorted(set(places.values()))
    for part in (name, *files):
        # No pin covers weights in another folder.
        if Path(part).name != part:
            raise IncompleteError(f"{part} is not beside config.json. Move it there.")
    found: dict[str, tuple[str, list[int]]] = {}
    for part in files:
        with safe_open(folder / part, framework="pt") as tensors:
            for key in tensors.keys():  # noqa: SIM118 - no mapping.
                if key in found:
                    raise IncompleteError(
                        f"{key} is in {part} and in another file. Remove files of an older save."
                    )
                piece = tensors.get_slice(key)
                found[key] = piece.get_dtype(), list(piece.get_shape())
                if places.get(key, part) != part:
                    raise IncompleteError(
                        f"{key} is in {part}, and {name} says {places[key]}. Download all files "
                        "again."
                    )
    if lost := sorted(places.keys() - found.keys()):
        raise IncompleteError(
            f"{name} names {_count(lost)} that no file has ({_some(lost)}). Download all files "
            "again."
        )
    return found


def _require_numbers(lm: Any) -> None:
    """Checks that weights are numbers: neither NaN nor infinite."""
    import torch

    plain = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    for name, tensor in lm.named_parameters():
        if tensor.dtype not in plain or tensor.device.type == "meta":
            continue
        if broken := int((~torch.isfinite(tensor)).sum()):
            raise IncompleteError(
                f"{name} has {broken:,} values that are NaN or infinite as {tensor.dtype}. "
                "Download the weights again, or set another `dtype`."
            )
