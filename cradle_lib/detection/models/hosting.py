"""How a model of the registry is served on GPUs of one's own: whether it fits, and the command."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args
from urllib.parse import urlsplit

from cradle_lib.detection.models.model import Model
from cradle_lib.detection.models.shape import CONTEXT, USABLE, Shape
from cradle_lib.errors import RegistryError
from cradle_lib.labels import LABELS, NONE

Server = Literal["vllm", "sglang"]
#: Bytes of a gigabyte, as makers of GPUs count.
GIGABYTE: Final = 10**9
_ABOUT: Final = 80 * GIGABYTE


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of this machine: its bytes of memory, and those of them that nobody uses."""

    name: str
    memory: int
    free: int


def seen_gpus() -> list[Gpu]:
    """Lists the GPUs that PyTorch sees here; none without PyTorch."""
    try:
        import torch
    except ImportError:
        return []
    found = []
    for number in range(torch.cuda.device_count()):
        free, memory = torch.cuda.mem_get_info(number)
        found.append(Gpu(torch.cuda.get_device_name(number), memory, free))
    return found


def fit(shape: Shape, gpus: Sequence[Gpu]) -> tuple[bool, str]:
    """Says whether a model fits on GPUs, and a sentence about it.

    The smallest GPU counts for all, because a model is divided evenly.
    """
    needs = shape.weight_bytes + shape.cache_bytes(CONTEXT)
    told = (
        f"{shape.weight_bytes / GIGABYTE:,.0f} GB of weights and "
        f"{shape.cache_bytes(CONTEXT) / GIGABYTE:.1f} GB for a prompt of {CONTEXT:,} tokens"
    )
    if not gpus:
        return False, f"needs {told}; no GPU is seen"
    memory = min(gpu.free for gpu in gpus)
    least = shape.least(memory)
    if least is not None and least <= len(gpus):
        together = shape.together(least, memory)
        return True, f"on {least} of {len(gpus)}, with {together:,} dialogues at once: {told}"
    usable = USABLE * memory * max(d for d in shape.divisions() if d <= len(gpus))
    if usable < needs:
        return False, f"needs {told}; {usable / GIGABYTE:,.0f} GB can be used here"
    return False, f"its {shape.heads} heads can't be divided among {len(gpus)} GPUs"


def serve_command(
    model: Model,
    server: Server = "vllm",
    *,
    gpus: int | None = None,
    memory: float | None = None,
    context: int = CONTEXT,
    constrained: bool = False,
) -> list[str]:
    """Gives the words of the command that serves a model for its entry.

    It is for as few GPUs as hold the model, if their number is not given, and for GPUs of 80 GB,
    if their ``memory`` in bytes is not; ``context`` is the most tokens of a prompt and its answer;
    ``constrained`` questions force the form of the answer by :func:`constraint`.

    Raises:
        RegistryError: If the entry is not of that kind, there is no such server, or the GPUs can't
            hold the model.
    """
    if server not in get_args(Server):
        raise RegistryError(f"no server {server!r}. Choose {' or '.join(get_args(Server))}.")
    if model.engine != "openai" or model.remote or model.base_url is None:
        raise RegistryError(
            f"{model.id}: is not asked through a server of one's own. Take an entry with engine "
            "openai and a base_url on this machine or network, such as qwen3-32b-vllm."
        )
    if model.shape is None and gpus is None:
        raise RegistryError(f"{model.id}: has no 'shape' to compute its memory from: give --gpus.")
    if gpus is None and model.shape is not None:
        gpus = model.shape.least(memory or _ABOUT)
        if gpus is None:
            raise RegistryError(
                f"{model.id}: not even 16 GPUs of {(memory or _ABOUT) / GIGABYTE:,.0f} GB hold it."
            )
    elif model.shape is not None and gpus not in model.shape.divisions():
        raise RegistryError(
            f"{model.id}: its {model.shape.heads} heads can't be divided among {gpus} GPUs. Give "
            f"one of {', '.join(map(str, model.shape.divisions()))}."
        )
    # It listens where the entry's address says, and elsewhere nobody hears it.
    address = urlsplit(model.base_url)
    weights, revision = str(model.weights), model.revision
    where = ["--host", str(address.hostname), "--port", str(address.port or 80)]
    pinned = [] if revision is None else ["--revision", revision]
    if server == "vllm":
        words = ["vllm", "serve", weights, "--served-model-name", weights, *pinned, *where]
        words += ["--tensor-parallel-size", str(gpus), "--max-model-len", str(context)]
        words += ["--gpu-memory-utilization", str(USABLE), "--enable-prefix-caching"]
        words += ["--generation-config", "vllm"]
        forced = ["--structured-outputs-config.backend", "xgrammar"]
    else:
        words = ["python", "-m", "sglang.launch_server", "--model-path", weights]
        words += ["--served-model-name", weights, *pinned, *where, "--tp-size", str(gpus)]
        # Its radix cache is on unless it is switched off.
        words += ["--context-length", str(context), "--mem-fraction-static", str(USABLE)]
        words += ["--sampling-defaults", "openai"]
        forced = ["--grammar-backend", "xgrammar"]
    return words + (forced if constrained else [])


def constraint(server: Server) -> str:
    """Gives the decoding setting with which a server lets only answers be written that parse.

    It is for ``cradle infer --decoding``, and part of the run's identity, as every such setting.
    """
    one = "|".join(map(re.escape, LABELS))
    pattern = f"({NONE}|({one})(; ({one}))*)"
    fields = {"vllm": {"structured_outputs": {"regex": pattern}}, "sglang": {"regex": pattern}}
    return f"extra={json.dumps(fields[server])}"
