"""A model's own forward pass on fixed tokens, with which faster computations are compared.

The tokens are the same for each start. They are drawn from the vocabulary, so that no two are
likely to be equal, and contain no special tokens, which stand for images in some models.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any, Final

import torch
from torch import Tensor

from cradle_engines.local.devices import input_device

# The largest difference of logits that rounding explains, relative to their standard deviation.
# For SmolLM2-135M, 0.000005 was measured in float32, 0.01 in float16 and 0.07 in bfloat16. Rounding
# can also change the choice of experts.
_TOLERANCES: Final = {torch.float32: 1e-3, torch.float16: 0.1}
_OTHER_TOLERANCE: Final = 0.25


def sample_ids(lm: Any, tokenizer: Any, count: int) -> list[int]:
    """Draws ordinary tokens of a model's vocabulary, the same for each call."""
    rows = len(lm.get_input_embeddings().weight)
    special = tokenizer.added_tokens_decoder.keys() | set(tokenizer.all_special_ids)
    ordinary = sorted(id for id in set(tokenizer.get_vocab().values()) - special if id < rows)
    return random.Random(0).choices(ordinary, k=count)


def length_dependence(config: Any) -> str | None:
    """Names a field of a configuration that makes tokens depend on the length of the whole pass.

    These are rotary embeddings that change their frequencies beyond a length, and scales of
    attention that count tokens from the start of the pass.
    """
    text = config.get_text_config()
    rope = getattr(text, "rope_parameters", None) or {}
    # Some models have separate parameters for each type of layers.
    for part in (rope, *rope.values()):
        kind = str(part.get("rope_type")) if isinstance(part, dict) else ""
        if "dynamic" in kind or kind == "longrope":
            return f"rope_type: {kind}"
    return "attn_temperature_tuning" if getattr(text, "attn_temperature_tuning", None) else None


def own_logits(lm: Any, ids: Sequence[int]) -> Tensor:
    """Computes the logits after each token with one plain forward pass, without a cache.

    Returns:
        In float32, shape (tokens, vocabulary).
    """
    device = input_device(lm)
    with torch.inference_mode():
        output = lm(input_ids=torch.tensor([list(ids)], device=device), use_cache=False)
    logits: Tensor = output.logits[0].float()
    return logits


def is_same(lm: Any, found: Tensor, expected: Tensor) -> bool:
    """Whether numbers differ by no more than the rounding of the model's number format.

    Compared is the root mean square of the difference, relative to the standard deviation of the
    expected numbers. Numbers that are not finite differ.
    """
    difference = (found - expected).square().mean().sqrt() / expected.std()
    return bool(difference <= tolerance(lm))


def tolerance(lm: Any) -> float:
    """Largest difference that rounding explains, relative to the logits' standard deviation."""
    return _TOLERANCES.get(lm.dtype, _OTHER_TOLERANCE)
