"""Checks that a checkpoint holds exactly the tensors that its model needs.

Transformers fills tensors that are missing with random numbers and passes over tensors that fit
nothing. Both are errors here, except what the architecture itself declares: tied weights, and the
names that its class lists to be ignored. The report of Transformers is the first check. The second
compares the names in the safetensors files with the model, without Transformers' renaming.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
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
    """Checks what Transformers reported on loading, and the names in the files.

    Args:
        lm: The model as it was loaded.
        info: What ``from_pretrained`` gave for ``output_loading_info=True``.
        folder: Where the safetensors files are; ``None`` for weights in another format.

    Raises:
        IncompleteError: If tensors are missing, superfluous, of other shapes, or not tied although
            the configuration says so.
    """
    written = {}
    if folder is not None:
        written = read_names(folder, getattr(lm.config, "transformers_weights", None))
    computed = {name for name, (_, shape) in written.items() if _is_computed(name, shape)}
    _require_no_report(lm, info, computed)
    _require_tied(lm)
    if folder is not None:
        _require_same_names(lm, written, computed)
    require_numbers(lm)


def _is_computed(name: str, shape: Sequence[int]) -> bool:
    return bool(_POSITIONS.search(name) or (_MASK.search(name) and len(shape) in (0, 4)))


def _require_no_report(lm: Any, info: Mapping[str, Any], computed: Collection[str]) -> None:
    prefix = f"{lm.base_model_prefix}."
    known = {way for name in computed for way in _ways(name, prefix)}
    missing, unexpected = sorted(info["missing_keys"]), sorted(info["unexpected_keys"] - known)
    wrong = [
        f"{name} is {list(there)} in the file and {list(needed)} by the configuration"
        for name, there, needed in sorted(info["mismatched_keys"])
    ]
    errors = [" ".join(str(message).split())[:200] for message in info.get("error_msgs", ())]
    if not (missing or unexpected or wrong or errors):
        return
    parts = []
    if missing:
        parts.append(f"the file lacks {_count(missing)} that the model needs ({_some(missing)})")
    if unexpected:
        named = _some(unexpected)
        parts.append(f"the file has {_count(unexpected)} that the model has no place for ({named})")
    if wrong or errors:
        parts.append(_some([*wrong, *errors]))
    raise IncompleteError(f"{'; '.join(parts)}. {_remedy(lm, missing, unexpected)}")


def _ways(name: str, prefix: str) -> tuple[str, str, str]:
    """Names of one tensor: as it is, and with and without the name of the decoder before it."""
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
    if missing and not unexpected and set(missing) <= _tied_by_class(lm):
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


def _tied_by_class(lm: Any) -> set[str]:
    """Names of tensors that this architecture can share with others."""
    tied = getattr(lm, "_tied_weights_keys", None) or {}
    return set(tied)


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


def _require_same_names(
    lm: Any, written: Mapping[str, tuple[str, list[int]]], computed: Collection[str]
) -> None:
    """Compares the tensors in the files with those of the model.

    Left out where Transformers converts tensors (experts that it joins, say), or where they are
    quantized: names and shapes in the file are others then.
    """
    _require_all_experts(written)
    if getattr(lm, "_weight_conversions", None) or getattr(lm, "hf_quantizer", None) is not None:
        return
    expected = lm.state_dict()
    prefix = f"{lm.base_model_prefix}."
    taken: dict[str, str] = {}
    unexpected = []
    for name, (kind, shape) in written.items():
        target = next((way for way in _ways(name, prefix) if way in expected), None)
        if target is None:
            unexpected.append(name)
            continue
        if target in taken:
            raise IncompleteError(
                f"{taken[target]} and {name} in the file both are the model's {target}. {_GENERIC}"
            )
        taken[target] = name
        if kind not in _PLAIN and expected[target].is_floating_point():
            raise IncompleteError(f"{name} holds {kind} numbers. {_remedy(lm, (), ['.SCB'])}")
        if tuple(shape) != tuple(expected[target].shape):
            size = list(expected[target].shape)
            raise IncompleteError(
                f"{name} is {shape} in the file and {size} in the model. {_GENERIC}"
            )
    tied = lm.get_expanded_tied_weights_keys(all_submodels=True)
    shared = {*tied, *tied.values()}
    missing = [name for name in expected if name not in taken and name not in shared]
    missing += [
        target for target, source in tied.items() if target not in taken and source not in taken
    ]
    report = {
        "missing_keys": _not_declared(missing, lm._keys_to_ignore_on_load_missing),
        "unexpected_keys": _not_declared(unexpected, lm._keys_to_ignore_on_load_unexpected),
        "mismatched_keys": (),
    }
    _require_no_report(lm, report, computed)


def _require_all_experts(written: Collection[str]) -> None:
    """Checks that experts are numbered without gaps: Transformers only counts them."""
    numbers: dict[tuple[str, str], set[int]] = {}
    for name in written:
        if found := _EXPERT.fullmatch(name):
            numbers.setdefault((found[1], found[3]), set()).add(int(found[2]))
    for (before, after), there in numbers.items():
        if missing := set(range(max(there))) - there:
            name = f"{before}.{min(missing)}.{after}"
            raise IncompleteError(f"the file lacks {name}. {_GENERIC}")


def _not_declared(names: Iterable[str], patterns: Iterable[str] | None) -> set[str]:
    """Leaves out the names that an architecture declares to be ignored."""
    declared = list(patterns or ())
    return {name for name in names if not any(re.search(each, name) for each in declared)}


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
    _require_beside(name)
    places: dict[str, str] = {}
    files = [name]
    if name.endswith(".json"):
        places = json.loads((folder / name).read_text(encoding="utf-8"))["weight_map"]
        files = sorted(set(places.values()))
    found: dict[str, tuple[str, list[int]]] = {}
    for part in files:
        _require_beside(part)
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


def _require_beside(name: str) -> None:
    """Refuses weights in another folder, which no pin covers."""
    if Path(name).name != name:
        raise IncompleteError(f"{name} is not beside config.json. Move it there.")


def require_numbers(lm: Any) -> None:
    """Checks that weights are numbers: neither NaN nor infinite.

    Raises:
        IncompleteError: If one is not.
    """
    import torch

    plain = (torch.float64, torch.float32, torch.float16, torch.bfloat16)
    for name, tensor in lm.named_parameters():
        if tensor.dtype in plain and tensor.device.type != "meta":
            broken = int((~torch.isfinite(tensor)).sum())
            if broken:
                raise IncompleteError(
                    f"{name} has {broken:,} values that are NaN or infinite as {tensor.dtype}. "
                    "Download the weights again, or set another `dtype`."
                )
