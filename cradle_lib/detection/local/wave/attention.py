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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import AttentionInterface, PreTrainedModel

NAME: Final = "cradle_shared_prefix"
_STORE: Final = "cradle_store"
# What attention layers pass along that changes nothing here.
_HARMLESS: Final = frozenset(
    {"position_ids", "use_cache", "is_causal", "output_attentions", "output_router_logits"}
)
# Dialogues with at most so many new tokens share one attention call, padded to the longest and the
# widest of them. On a GPU a call costs more than the padding; on a processor it costs less.
NARROW: Final = {"cpu": 0, "cuda": 8}

#: A result, and in float32 the log-sum-exp of its scores, without the last dimension.
_Found = tuple[Tensor, Tensor]


class Piece(NamedTuple):
    """New tokens of one dialogue, which follow each other in its slot.

    Attributes:
        slot: The slot.
        start: Place of the first new token in it.
        tokens: How many there are.
    """

    slot: int
    start: int
    tokens: int

    @property
    def end(self) -> int:
        """How many tokens the slot holds afterwards."""
        return self.start + self.tokens


class Group:
    """Slots that attend in one call: a row of queries each, as long as the widest piece.

    Slots between the first and the last that have no piece in the group are rows too; like the
    rest of a shorter row they hold some token whose result is not read.

    Args:
        members: Pieces, by slot, each with the index of its first token in the layout.
        device: Where the tensors live.

    Attributes:
        first: The first slot.
        asked: Index in the layout of the token at each slot and column. Shape (slots, columns).
        seen_until: How many tokens of its slot each sees, itself included; 1 where the result is
            not read. Shape (slots, columns).
        filled: Which results are read, counted row by row; ``None`` if all are.
        tokens: Indices of their tokens in the layout. Shape (new tokens,).
        longest: The largest of ``seen_until``.
        even: Whether ``seen_until`` is the same everywhere, so that no mask is needed.
    """

    def __init__(self, members: Sequence[tuple[Piece, int]], device: torch.device) -> None:
        self.first, columns = members[0][0].slot, max(piece.tokens for piece, _ in members)
        size = (members[-1][0].slot - self.first + 1) * columns
        asked, seen_until = [members[0][1]] * size, [1] * size
        filled: list[int] = []
        for piece, index in members:
            row = (piece.slot - self.first) * columns
            here = slice(row, row + piece.tokens)
            asked[here] = range(index, index + piece.tokens)
            seen_until[here] = range(piece.start + 1, piece.end + 1)
            filled += range(row, row + piece.tokens)
        self.asked = _vector(asked, device).view(-1, columns)
        self.seen_until = _vector(seen_until, device).view(-1, columns)
        self.filled = None if len(filled) == size else _vector(filled, device)
        self.tokens = _vector([asked[i] for i in filled], device)
        self.longest = max(seen_until)
        self.even = min(seen_until) == self.longest


class BatchLayout:
    """The new tokens of one forward pass, dialogue after dialogue.

    Args:
        pieces: New tokens of each dialogue, in this order; one piece at least, no slot twice.
        device: Where the tensors live.
        narrow: Pieces of at most so many tokens share a call; by default :data:`NARROW`.

    Attributes:
        slot: Slot of each token. Shape (tokens,).
        place: Place of each token in its slot, from 0. Shape (tokens,).
        furthest: The largest place.
        groups: The calls in which dialogues attend to their own tokens; each piece is in one.
    """

    def __init__(
        self, pieces: Sequence[Piece], device: torch.device, narrow: int | None = None
    ) -> None:
        places = [place for piece in pieces for place in range(piece.start, piece.end)]
        self.slot = _vector([piece.slot for piece in pieces for _ in range(piece.tokens)], device)
        self.place, self.furthest = _vector(places, device), max(places)
        if narrow is None:
            narrow = NARROW.get(device.type, NARROW["cuda"])
        starts = accumulate((piece.tokens for piece in pieces), initial=0)
        indexed = list(zip(pieces, starts, strict=False))
        together = sorted(member for member in indexed if member[0].tokens <= narrow)
        calls = [together] if together else []
        calls += [[member] for member in indexed if member[0].tokens > narrow]
        self.groups = [Group(call, device) for call in calls]
        self._biases: dict[tuple[object, ...], Tensor] = {}

    def bias(
        self,
        call: object,
        ends: Tensor,
        longest: int,
        window: int | None,
        sharers: int,
        dtype: torch.dtype,
    ) -> Tensor:
        """What a call adds to its scores: 0 where a token sees a place, else minus infinity.

        Tokens see the places before their ends, shape (slots, columns), or only the last of them
        in a window. Query heads that share a key head are folded into the rows: what is given,
        made once for all layers of one kind, has shape (slots, 1, sharers * columns, longest).
        """
        key = call, window, sharers
        if key not in self._biases:
            places, ends = torch.arange(longest, device=ends.device), ends.unsqueeze(-1)
            seen = places < ends
            if window is not None:
                seen &= places >= ends - window
            unseen = ~seen.repeat(1, sharers, 1).unsqueeze(1)
            zeros = torch.zeros(unseen.shape, dtype=dtype, device=ends.device)
            self._biases[key] = zeros.masked_fill_(unseen, -math.inf)
        return self._biases[key]


def _vector(values: list[int], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.long, device=device)


class UnsupportedAttentionError(RuntimeError):
    """The architecture asks for something that shared attention does not do."""


class KeyValueStore:
    """Keys and values of all layers.

    Args:
        slots: How many dialogues advance together. Until the prefix is frozen there is one
            slot, in which it is computed.
        step: Tokens that a slot holds at first, and by which it grows. Steps are small: what
            lies unused in every slot of every layer costs more than copying now and then.

    Attributes:
        prefix: Keys and values of the prefix, by layer. Shape (1, key heads, length, size).
        own: Keys and values of all slots, by layer. Shape (slots, key heads, capacity, size).
        prefix_length: Tokens of the prefix.
        layout: The new tokens of the current forward pass.
    """

    def __init__(self, slots: int, step: int = 128) -> None:
        self._wave, self._step = slots, step
        self.slots, self.capacity = 1, step
        self.prefix: dict[int, tuple[Tensor, Tensor]] = {}
        self.own: dict[int, tuple[Tensor, Tensor]] = {}
        self.prefix_length = 0
        self.layout: BatchLayout

    def freeze_prefix(self, length: int, model: PreTrainedModel) -> None:
        """Turns what slot 0 holds into the prefix, perhaps empty, and opens the slots of the wave.

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
        more = -(-length // self._step) * self._step - self.capacity
        self.capacity += more
        for layer, (key, value) in self.own.items():
            # With zeros: what is masked must still be a number.
            self.own[layer] = (pad(key, (0, 0, 0, more)), pad(value, (0, 0, 0, more)))

    def move(self, source: int, target: int, length: int) -> None:
        """Copies the first tokens of one slot to another."""
        for key, value in self.own.values():
            key[target, :, :length] = key[source, :, :length]
            value[target, :, :length] = value[source, :, :length]

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Puts the new tokens' keys and values into their slots, and gives those of all slots.

        Shapes are (1, key heads, tokens, size) and (slots, key heads, capacity, size); values may
        have a size of their own.
        """
        layout = self.layout
        if layer not in self.own:
            shape = (self.slots, key.shape[1], self.capacity)
            self.own[layer] = (
                key.new_zeros(*shape, key.shape[3]),
                value.new_zeros(*shape, value.shape[3]),
            )
        keys, values = self.own[layer]
        keys[layout.slot, :, layout.place] = key[0].transpose(0, 1)
        values[layout.slot, :, layout.place] = value[0].transpose(0, 1)
        return keys, values


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
    """Attends, and gives the result and the log-sum-exp of the scores.

    Queries have shape (batch, heads, queries, size), keys and values (batch, heads, keys, size);
    the result is shaped as the queries, the log-sum-exp (batch, heads, queries). Both are undefined
    for a query that sees no key. The bias is added to the scores: 0 where a query sees a key, else
    minus infinity, broadcast to (batch, heads, queries, keys); ``None`` if all see all.
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


def attend_rows(
    query: Tensor, key: Tensor, value: Tensor, scale: float, bias: Tensor | None
) -> _Found:
    """Lets rows of tokens attend, each to the keys of its slot.

    Queries have shape (slots, columns, heads, size); those of heads that share a key head are
    folded together. The result and the log-sum-exp are in the order of the tokens: shapes (slots *
    columns, heads, value size) and (slots * columns, heads).
    """
    slots, columns, heads, size = query.shape
    few, sharers = key.shape[1], heads // key.shape[1]
    folded = query.view(slots, columns, few, sharers, size).permute(0, 2, 3, 1, 4)
    found, lse = attend(folded.reshape(slots, few, -1, size), key, value, scale, bias)
    found = found.reshape(slots, few, sharers, columns, -1).permute(0, 3, 1, 2, 4)
    lse = lse.reshape(slots, heads, columns).transpose(1, 2)
    return found.reshape(slots * columns, heads, -1), lse.reshape(slots * columns, heads)


def attend_prefix(
    query: Tensor, key: Tensor, value: Tensor, layout: BatchLayout, scale: float, window: int | None
) -> _Found:
    """Lets all new tokens attend to the prefix.

    Queries have shape (1, heads, tokens, size), keys and values (1, key heads, length, size). A
    token sees a window of so many tokens, itself included, or all. The result and the log-sum-exp
    have shapes (tokens, heads, value size) and (tokens, heads): 0 and minus infinity for a token
    whose window does not reach the prefix.
    """
    length, sharers = key.shape[2], query.shape[1] // key.shape[1]
    if window is None or length + layout.furthest < window:
        return attend_rows(query.transpose(1, 2), key, value, scale, None)
    ends = length + layout.place + 1
    bias = layout.bias("prefix", ends[None], length, window, sharers, query.dtype)
    out, lse = attend_rows(query.transpose(1, 2), key, value, scale, bias)
    blind = (ends - window >= length).unsqueeze(1)
    return out.masked_fill(blind.unsqueeze(2), 0.0), lse.masked_fill(blind, -math.inf)


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
    heads, tokens = query.shape[1:3]
    sharers = heads // keys.shape[1]
    by_token = query[0].transpose(0, 1)
    out = query.new_empty(tokens, heads, values.shape[-1])
    lse = torch.empty(tokens, heads, dtype=torch.float32, device=query.device)
    for index, group in enumerate(layout.groups):
        bias, longest = None, group.longest
        if not group.even or (window is not None and longest > window):
            bias = layout.bias(index, group.seen_until, longest, window, sharers, query.dtype)
        here = slice(group.first, group.first + len(group.asked))
        key, value = keys[here, :, :longest], values[here, :, :longest]
        found, found_lse = attend_rows(by_token[group.asked], key, value, scale, bias)
        if group.filled is not None:
            found, found_lse = found[group.filled], found_lse[group.filled]
        out[group.tokens] = found
        lse[group.tokens] = found_lse
    return out, lse


def join(own: _Found, prefix: _Found) -> _Found:
    """Joins what tokens found in two sets of keys, as if it were one set.

    The result is in float32, and comes with its log-sum-exp, in the shapes of the two.
    """
    # A query that sees nothing of one side has a log-sum-exp of minus infinity there.
    total = torch.logaddexp(own[1], prefix[1])
    # The two weights add up to one.
    share = (prefix[1] - total).exp().unsqueeze(-1)
    return torch.lerp(own[0].float(), prefix[0].float(), share), total


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
