"""Devices of a model: where its layers compute, free memory, and errors if memory runs out."""

from __future__ import annotations

import copy
from typing import Any, Final

import psutil
import torch

# Parts of PyTorch's messages; not all of its errors have the type of the first.
_OUT_OF_MEMORY: Final = ("out of memory", "can't allocate memory", "STATUS_ALLOC_FAILED")
# Part of a GPU's free memory that weights may take; the rest is for keys, values and activations.
_SHARE: Final = 0.9
# Places of weights that a device fetches when it needs them.
_OFFLOADED: Final = ("cpu", "disk")


def is_out_of_memory(error: Exception) -> bool:
    """Whether an exception means that the memory of a device ran out."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    message = str(error)
    return isinstance(error, RuntimeError) and any(part in message for part in _OUT_OF_MEMORY)


def free_memory(device: torch.device) -> int:
    """Free memory of a GPU, or of this machine, in bytes."""
    if device.type == "cuda":
        return int(torch.cuda.mem_get_info(device)[0])
    return int(psutil.virtual_memory().available)


def weights_size(kind: Any, config: Any, dtype: str) -> int:
    """Size of a model's weights in bytes, without loading them; tied weights count once.

    Args:
        kind: A class of Transformers with ``from_config``.
        config: The model's configuration. Its quantization is ignored, because packed weights may
            have to be expanded.
        dtype: Number format, such as ``bfloat16``; ``auto`` for that of the configuration.
    """
    number = config.dtype or torch.float32 if dtype == "auto" else getattr(torch, dtype)
    with torch.device("meta"):
        lm = kind.from_config(copy.deepcopy(config), dtype=number)
    return sum(each.numel() * each.element_size() for each in lm.parameters())


def fits_on_gpu(size: int) -> bool:
    """Whether weights of a size in bytes fit on the current GPU."""
    return size <= _SHARE * free_memory(torch.device("cuda"))


def input_device(lm: Any) -> torch.device:
    """Device of the token ids that a model takes: that on which its embeddings are looked up."""
    device: torch.device = lm.get_input_embeddings().weight.device
    if device.type != "meta":
        return device
    # Embeddings that are offloaded are looked up on the first device that computes.
    computing = [place for place in lm.hf_device_map.values() if place not in _OFFLOADED]
    return torch.device(computing[0] if computing else "cpu")
