"""Attention in which many dialogues share one copy of the prompt's static prefix.

All new tokens of all dialogues go through the model packed into a single row, so that the
linear layers see no padding. In each attention layer

1. the keys and values of the new tokens are written into their dialogues' slots,
2. all queries, folded together, attend to the one copy of the prefix,
3. each dialogue's queries attend to its own slot, and
4. the two results are joined by their log-sum-exp, which makes them exactly the softmax
   over prefix and slot together.

Sliding windows are masks in steps 2 and 3, and an attention sink is one more term in the
denominator of step 4. Steps 2 to 4 are compiled for the processor where that is possible
(``compiled``), and made of PyTorch's kernels where it is not (``plain_attention``). What else an
architecture may ask of attention is refused, so that the engine can fall back to the model's
own.

References:
    The joining of partial softmaxes: Milakov and Gimelshein 2018 (arXiv 1805.02867);
    shared prefixes: Juravsky et al. 2024, "Hydragen" (arXiv 2402.05099).
"""

from __future__ import annotations

from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from cradle_lib.detection.engines.compiled import Compiled, Found, compiled
from cradle_lib.detection.engines.pack import Pack
from cradle_lib.detection.engines.plain_attention import attend_own, attend_prefix, join

NAME: Final = "cradle_shared_prefix"
_STORE: Final = "cradle_store"
# What attention layers pass along that changes nothing here.
_HARMLESS: Final = frozenset(
    {"position_ids", "use_cache", "is_causal", "output_attentions", "output_router_logits"}
)


class UnsupportedAttentionError(RuntimeError):
    """The architecture asks for something that shared attention does not do."""


class Store:
    """Keys and values: one prefix, and a slot for each dialogue of the wave.

    Args:
        slots: How many dialogues advance together. Until the prefix is frozen there is one
            slot, in which it is computed.
        step: Tokens that a slot holds at first, and by which it grows. Steps are small: what
            lies unused in every slot of every layer costs more than copying now and then.
    """

    def __init__(self, slots: int, step: int = 128) -> None:
        self._wave, self._step = slots, step
        self.slots, self.capacity = 1, step
        self.prefix: dict[int, tuple[Tensor, Tensor]] = {}
        self.own: dict[int, tuple[Tensor, Tensor]] = {}
        self.turned: dict[int, Tensor] = {}
        self.prefix_length = 0
        self.pack: Pack | None = None

    def freeze_prefix(self, length: int, model: PreTrainedModel) -> None:
        """Turns what slot 0 holds into the prefix, and opens the slots of the wave.

        Args:
            length: Tokens of the prefix; may be 0.
            model: The model that computed it.

        Raises:
            UnsupportedAttentionError: If some of its layers kept no keys here, because their
                attention goes its own way.
        """
        layers = model.config.get_text_config().num_hidden_layers
        if length and len(self.own) != layers:
            raise UnsupportedAttentionError(f"attention in {layers - len(self.own)} layers")
        for layer, (key, value) in self.own.items():
            self.prefix[layer] = (key[:1, :, :length].clone(), value[:1, :, :length].clone())
        self.own.clear()
        self.prefix_length = length
        self.slots, self.capacity = self._wave, self._step

    def reserve(self, length: int) -> None:
        """Makes every slot hold at least so many tokens."""
        if length <= self.capacity:
            return
        self.capacity = -(-length // self._step) * self._step
        for layer, (key, value) in self.own.items():
            self.own[layer] = (self._grown(key), self._grown(value))

    def move(self, source: int, target: int, length: int) -> None:
        """Copies the first tokens of one slot to another."""
        for key, value in self.own.values():
            key[target, :, :length] = key[source, :, :length]
            value[target, :, :length] = value[source, :, :length]

    def _grown(self, old: Tensor) -> Tensor:
        held = old.shape[2]
        new = old.new_empty(old.shape[0], old.shape[1], self.capacity, old.shape[3])
        new[:, :, :held] = old
        # What is masked must still be a number.
        new[:, :, held:] = 0
        return new

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Puts the new tokens' keys and values into their slots.

        Args:
            layer: Index of the layer.
            key: Shape (1, key heads, tokens, size).
            value: The same shape, or with a size of its own.

        Returns:
            All slots' keys and values. Shape (slots, key heads, capacity, size).
        """
        now = self.pack
        assert now is not None
        if layer not in self.own:
            shape = (self.slots, key.shape[1], self.capacity)
            self.own[layer] = (
                key.new_zeros(*shape, key.shape[3]),
                value.new_zeros(*shape, value.shape[3]),
            )
        keys, values = self.own[layer]
        keys[now.slot, :, now.place] = key[0].transpose(0, 1)
        values[now.slot, :, now.place] = value[0].transpose(0, 1)
        return keys, values


def attach(model: PreTrainedModel, store: Store) -> None:
    """Switches a model to shared attention with this store.

    Args:
        model: Any causal language model of Transformers whose attention layers use the
            attention interface.
        store: The store; one model serves one at a time.

    Raises:
        UnsupportedAttentionError: If the model has layers that are not attention.
    """
    layers = [m for m in model.modules() if isinstance(getattr(m, "layer_idx", None), int)]
    types = set(getattr(model.config.get_text_config(), "layer_types", None) or ())
    if not types <= {"full_attention", "sliding_attention"}:
        raise UnsupportedAttentionError(f"layers of type {', '.join(sorted(types))}")
    for layer in layers:
        setattr(layer, _STORE, store)
    model.set_attn_implementation(NAME)


def detach(model: PreTrainedModel, implementation: str) -> None:
    """Gives a model its own attention back."""
    model.set_attn_implementation(implementation)
    for module in model.modules():
        if hasattr(module, _STORE):
            delattr(module, _STORE)


def _attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    dropout: float = 0.0,
    sliding_window: int | None = None,
    s_aux: Tensor | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    strange = {k for k, v in more.items() if v is not None and k not in _HARMLESS}
    if strange or dropout:
        raise UnsupportedAttentionError(f"attention with {', '.join(sorted(strange)) or 'dropout'}")
    store: Store = getattr(module, _STORE)
    now = store.pack
    assert now is not None
    layer: int = module.layer_idx  # type: ignore[assignment]
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    keys, values = store.write(layer, key, value)
    kernels = compiled(query, keys, values)
    if kernels is not None:
        out, lse = _compiled(kernels, store, layer, query, scale, sliding_window)
    else:
        out, lse = attend_own(query, keys, values, now, scale, sliding_window)
        if store.prefix_length:
            prefix = attend_prefix(query, *store.prefix[layer], now, scale, sliding_window)
            out, lse = join(out, lse, *prefix)
    if s_aux is not None:
        out = out * torch.sigmoid(lse - s_aux).unsqueeze(-1)
    return out.unsqueeze(0).to(query.dtype), None


def _compiled(
    kernels: Compiled, store: Store, layer: int, query: Tensor, scale: float, window: int | None
) -> Found:
    now = store.pack
    assert now is not None
    keys, values = store.own[layer]
    tokens, size = query.shape[2:]
    asked = query.contiguous() if query.stride(-1) != 1 else query
    asked = asked.view(keys.shape[1], -1, tokens, size)
    prefix = None
    if store.prefix_length and now.loses(store.prefix_length, window):
        prefix = attend_prefix(query, *store.prefix[layer], now, scale, window)
    elif store.prefix_length:
        if layer not in store.turned:
            store.turned[layer] = kernels.turn(store.prefix[layer][0][0])
        value = store.prefix[layer][1][0]
        prefix = kernels.prefix(asked, store.turned[layer], value, scale)
    out, lse = kernels.own(asked, keys, values, now.work, scale, window, prefix)
    return out.permute(2, 0, 1, 3).flatten(1, 2), lse.permute(2, 0, 1).flatten(1)


AttentionInterface.register(NAME, _attention)
