"""Estimates the memory that a model needs, without its weights and without a GPU.

The model is built with two and with three layers, of tensors without contents. A forward and a
backward pass through both give the memory of each further layer.
"""

from __future__ import annotations

import copy
import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import torch
from peft import get_peft_model
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map_only
from transformers import AutoModelForCausalLM

from cradle_engines.library_logs import quiet
from cradle_extras.training.recipe import Recipe
from cradle_extras.training.sequences import TokenTree
from cradle_extras.training.trainer import batch, lora
from cradle_lib.detection.models.engine import short_reason
from cradle_lib.errors import EngineError

# One in so many tokens of a training dialogue is in an answer, and has logits.
_PER_ANSWER: Final = 25


@dataclass(frozen=True)
class Memory:
    """Memory of one GPU in bytes.

    Attributes:
        weights: Weights, those of an adapter included.
        gradients: Gradients of the trained weights, in float32.
        optimizer: State of AdamW: two numbers in float32 for each trained weight.
        activations: Highest sum of all other tensors: activations, keys and values, copies of
            weights in another format, and layers that are gathered from other GPUs.
    """

    weights: float
    gradients: float
    optimizer: float
    activations: float

    @property
    def total(self) -> float:
        """Sum of all parts."""
        return self.weights + self.gradients + self.optimizer + self.activations


def estimate_memory(
    config: Any, tokens: int, recipe: Recipe | None = None, *, gpus: int = 1
) -> Memory:
    """Estimates the memory of each GPU for one dialogue at a time.

    The CUDA context and fragmentation, about 1 to 2 GB, are not included.

    Args:
        config: Configuration of the model, from ``AutoConfig.from_pretrained``. Of a multimodal
            model only the text part is counted.
        tokens: Tokens of the longest prompt with its answer, or of the longest training dialogue.
        recipe: The recipe of a training; ``None`` for inference in bfloat16.
        gpus: Number of GPUs over which the model is spread: whole layers for inference, and shards
            of each layer (FSDP) for training.

    Raises:
        EngineError: If the layers can't be computed without contents, or have no part to adapt.
    """
    config = config.get_text_config()
    layers = config.num_hidden_layers
    dtype = "bfloat16" if recipe is None else recipe.base_dtype
    # FSDP gathers float32 shards as layers in the format of the computation.
    computed = dtype if recipe is None or gpus == 1 else recipe.dtype
    try:
        with quiet():
            whole = _build(config, layers, dtype)
            two, three = (_measure(_build(config, n, computed), tokens, recipe) for n in (2, 3))
    except Exception as error:
        reason = short_reason(f"{type(error).__name__}: {error}")
        raise EngineError(
            f"the memory of {config.model_type} models is not estimated ({reason}). Measure it on "
            "a GPU with one short dialogue."
        ) from error
    adapter = recipe.adapter if recipe else None
    adapted = min(layers, adapter.layers or layers) if adapter else layers
    trained = 0.0
    if adapter:
        trained = two.trained + (adapted - 2) * (three.trained - two.trained)
    elif recipe:
        trained = sum(each.numel() for each in whole.parameters())
    # Layers below the first adapter keep no activations, but their inputs if checkpointed.
    kept = layers if recipe and recipe.gradient_checkpointing else adapted
    peaks = zip(two.peaks, three.peaks, strict=True)
    activations = max(first + (kept - 2) * (second - first) for first, second in peaks)
    if recipe and gpus > 1:
        # Two layers, the embeddings and the output layer, and gradients of as much.
        activations += two.weights * (1 if adapter else 2)
    weights = sum(each.nbytes for each in whole.parameters()) + 4 * trained * bool(adapter)
    return Memory(weights / gpus, 4 * trained / gpus, 8 * trained / gpus, activations)


@dataclass(frozen=True)
class _Measured:
    """A pass: bytes of the weights, number of trained weights, peaks forward and backward."""

    weights: float
    trained: int
    peaks: tuple[float, float]


def _build(config: Any, layers: int, dtype: str) -> Any:
    """Builds a model with some of its layers, on the device ``meta``."""
    changed = copy.deepcopy(config)
    for name, value in vars(config).items():
        if isinstance(value, list) and len(value) == config.num_hidden_layers:
            setattr(changed, name, value[:layers])
    changed.num_hidden_layers = layers
    with torch.device("meta"):
        return AutoModelForCausalLM.from_config(changed, dtype=getattr(torch, dtype))


def _measure(lm: Any, tokens: int, recipe: Recipe | None) -> _Measured:
    """Runs a model without contents on one dialogue, as inference or the trainer does."""
    config, inputs, targets, mixed = lm.config, {}, None, False
    if recipe:
        order = np.arange(tokens)
        answers = order[1::_PER_ANSWER]
        tree = TokenTree(order * 0, order - 1, answers, answers > 0, 1, 0, tokens)
        inputs, mixed = batch(tree, config), recipe.dtype == "bfloat16"
        targets = inputs.pop("labels")[0]
        del inputs["weights"]
        if recipe.gradient_checkpointing:
            lm.activation_checkpointing_enable()
        if recipe.adapter:
            if recipe.gradient_checkpointing:
                lm.enable_input_require_grads()
            with torch.device("meta"):
                lm = get_peft_model(lm, lora(lm, recipe))
    else:
        inputs = {"input_ids": torch.zeros(1, tokens, dtype=torch.long), "logits_to_keep": 1}
    with FakeTensorMode() as fake:
        _replace_contents(lm.train(recipe is not None))
        trained = [each for each in lm.parameters() if recipe and each.requires_grad]
        for each in trained:
            each.grad = torch.zeros_like(each)
        inputs, targets = tree_map_only(torch.Tensor, fake.from_tensor, (inputs, targets))
        known = [*lm.parameters(), *lm.buffers(), *(each.grad for each in trained)]
        with _LiveMemory(known) as live, torch.set_grad_enabled(recipe is not None):
            with torch.autocast("cpu", torch.bfloat16, enabled=mixed):
                logits = lm(**inputs, use_cache=recipe is None).logits
            forward, live.peak = live.peak, 0
            if recipe:
                loss: Any = torch.nn.functional.cross_entropy(logits[0].float(), targets)
                loss.backward()
    size = sum(each.nbytes for each in lm.parameters())
    return _Measured(size, sum(each.numel() for each in trained), (forward, live.peak))


def _replace_contents(lm: Any) -> None:
    """Replaces tensors on the device ``meta`` by fake ones on the CPU, which autocast supports."""
    made: dict[torch.Tensor, torch.Tensor] = {}
    for module in lm.modules():
        for held in (module._parameters, module._buffers):
            for name, old in held.items():
                if old is not None and old not in made:
                    made[old] = torch.empty(old.shape, dtype=old.dtype)
                    if isinstance(old, torch.nn.Parameter):
                        made[old] = torch.nn.Parameter(made[old], old.requires_grad)
                held[name] = None if old is None else made[old]


class _LiveMemory(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Sums the sizes of all tensors that exist at a time, except those that are known."""

    def __init__(self, known: Iterable[torch.Tensor]) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.peak = self._now = 0
        self._seen = {each.untyped_storage()._cdata for each in known}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        found = func(*args, **(kwargs or {}))
        for each in tree_leaves(found):
            if isinstance(each, torch.Tensor):
                self._count(each.untyped_storage())
        return found

    def _count(self, storage: torch.UntypedStorage) -> None:
        if storage._cdata not in self._seen:
            self._seen.add(storage._cdata)
            self._now += storage.nbytes()
            self.peak = max(self.peak, self._now)
            weakref.finalize(storage, self._forget, storage._cdata, storage.nbytes())

    def _forget(self, key: int, size: int) -> None:
        self._seen.discard(key)
        self._now -= size
