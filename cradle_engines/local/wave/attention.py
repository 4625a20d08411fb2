"""Attention in which many dialogues share one copy of the prompt's static prefix.

All new tokens of all dialogues go through the model in a single row, so that the linear layers
process no padding. In each attention layer

1. the keys and values of the new tokens are written into their dialogues' slots,
2. each dialogue's queries attend to its own slot,
3. all queries together attend to the one copy of the prefix, and
4. the two results are merged by their log-sum-exp, which gives exactly the softmax over prefix and
   slot.

Sliding windows are masks in steps 2 and 3, and an attention sink is one more term in the
denominator of step 4. Other arguments of an attention layer are refused, and ``proof`` compares the
results with the model's own, so that the engine can fall back to the model's own attention.

References:
    Merging partial softmaxes: Milakov and Gimelshein 2018 (arXiv 1805.02867);
    shared prefixes: Juravsky et al. 2024, "Hydragen" (arXiv 2402.05099).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from itertools import accumulate
from typing import Any, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.functional import pad
from transformers import AttentionInterface, AttentionMaskInterface, PreTrainedModel

NAME: Final = "cradle_shared_prefix"
# The same attention, which also checks the model's masks.
_CHECKED: Final = "cradle_shared_prefix_checked"
_STORE: Final = "cradle_store"
# Arguments of attention layers that have no effect here.
_IGNORED: Final = frozenset(
    {"position_ids", "use_cache", "is_causal", "output_attentions", "output_router_logits"}
)
# Tokens by which the slots grow. Steps are small: unused positions in every slot of every layer
# cost more than occasional copying.
_STEP: Final = 128
# The length of a text for which masks are checked: longer than any context.
_FAR: Final = 1 << 22
# On a GPU, dialogues with at most this many new tokens share one attention call, because a call
# costs more than the padding. On a CPU the padding costs more.
_FEW: Final = 8
#: PyTorch's attention on a CPU. No public function gives the log-sum-exp, which this operator also
#: returns. It is private, so a version of PyTorch may lack it: then the same is computed in steps.
FLASH: Any = getattr(torch.ops.aten, "_scaled_dot_product_flash_attention_for_cpu", None)

#: The result of attention, shape (..., heads, tokens, size), and the log-sum-exp of its scores in
#: float32, shape (..., heads, tokens).
_Result = tuple[Tensor, Tensor]


class UnsupportedAttentionError(RuntimeError):
    """The model's attention has a feature that shared attention does not support."""


class Piece(NamedTuple):
    """Consecutive new tokens of one dialogue.

    Attributes:
        slot: The dialogue's slot.
        start: Position of the first new token in the slot.
        tokens: Number of new tokens.
    """

    slot: int
    start: int
    tokens: int

    @property
    def end(self) -> int:
        """Number of tokens in the slot afterwards."""
        return self.start + self.tokens


class PaddedBatch:
    """Dialogues with few new tokens, which share one attention call: a row for each slot.

    Rows are padded to the longest. The slots are contiguous, so that some rows may have no new
    tokens. Padding repeats the first query of the batch with one key; its result is not used.

    Args:
        members: Pieces, each with the index of its first token in the pass.
        device: Device of the tensors.

    Attributes:
        slots: The slots, from the first to the last.
        queries: Index in the pass of the token at each row and column. Shape (slots, columns).
        position: Position of each of these tokens in its slot. Shape (slots, columns).
        keys: Number of keys that the call reads from each slot.
        filled: Flat indices of the entries that are not padding. Shape (tokens,).
        tokens: Their indices in the pass. Shape (tokens,).
    """

    def __init__(self, members: Sequence[tuple[Piece, int]], device: torch.device) -> None:
        first = min(piece.slot for piece, _ in members)
        self.slots = slice(first, max(piece.slot for piece, _ in members) + 1)
        self.keys = max(piece.end for piece, _ in members)
        columns = max(piece.tokens for piece, _ in members)
        shape = (self.slots.stop - first, columns)
        queries, position = torch.full(shape, members[0][1]), torch.zeros(shape, dtype=torch.long)
        filled: list[int] = []
        tokens: list[int] = []
        for piece, index in members:
            row = (piece.slot - first, slice(piece.tokens))
            queries[row] = torch.arange(index, index + piece.tokens)
            position[row] = torch.arange(piece.start, piece.end)
            entry = row[0] * columns
            filled += range(entry, entry + piece.tokens)
            tokens += range(index, index + piece.tokens)
        self.queries, self.position = queries.to(device), position.to(device)
        self.filled = torch.tensor(filled, device=device)
        self.tokens = torch.tensor(tokens, device=device)


class BatchLayout:
    """The new tokens of one forward pass, dialogue after dialogue.

    Args:
        pieces: New tokens of each dialogue, in this order; at least one piece, no slot twice.
        device: Device of the tensors.
        few: Pieces of at most this many tokens share one attention call; ``None`` for the best
            number on the device.

    Attributes:
        pieces: The other pieces, each with the index of its first token in the pass.
        together: The pieces that share a call, or ``None``.
        slot: Slot of each token. Shape (tokens,).
        position: Position of each token in its slot, from 0. Shape (tokens,).
        longest: The largest number of tokens in a slot afterwards.
    """

    def __init__(
        self, pieces: Sequence[Piece], device: torch.device, few: int | None = None
    ) -> None:
        self._pieces, self._few = pieces, few
        self._on_devices = {device: self}
        if few is None:
            few = 0 if device.type == "cpu" else _FEW
        starts = accumulate((piece.tokens for piece in pieces), initial=0)
        indexed = list(zip(pieces, starts, strict=False))
        short = [member for member in indexed if member[0].tokens <= few]
        self.together = PaddedBatch(short, device) if short else None
        self.pieces = [member for member in indexed if member[0].tokens > few]
        self.longest = max(piece.end for piece in pieces)
        slots = [piece.slot for piece in pieces for _ in range(piece.tokens)]
        positions = [p for piece in pieces for p in range(piece.start, piece.end)]
        self.slot = torch.tensor(slots, device=device)
        self.position = torch.tensor(positions, device=device)
        self._biases: dict[tuple[object, ...], Tensor] = {}

    def on(self, device: torch.device) -> BatchLayout:
        """Gives the layout with its tensors on a device, for the layers of a model there."""
        if device not in self._on_devices:
            self._on_devices[device] = BatchLayout(self._pieces, device, self._few)
        return self._on_devices[device]

    def bias(
        self, call: object, position: Tensor, keys: int, window: int | None, rows: int, like: Tensor
    ) -> Tensor:
        """Makes the mask of a call: 0 where a token sees a key, otherwise minus infinity.

        A token sees the keys up to its own position, or only the last of them in a window. The mask
        is made once for all layers of one kind.

        Args:
            call: Identifies the tokens and keys of the call.
            position: Positions of the tokens among the keys. Shape (..., tokens).
            keys: The number of keys.
            window: Number of keys that a token sees, including its own; ``None`` for all.
            rows: Number of repetitions of the mask, one for each query head of a key head.
            like: A tensor of the mask's type.

        Returns:
            Shape (..., rows * tokens, keys).
        """
        if (call, window) not in self._biases:
            distance = position.unsqueeze(-1) - torch.arange(keys, device=position.device)
            unseen = (distance < 0) | (distance >= (window or math.inf))
            bias = like.new_zeros(unseen.shape).masked_fill_(unseen, -math.inf)
            self._biases[call, window] = torch.cat([bias] * rows, dim=-2)
        return self._biases[call, window]


class KeyValueStore:
    """Keys and values of all layers.

    Args:
        slots: Number of dialogues in the batch. Until :meth:`freeze_prefix` there is only one slot,
            in which the prefix is computed.

    Attributes:
        prefix: Keys and values of the prefix, by layer. Shape (1, key heads, length, size).
        own: Keys and values of all slots, by layer. Shape (slots, key heads, capacity, size).
        prefix_length: Tokens of the prefix.
        layout: The new tokens of the current forward pass.
    """

    layout: BatchLayout

    def __init__(self, slots: int) -> None:
        self._all_slots, self._slots, self._capacity = slots, 1, _STEP
        self.prefix: dict[int, tuple[Tensor, Tensor]] = {}
        self.own: dict[int, tuple[Tensor, Tensor]] = {}
        self.prefix_length = 0

    def freeze_prefix(self, length: int, model: PreTrainedModel) -> None:
        """Turns the content of slot 0 into the prefix (which may be empty); adds the other slots.

        Raises:
            UnsupportedAttentionError: If some layers have stored no keys here, because they bypass
                the attention interface.
        """
        layers = model.config.get_text_config().num_hidden_layers
        if length and len(self.own) != layers:
            raise UnsupportedAttentionError(f"attention in {layers - len(self.own)} layers")
        for layer, (key, value) in self.own.items():
            self.prefix[layer] = (key[:, :, :length].clone(), value[:, :, :length].clone())
        self.own.clear()
        self.prefix_length = length
        self._slots, self._capacity = self._all_slots, _STEP

    def begin(self, layout: BatchLayout) -> None:
        """Begins a forward pass; enlarges all slots if its tokens need it."""
        self.layout = layout
        more = layout.longest - self._capacity
        if more > 0:
            more = -(-more // _STEP) * _STEP
            self._capacity += more
            for layer, (key, value) in self.own.items():
                self.own[layer] = (pad(key, (0, 0, 0, more)), pad(value, (0, 0, 0, more)))

    def clear(self, slot: int) -> None:
        """Replaces the content of a slot by zeros."""
        for key, value in self.own.values():
            key[slot], value[slot] = 0, 0

    def write(self, layer: int, key: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """Writes the new tokens' keys and values into their slots, and gives those of all slots.

        Shapes are (1, key heads, tokens, size) and (slots, key heads, capacity, size); the size of
        values may differ from that of keys.
        """
        if layer not in self.own:
            shape = (self._slots, key.shape[1], self._capacity)
            self.own[layer] = (
                key.new_zeros(*shape, key.shape[3]),
                value.new_zeros(*shape, value.shape[3]),
            )
        keys, values = self.own[layer]
        layout = self.layout.on(key.device)
        keys[layout.slot, :, layout.position] = key[0].transpose(0, 1)
        values[layout.slot, :, layout.position] = value[0].transpose(0, 1)
        return keys, values


@contextmanager
def sharing(
    model: PreTrainedModel, store: KeyValueStore, *, checked: bool = False
) -> Iterator[None]:
    """Switches a model to shared attention with a store within a block.

    Args:
        model: Any causal one of Transformers whose layers use the attention interface.
        store: The keys and values.
        checked: Whether attention layers raise an :class:`UnsupportedAttentionError` if a mask of
            the model hides other keys than a window does. The passes must contain one text.

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
        model.set_attn_implementation(_CHECKED if checked else NAME)
        yield
    finally:
        model.set_attn_implementation(own)
        for layer in layers:
            delattr(layer, _STORE)


def forward(
    model: Any,
    store: KeyValueStore,
    layout: BatchLayout,
    ids: Sequence[int],
    keep: Sequence[int],
    position: Tensor | None = None,
) -> Tensor:
    """Computes new tokens of many dialogues in one pass; the model must be :func:`sharing`.

    Args:
        model: The model.
        store: The keys and values, which are extended.
        layout: The new tokens.
        ids: Their ids.
        keep: Indices of the tokens whose logits are computed.
        position: Positions of the tokens in their texts, if they are not those of the layout.

    Returns:
        The logits in float32, shape (kept tokens, vocabulary).
    """
    store.begin(layout)
    if position is None:
        position = layout.position + store.prefix_length
    device = layout.position.device
    output = model(
        input_ids=torch.tensor([ids], device=device),
        position_ids=position.unsqueeze(0),
        use_cache=False,
        # Not moved to the first device of several, as a tensor would be: the last one needs it.
        logits_to_keep=list(keep),
    )
    logits: Tensor = output.logits[0].float()
    return logits


def attend(query: Tensor, key: Tensor, value: Tensor, scale: float, bias: Tensor | None) -> _Result:
    """Computes attention; gives the result and the log-sum-exp of the scores.

    Queries have shape (rows, heads, tokens, size), keys and values (rows, key heads, keys, size).
    The bias is added to the scores, see :meth:`BatchLayout.bias`; ``None`` if all tokens see all
    keys.
    """
    batch, heads, tokens, size = query.shape
    # Query heads that share a key head become rows.
    folded = query.reshape(batch, key.shape[1], -1, size)
    if FLASH is not None and query.device.type == "cpu" and size == value.shape[-1]:
        out, lse = FLASH(folded, key, value, 0.0, False, attn_mask=bias, scale=scale)
    else:
        scores = torch.matmul(folded, key.transpose(-1, -2)).float() * scale
        scores = scores if bias is None else scores + bias
        lse = torch.logsumexp(scores, -1)
        out = torch.matmul(torch.exp(scores - lse.unsqueeze(-1)).to(value.dtype), value)
    return out.reshape(batch, heads, tokens, -1), lse.reshape(batch, heads, tokens)


def attend_own(
    query: Tensor,
    keys: Tensor,
    values: Tensor,
    layout: BatchLayout,
    scale: float,
    window: int | None,
) -> _Result:
    """Computes the causal attention of each dialogue's new tokens to their own slot.

    Keys and values are those of all slots, shape (slots, key heads, capacity, size).
    """
    heads, tokens = query.shape[1:3]
    rows = heads // keys.shape[1]
    out = query.new_empty(heads, tokens, values.shape[-1])
    lse = torch.empty(heads, tokens, device=query.device)
    for piece, first in layout.pieces:
        here, bias = slice(first, first + piece.tokens), None
        if piece.tokens > 1 or (window is not None and piece.end > window):
            bias = layout.bias(first, layout.position[here], piece.end, window, rows, query)
        key, value = (t[piece.slot : piece.slot + 1, :, : piece.end] for t in (keys, values))
        found = attend(query[:, :, here], key, value, scale, bias)
        out[:, here], lse[:, here] = found[0][0], found[1][0]
    if (short := layout.together) is not None:
        bias = layout.bias("together", short.position, short.keys, window, rows, query).unsqueeze(1)
        key, value = (t[short.slots, :, : short.keys] for t in (keys, values))
        found = attend(query[0][:, short.queries].transpose(0, 1), key, value, scale, bias)
        by_token = (part.transpose(0, 1).flatten(1, 2)[:, short.filled] for part in found)
        out[:, short.tokens], lse[:, short.tokens] = by_token
    return out, lse


def attend_prefix(
    query: Tensor, key: Tensor, value: Tensor, layout: BatchLayout, scale: float, window: int | None
) -> _Result:
    """Computes the attention of all new tokens to the prefix.

    Keys and values have shape (1, key heads, length, size). A token whose window does not reach the
    prefix has the result 0 and the log-sum-exp minus infinity.
    """
    length, rows = key.shape[2], query.shape[1] // key.shape[1]
    bias = None
    if window is not None:
        bias = layout.bias("prefix", layout.position + length, length, window, rows, query)
    out, lse = (part[0] for part in attend(query, key, value, scale, bias))
    if bias is None:
        return out, lse
    # The mask repeats all tokens for each query head of a key head: the first block suffices.
    sees_none = bias[: query.shape[2]].isinf().all(-1)
    return out.masked_fill(sees_none.unsqueeze(1), 0.0), lse.masked_fill(sees_none, -math.inf)


def merge(own: _Result, prefix: _Result) -> _Result:
    """Merges the results for two sets of keys into that for their union, in float32."""
    total = torch.logaddexp(own[1], prefix[1])
    # The weight of the prefix; that of the slot is one minus it.
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
    extra = {k for k, v in more.items() if v is not None and k not in _IGNORED}
    if extra or dropout:
        raise UnsupportedAttentionError(f"attention with {', '.join(sorted(extra)) or 'dropout'}")
    store: KeyValueStore = getattr(module, _STORE)
    layer: int = module.layer_idx  # type: ignore[assignment]
    scale = scaling if scaling is not None else query.shape[-1] ** -0.5
    keys, values = store.write(layer, key, value)
    layout = store.layout.on(query.device)
    out, lse = attend_own(query, keys, values, layout, scale, sliding_window)
    if store.prefix_length:
        prefix = attend_prefix(query, *store.prefix[layer], layout, scale, sliding_window)
        out, lse = merge((out, lse), prefix)
    if s_aux is not None:
        # An attention sink adds exp(s_aux) to the denominator, which is exp(lse) without it.
        out = out * torch.sigmoid(lse - s_aux.unsqueeze(1)).unsqueeze(-1)
    return out.transpose(0, 1).unsqueeze(0).to(query.dtype), None


def _window_of(mask_function: Callable[..., Tensor], **_: object) -> Tensor:
    """Gives the window of a model's mask, found for the last token of a very long text.

    Returns:
        The number of keys that the token sees, 0 for all; -1 if these are not the last ones.
    """
    keys = torch.arange(_FAR)
    seen = mask_function(torch.tensor(0), torch.tensor(0), keys[-1], keys).expand(_FAR)
    count = int(seen.sum())
    if count == _FAR:
        return torch.tensor(0)
    return torch.tensor(count if seen[-count:].all() else -1)


def _checked_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    sliding_window: int | None = None,
    **more: Any,
) -> tuple[Tensor, None]:
    if attention_mask is not None and int(attention_mask) != (sliding_window or 0):
        raise UnsupportedAttentionError(
            f"a mask that its attention layers do not pass on (window {int(attention_mask)})"
        )
    return _attention(module, query, key, value, None, sliding_window=sliding_window, **more)


AttentionInterface.register(NAME, _attention)
AttentionInterface.register(_CHECKED, _checked_attention)
AttentionMaskInterface.register(_CHECKED, _window_of)
