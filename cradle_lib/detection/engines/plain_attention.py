"""Attention of a wave with PyTorch's kernels: on every device, in every number format.

Queries against the prefix are folded into one call. A dialogue's own tokens are attended to in
groups of neighbouring slots: see ``pack``.
"""

from __future__ import annotations

import torch
from torch import Tensor

from cradle_lib.detection.engines.attend import attend
from cradle_lib.detection.engines.pack import Group, Pack


def attend_prefix(
    query: Tensor, key: Tensor, value: Tensor, now: Pack, scale: float, window: int | None
) -> tuple[Tensor, Tensor]:
    """Lets all new tokens attend to the prefix, their queries folded together.

    Args:
        query: Shape (1, heads, tokens, size).
        key: Shape (1, key heads, length, size).
        value: Shape (1, key heads, length, value size).
        now: The tokens.
        scale: Factor of the scores.
        window: How many tokens one sees at most, itself included; ``None`` for all.

    Returns:
        The result, shape (key heads, query heads of each, tokens, value size), and the
        log-sum-exp of its scores, shape (key heads, query heads of each, tokens).
    """
    few, length = key.shape[1:3]
    heads, tokens = query.shape[1:3]
    group = heads // few
    mask = None
    if window is not None and now.loses(length, window):
        # A token at position p sees positions greater than p - window.
        first = length + now.place - window + 1

        def see() -> Tensor:
            seen = torch.arange(length, device=query.device) >= first.unsqueeze(1)
            return seen.repeat(group, 1).view(1, 1, group * tokens, -1)

        mask = now.mask(("prefix", window, group), query.dtype, see)
    folded = query.reshape(1, few, group * tokens, -1)
    out, lse = attend(folded, key, value, scale, mask)
    return out.view(few, group, tokens, -1), lse.view(few, group, tokens)


def attend_own(
    query: Tensor, keys: Tensor, values: Tensor, now: Pack, scale: float, window: int | None
) -> tuple[Tensor, Tensor]:
    """Lets each dialogue's new tokens attend to what is their own, some dialogues in a call.

    Args:
        query: Shape (1, heads, tokens, size).
        keys: All slots' keys. Shape (slots, key heads, capacity, size).
        values: Shape (slots, key heads, capacity, value size).
        now: The tokens.
        scale: Factor of the scores.
        window: How many tokens one sees at most, itself included; ``None`` for all.

    Returns:
        The result, shape (tokens, heads, value size), and the log-sum-exp of its scores in
        float32, shape (tokens, heads).
    """
    heads, tokens, size = query.shape[1:]
    few = keys.shape[1]
    group = heads // few
    by_token = query[0].transpose(0, 1)
    out = query.new_empty(tokens, heads, values.shape[-1])
    lse = torch.empty(tokens, heads, dtype=torch.float32, device=query.device)
    for index, part in enumerate(now.groups):
        slots, columns = part.asked.shape

        def see(part: Group = part) -> Tensor:
            places = torch.arange(part.longest, device=query.device)
            ends = part.seen_until.unsqueeze(-1)
            seen = places < ends
            if window is not None:
                seen &= places >= ends - window
            # Rows are folded heads first; of one column they are all alike.
            seen = seen.unsqueeze(1).expand(-1, group, -1, -1)
            return seen.reshape(len(seen), 1, -1, part.longest)

        mask = None
        if not part.even or (window is not None and part.longest > window):
            mask = now.mask((index, window, group), query.dtype, see)
        asked = by_token[part.asked.view(-1)].view(slots, columns, few, group, size)
        # Neighbouring slots are a view; slots among them without a new token ask for nothing.
        here = slice(part.first, part.first + slots)
        found, found_lse = attend(
            asked.permute(0, 2, 3, 1, 4).reshape(slots, few, group * columns, size),
            keys[here, :, : part.longest],
            values[here, :, : part.longest],
            scale,
            mask,
        )
        found = found.reshape(slots, few, group, columns, -1).permute(0, 3, 1, 2, 4)
        found = found.reshape(slots * columns, heads, -1)
        found_lse = found_lse.reshape(slots, heads, columns).transpose(1, 2).reshape(-1, heads)
        if part.filled is not None:
            found, found_lse = found[part.filled], found_lse[part.filled]
        out[part.tokens] = found
        lse[part.tokens] = found_lse
    return out, lse


def join(out: Tensor, lse: Tensor, prefix: Tensor, prefix_lse: Tensor) -> tuple[Tensor, Tensor]:
    """Joins the two by their log-sum-exp.

    Args:
        out: What :func:`attend_own` found.
        lse: Its log-sum-exp.
        prefix: What :func:`attend_prefix` found.
        prefix_lse: Its log-sum-exp.

    Returns:
        The result and its log-sum-exp, in the shapes of the first two.
    """
    prefix = prefix.flatten(0, 1).transpose(0, 1)
    prefix_lse = prefix_lse.flatten(0, 1).transpose(0, 1)
    # A query that sees nothing of one side has a log-sum-exp of minus infinity there.
    total = torch.logaddexp(lse, prefix_lse)
    # The two weights add up to one.
    share = (prefix_lse - total).exp().unsqueeze(-1)
    return torch.lerp(out.float(), prefix.float(), share), total
