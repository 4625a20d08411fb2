"""Checks that a checkpoint has exactly the tensors that its model needs.

Transformers fills missing tensors with random numbers and ignores unexpected ones. Both are errors
here, except for tensors that the architecture itself declares: tied weights, and the names that its
class lists to be ignored.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from typing import Any, Final

from cradle_lib.errors import EngineError

# The constant of causal masks, which older versions saved and newer versions compute.
_MASK: Final = re.compile(r"\.(attn|attention)\.masked_bias$")
_REMEDY: Final = (
    "Save the whole model again with save_pretrained (`model._orig_mod` if it is compiled, "
    "`model.module` if it is wrapped, `model.merge_and_unload()` if it has an adapter), and use "
    "the config.json that belongs to it, with its quantization_config and `tie_word_embeddings`."
)


class IncompleteError(EngineError):
    """The tensors of a checkpoint do not match its model; the message says what to do."""


def require_all_tensors(lm: Any, info: Mapping[str, Any]) -> None:
    """Checks a loaded model and the loading report of Transformers.

    Args:
        lm: The loaded model.
        info: The report of ``from_pretrained`` with ``output_loading_info=True``.

    Raises:
        IncompleteError: If tensors are missing, unexpected, of another shape or not finite, or if
            they are not tied although the configuration says so.
    """
    parts = []
    if missing := sorted(info["missing_keys"]):
        parts.append(f"the file lacks {_named(missing)} that the model needs")
    if unexpected := sorted(name for name in info["unexpected_keys"] if not _MASK.search(name)):
        parts.append(f"the file has {_named(unexpected)} that the model does not have")
    wrong = [
        f"{name} is {list(there)} in the file and {list(needed)} by the configuration"
        for name, there, needed in sorted(info["mismatched_keys"])
    ]
    wrong += [" ".join(str(message).split())[:200] for message in info.get("error_msgs", ())]
    parts += wrong[:3]
    if parts:
        raise IncompleteError(f"{'; '.join(parts)}. {_REMEDY}")
    _require_tied(lm)
    _require_finite(lm)


def _named(names: Collection[str]) -> str:
    """Counts tensors, and names the first ones."""
    shown = [*list(names)[:3], *["..."] * (len(names) > 3)]
    return f"{len(names):,} tensor{'s' if len(names) != 1 else ''} ({', '.join(shown)})"


def _require_tied(lm: Any) -> None:
    """Checks that the weights that the configuration ties are shared."""
    for target, source in lm.get_expanded_tied_weights_keys(all_submodels=True).items():
        one, other = lm.get_parameter_or_buffer(target), lm.get_parameter_or_buffer(source)
        if one is not other and "meta" not in (one.device.type, other.device.type):
            raise IncompleteError(
                f"config.json ties {target} to {source} (`tie_word_embeddings: true`), but the "
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
