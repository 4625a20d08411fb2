"""Compares the wave engine with the model's own forward pass when a model is loaded.

A fixed set of short and long texts behind a shared prefix is computed as the engine does it: the
prefix once, then all texts in one pass, and the last quarter of each again in another one. The
logits must be those of the model's own forward pass of each text alone. In the last pass, a further
token is at the end of the model's context, so that a computation that depends on the longest text
of a pass differs. The model's masks and its configuration are checked for longer texts.

This computes 400 tokens in seven passes. For the embedded model with 135 million parameters, 2.7
seconds of one core (AMD EPYC, float32) were measured. A model with 32 billion parameters needs
2 * 32e9 * 400 = 2.6e13 operations, and reads its 64 GB of weights in bfloat16 seven times: about a
fifth of a second on an H100 (3.35 TB/s).
"""

from __future__ import annotations

from itertools import chain
from typing import Final

import torch

from cradle_engines.local.devices import is_out_of_memory
from cradle_engines.local.local_engine import Local
from cradle_engines.local.own_forward import (
    is_same,
    length_dependence,
    own_logits,
    sample_ids,
)
from cradle_engines.local.wave.attention import (
    BatchLayout,
    KeyValueStore,
    Piece,
    UnsupportedAttentionError,
    forward,
    sharing,
)
from cradle_lib.detection.models.engine import short_reason

# Tokens of the prefix and of the texts after it.
_PREFIX: Final = 24
_TEXTS: Final = (2, 7, 24, 90)


def prove(local: Local) -> dict[torch.device, int]:
    """Checks that the engine computes what the model's own forward pass computes.

    Returns:
        The size in bytes of the keys and values of one token on each device.

    Raises:
        UnsupportedAttentionError: If it does not; the message says why.
        RuntimeError: If memory runs out.
    """
    if (field := length_dependence(local.lm.config)) is not None:
        raise UnsupportedAttentionError(
            f"`{field}` makes a text depend on the longest one in a pass of the wave engine"
        )
    lengths = [n for n in _TEXTS if local.context is None or _PREFIX + n <= local.context]
    ids = iter(sample_ids(local.lm, local.tokenizer, _PREFIX + sum(lengths)))
    prefix, *texts = ([next(ids) for _ in range(n)] for n in (_PREFIX, *lengths))
    kept = [len(text) * 3 // 4 for text in texts]
    store = KeyValueStore(len(texts) + 1)
    try:
        expected = [
            own_logits(local.lm, prefix + text)[_PREFIX + n :]
            for text, n in zip(texts, kept, strict=True)
        ]
        found = _shared_logits(local, store, prefix, texts, kept)
    except UnsupportedAttentionError as error:
        raise UnsupportedAttentionError(f"the wave engine can't compute {error}") from None
    except Exception as error:  # An architecture may raise any exception.
        if is_out_of_memory(error):
            raise
        reason = short_reason(f"{type(error).__name__}: {error}")
        raise UnsupportedAttentionError(f"the wave engine raises {reason}") from error
    parts = torch.split(found, [len(each) for each in expected])
    for one, other in zip(parts, expected, strict=True):
        # Numbers that overflow fail each question later.
        if other.isfinite().all() and not is_same(local.lm, one, other):
            raise UnsupportedAttentionError(
                "the wave engine does not compute the same as the model's own forward pass"
            )
    sizes: dict[torch.device, int] = {}
    for tensor in chain(*store.prefix.values()):
        size = tensor.numel() * tensor.itemsize // _PREFIX
        sizes[tensor.device] = sizes.get(tensor.device, 0) + size
    return sizes


def _shared_logits(
    local: Local,
    store: KeyValueStore,
    prefix: list[int],
    texts: list[list[int]],
    kept: list[int],
) -> torch.Tensor:
    """Computes the logits of each text after its kept tokens. Shape (tokens, vocabulary)."""
    lm, device = local.lm, local.device
    slots = range(len(texts))
    # At first, the end of each text has other tokens, like the end of an earlier prompt.
    begun = [texts[i][: kept[i]] + prefix[: len(texts[i]) - kept[i]] for i in slots]
    ends = [texts[i][kept[i] :] for i in slots]
    whole = [Piece(i, 0, len(begun[i])) for i in slots]
    last = [*(Piece(i, kept[i], len(ends[i])) for i in slots), Piece(len(texts), 0, 1)]
    new = [*chain(*ends), prefix[0]]
    with torch.inference_mode():
        with sharing(lm, store, checked=True):
            forward(lm, store, BatchLayout([Piece(0, 0, len(prefix))], device), prefix, [])
        store.freeze_prefix(len(prefix), lm)
        with sharing(lm, store):
            forward(lm, store, BatchLayout(whole, device), list(chain(*begun)), [])
            layout = BatchLayout(last, device)
            position = layout.position + len(prefix)
            if local.context is not None:
                position[-1] = local.context - 1
            return forward(lm, store, layout, new, range(len(new) - 1), position)
