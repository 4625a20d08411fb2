"""Attention in which many dialogues share one copy of the prompt's static prefix.

All new tokens of all dialogues go through the model in a single row, so that the linear layers
see no padding. In each attention layer

1. the keys and values of the new tokens are written into their dialogues' slots,
2. all queries, folded together, attend to the one copy of the prefix,
3. each dialogue's queries attend to its own slot, and
4. the two results are joined by their log-sum-exp, which makes them exactly the softmax
   over prefix and slot together.

Sliding windows are masks in steps 2 and 3, and an attention sink is one more term in the
denominator of step 4. What else an architecture may ask of attention is refused, so that the engine
can fall back to the model's own.

References:
    The joining of partial softmaxes: Milakov and Gimelshein 2018 (arXiv 1805.02867);
    shared prefixes: Juravsky et al. 2024, "Hydragen" (arXiv 2402.05099).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final

import torch
from torch import Tensor, nn
from transformers import AttentionInterface, PreTrainedModel

from cradle_lib.detection.local.wave.batch_layout import BatchLayout, Group
from cradle_lib.detection.local.wave.key_value_store import KeyValueStore, UnsupportedAttentionError

NAME: Final = "cradle_shared_prefix"
_STORE: Final = "cradle_store"
# What attention layers pass along that changes nothing here.
_HARMLESS: Final = frozenset(
    {"position_ids", "use_cache", "is_causal", "output_attentions", "output_router_logits"}
)

#: A result, and in float32 the log-sum-exp of its scores, without the last dimension.
_Found = tuple[Tensor, Tensor]


@contextmanager
def sharing(model: PreTrainedModel, store: KeyValueStore) -> Iterator[None]:
    """Switches a model to shared attention with a store, for the time of a block.

    The model is any causal one of Transformers whose layers use the attention interface.

    Raises:
        UnsupportedAttentionError: If the model has layers that are not attention.
    """
    layers = [m for m in model.modules() if isinstance(getattr(m, "layer_idx", None), int)]
    types = set(getattr(model.config.get_text_config(), "layer_types", None) or ())
    if not types <= {"full_attention", "sliding_attention"}:
        raise UnsupportedAttentionError(f"layers of type {', '.join(sorted(types))}")
    own = model.config._attn_implementation
    try:
        for layer in layers:
            setattr(layer, _STORE, store)
        model.set_attn_implementation(NAME)
        yield
    finally:
        model.set_attn_implementation(own)
        for layer in layers:
            delattr(layer, _STORE)


def attend(query: Tensor, key: Tensor, value: Tensor, scale: float, bias: Tensor | None) -> _Found:
    """Attends; undefined for a query that sees no key.

    Queries have shape (batch, heads, queries, size), keys and values (batch, heads, keys, size).
    The bias is added to the scores: 0 where a query sees a key, else minus infinity, broadcast to
    (batch, heads, queries, keys); ``None`` if all queries see all keys.
    """
    if query.device.type == "cpu" and query.shape[-1] == value.shape[-1]:
        found: _Found = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, False, attn_mask=bias, scale=scale
        )
        return found
    scores = torch.matmul(query, key.transpose(-1, -2)).float() * scale
    if bias is not None:
        scores = scores + bias
    lse = torch.logsumexp(scores, -1)
    weights = torch.exp(scores - lse.unsqueeze(-1)).to(value.dtype)
    return torch.matmul(weights, value), lse


def attend_prefix(
    query: Tensor, key: Tensor, value: Tensor, layout: BatchLayout, scale: float, window: int | None
) -> _Found:
    """Lets all new tokens attend to the prefix, their queries folded together.

    Queries have shape (1, heads, tokens, size), keys and values (1, key heads, length, size). A
    token sees a window of so many tokens, itself included, or all. What is found has shapes
    (tokens, heads, value size) and (tokens, heads): 0 and -inf if its window holds no prefix.
    """
    few, length = key.shape[1:3]
    heads, tokens = query.shape[1:3]
    sharers = heads // few
    bias = blind = None
    if window is not None and length + layout.furthest >= window:
        # A token at position p sees positions greater than p - window.
        first = length + layout.place - window + 1
        blind = first >= length

        def make() -> Tensor:
            seen = torch.arange(length, device=query.device) >= first.unsqueeze(1)
            return _bias(seen.repeat(sharers, 1).view(1, 1, sharers * tokens, -1), query.dtype)

        bias = layout.bias(("prefix", window, sharers), make)
    folded = query.reshape(1, few, sharers * tokens, -1)
    out, lse = attend(folded, key, value, scale, bias)
    out = out.reshape(heads, tokens, -1).transpose(0, 1)
    lse = lse.reshape(heads, tokens).transpose(0, 1)
    if blind is not None:
        out = out.masked_fill(blind.view(-1, 1, 1), 0.0)
        lse = lse.masked_fill(blind.view(-1, 1), -math.inf)
    return out, lse


def attend_own(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    layout: BatchLayout,
    scale: float,
    window: int | None,
) -> _Found:
    """Lets each dialogue's new tokens attend to their own slot, up to themselves.

    Keys and values are those of all slots, shape (slots, key heads, capacity, size); all else is as
    in :func:`attend_prefix`.
    """
    heads, tokens, size = query.shape[1:]
    few = keys.shape[1]
    sharers = heads // few
    by_token = query[0].transpose(0, 1)
    out = query.new_empty(tokens, heads, values.shape[-1])
    lse = torch.empty(tokens, heads, dtype=torch.float32, device=query.device)
    for index, group in enumerate(layout.groups):
        slots, columns = group.asked.shape

        def make(group: Group = group) -> Tensor:
            places = torch.arange(group.longest, device=query.device)
            ends = group.seen_until.unsqueeze(-1)
            seen = places < ends
            if window is not None:
                seen &= places >= ends - window
            # Query heads that share a key head are folded into the rows.
            seen = seen.unsqueeze(1).expand(-1, sharers, -1, -1)
            return _bias(seen.reshape(len(seen), 1, -1, group.longest), query.dtype)

        bias = None
        if not group.even or (window is not None and group.longest > window):
            bias = layout.bias((index, window, sharers), make)
        asked = by_token[group.asked.view(-1)].view(slots, columns, few, sharers, size)
        here = slice(group.first, group.first + slots)
        found, found_lse = attend(
            asked.permute(0, 2, 3, 1, 4).reshape(slots, few, sharers * columns, size),
            keys[here, :, : group.longest],
            values[here, :, : group.longest],
            scale,
            bias,
        )
        found = found.reshape(slots, few, sharers, columns, -1).permute(0, 3, 1, 2, 4)
        found = found.reshape(slots * columns, heads, -1)
        found_lse = found_lse.reshape(slots, heads, columns).transpose(1, 2).reshape(-1, heads)
        if group.filled is not None:
            found, found_lse = found[group.filled], found_lse[group.filled]
        out[group.tokens] = found
        lse[group.tokens] = found_lse
    return out, lse


def join(own: _Found, prefix: _Found) -> _Found:
    """Joins what tokens found in two sets of keys, as if it were one set; in float32."""
    # A query that sees nothing of one side has a log-sum-exp of minus infinity there.
    total = torch.logaddexp(own[1], prefix[1])
    # The two weights add up to one.
    share = (prefix[1] - total).exp().unsqueeze(-1)
    return torch.lerp(own[0].float(), prefix[0].float(), share), total


def _bias(seen: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.zeros(seen.shape, dtype=dtype, device=seen.device).masked_fill_(~seen, -math.inf)


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
    store: KeyValueStore = getattr(module, _STORE)
    layout = store.layout
    layer: int = module.layer_idx  # type: ignore[assignment]
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    keys, values = store.write(layer, key, value)
    out, lse = attend_own(query, keys, values, layout, scale, sliding_window)
    if store.prefix_length:
        prefix = attend_prefix(query, *store.prefix[layer], layout, scale, sliding_window)
        out, lse = join((out, lse), prefix)
    if s_aux is not None:
        out = out * torch.sigmoid(lse - s_aux).unsqueeze(-1)
    return out.unsqueeze(0).to(query.dtype), None


AttentionInterface.register(NAME, _attention)
