"""Devices of a model: where its layers compute, free memory, and errors if memory runs out."""

from __future__ import annotations

from typing import Any, Final

import psutil
import torch

# Parts of PyTorch's messages; not all of its errors have the type of the first.
_OUT_OF_MEMORY: Final = ("out of memory", "can't allocate memory", "STATUS_ALLOC_FAILED")
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


def input_device(lm: Any) -> torch.device:
    """Device of the token ids that a model takes: that on which its embeddings are looked up."""
    device: torch.device = lm.get_input_embeddings().weight.device
    if device.type != "meta":
        return device
    # Embeddings that are offloaded are looked up on the first device that computes.
    computing = [place for place in lm.hf_device_map.values() if place not in _OFFLOADED]
    return torch.device(computing[0] if computing else "cpu")
