"""Attention that also tells its normalizer, so that two partial results can be joined."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class Mask:
    """Which keys a query sees, in the form that kernels take.

    Attributes:
        bias: What is added to the scores: 0 where a query sees a key, else minus infinity.
            Shape broadcast to (batch, heads, queries, keys).
        blind: True for queries that see no key, shape broadcast to (batch, heads, queries);
            ``None`` if there are none.
    """

    bias: Tensor
    blind: Tensor | None

    @classmethod
    def of(cls, seen: Tensor, dtype: torch.dtype) -> Mask:
        """Makes a mask from truth values.

        Args:
            seen: True where a query sees a key.
            dtype: Number format of the queries.
        """
        bias = torch.zeros(seen.shape, dtype=dtype, device=seen.device)
        bias.masked_fill_(~seen, -math.inf)
        blind = ~seen.any(-1)
        return cls(bias, blind if bool(blind.any()) else None)


def attend(
    query: Tensor, key: Tensor, value: Tensor, scale: float, mask: Mask | None
) -> tuple[Tensor, Tensor]:
    """Attends, and tells the log-sum-exp of the scores.

    Args:
        query: Shape (batch, heads, queries, size).
        key: Shape (batch, heads, keys, size).
        value: Shape (batch, heads, keys, value size).
        scale: Factor of the scores.
        mask: Who sees what; ``None`` if all see all.

    Returns:
        The result, shape (batch, heads, queries, value size), and the log-sum-exp in
        float32, shape (batch, heads, queries). Where a query sees no key: 0 and -inf.
    """
    bias = None if mask is None else mask.bias
    if query.device.type == "cpu" and query.shape[-1] == value.shape[-1]:
        out, lse = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(
            query, key, value, 0.0, False, attn_mask=bias, scale=scale
        )
    else:
        scores = torch.matmul(query, key.transpose(-1, -2)).float() * scale
        if bias is not None:
            scores = scores + bias
        lse = torch.logsumexp(scores, -1)
        weights = torch.exp(scores - lse.unsqueeze(-1)).to(value.dtype)
        out = torch.matmul(weights, value)
    if mask is not None and mask.blind is not None:
        blind = mask.blind.expand(lse.shape)
        out = out.masked_fill(blind.unsqueeze(-1), 0.0)
        lse = lse.masked_fill(blind, -math.inf)
    return out, lse
