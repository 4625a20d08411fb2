"""Attention that also tells its normalizer, so that two partial results can be joined."""

from __future__ import annotations

import math

import torch
from torch import Tensor


def attend(
    query: Tensor, key: Tensor, value: Tensor, scale: float, mask: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Attends, and tells the log-sum-exp of the scores.

    Args:
        query: Shape (batch, heads, queries, size).
        key: Shape (batch, heads, keys, size).
        value: Shape (batch, heads, keys, value size).
        scale: Factor of the scores.
        mask: True where a query sees a key, broadcast to (batch, heads, queries, keys);
            ``None`` if all see all.

    Returns:
        The result, shape (batch, heads, queries, value size), and the log-sum-exp in
        float32, shape (batch, heads, queries). Where a query sees no key: 0 and -inf.
    """
    bias = None
    if mask is not None:
        bias = torch.zeros(mask.shape, dtype=query.dtype, device=query.device)
        bias.masked_fill_(~mask, -math.inf)
    blind = None if mask is None else ~mask.any(-1)
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
    if blind is not None and bool(blind.any()):
        blind = blind.expand(lse.shape)
        out = out.masked_fill(blind.unsqueeze(-1), 0.0)
        lse = lse.masked_fill(blind, -math.inf)
    return out, lse
