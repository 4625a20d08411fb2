"""Checks that a checkpoint has exactly the tensors that its model needs.

Transformers fills missing tensors with random numbers and ignores superfluous ones. Both are errors
here, except for tensors that the architecture itself declares: tied weights, and the names that its
class lists to be ignored.
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
# The number that causal masks contained, which older versions saved and which is computed today.
_MASK: Final = re.compile(r"\.(attn|attention)\.masked_bias$")

_REMEDY: Final = (
    "Save the whole model again with save_pretrained (`model._orig_mod` if it is compiled, "
    "`model.module` if it is wrapped, `model.merge_and_unload()` if it has an adapter), and use "
    "the config.json that belongs to it, with its quantization_config and `tie_word_embeddings`."
)


class IncompleteError(ValueError):
    """A checkpoint and its model do not fit each other; the message says what to do."""


def require_all_tensors(lm: Any, info: Mapping[str, Any], folder: Path | None = None) -> None:
    """Checks the report of Transformers, the loaded model, and the number formats in the files.

    Args:
        lm: The model as it was loaded.
        info: What ``from_pretrained`` gave for ``output_loading_info=True``.
        folder: Where the safetensors files are; ``None`` for weights in another format.

    Raises:
        IncompleteError: If tensors are missing, superfluous, of other shapes or no numbers, or if
            they are not tied although the configuration says so.
    """
    _require_no_report(info)
    _require_tied(lm)
    _require_finite(lm)
    if folder is not None and getattr(lm, "hf_quantizer", None) is None:
        _require_plain(folder, getattr(lm.config, "transformers_weights", None))


def _require_no_report(info: Mapping[str, Any]) -> None:
    """Checks that Transformers reports no missing, superfluous or misshapen tensors."""
    missing = sorted(info["missing_keys"])
    unexpected = sorted(name for name in info["unexpected_keys"] if not _MASK.search(name))
    wrong = [
        f"{name} is {list(there)} in the file and {list(needed)} by the configuration"
        for name, there, needed in sorted(info["mismatched_keys"])
    ]
    wrong += [" ".join(str(message).split())[:200] for message in info.get("error_msgs", ())]
    parts = []
    if missing:
        parts.append(f"the file lacks {_named(missing)} that the model needs")
    if unexpected:
        parts.append(f"the file has {_named(unexpected)} that the model has no place for")
    parts += wrong[:3]
    if parts:
        raise IncompleteError(f"{'; '.join(parts)}. {_REMEDY}")


def _named(names: Collection[str]) -> str:
    """Counts tensors, and names the first ones."""
    shown = [*list(names)[:3], *["..."] * (len(names) > 3)]
    return f"{len(names):,} tensor{'s' if len(names) != 1 else ''} ({', '.join(shown)})"


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


def _require_finite(lm: Any) -> None:
    import torch

    for name, tensor in lm.named_parameters():
        if not tensor.is_floating_point() or tensor.element_size() < 2 or tensor.is_meta:
            continue
        if broken := int((~torch.isfinite(tensor)).sum()):
            raise IncompleteError(
                f"{name} has {broken:,} values that are NaN or infinite as {tensor.dtype}. "
                "Download the weights again, or set another `dtype`."
            )


def _require_plain(folder: Path, file: str | None) -> None:
    """Checks the number formats: Transformers takes whole numbers for weights, without a scale.

    Args:
        folder: Where the weights are.
        file: Name of the weights or of their index, if the configuration gives another.
    """
    from safetensors import safe_open

    files = [file or (WEIGHTS if (folder / WEIGHTS).is_file() else INDEX)]
    if files[0].endswith(".json"):
        index = json.loads((folder / files[0]).read_text(encoding="utf-8"))
        files = sorted(set(index["weight_map"].values()))
    for part in files:
        if Path(part).name != part:
            raise IncompleteError(
                f"{part} is not in the folder of config.json, which the pin covers. Move it there."
            )
        with safe_open(folder / part, framework="pt") as tensors:
            for name in tensors.keys():  # noqa: SIM118 - no mapping.
                kind = tensors.get_slice(name).get_dtype()
                if name.endswith(".weight") and kind not in _PLAIN:
                    raise IncompleteError(f"{name} has {kind} numbers. {_REMEDY}")
