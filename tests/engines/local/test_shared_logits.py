"""Shared attention gives the logits of the model's own attention.

The oracle is the same model in one plain forward pass over the whole prompt: no cache, no packing,
Transformers' own masks.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from cradle_engines.local.wave import attention
from cradle_engines.local.wave.attention import BatchLayout, KeyValueStore, Piece, sharing

from .tiny_models import EXACT

SLOTS = 4
CPU = torch.device("cpu")


def tokens(chance: random.Random, count: int) -> list[int]:
    return [chance.randrange(400) for _ in range(count)]


def plain(lm: Any, ids: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return lm(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def forward(
    lm: Any, store: KeyValueStore, pieces: list[Piece], new: list[list[int]], few: int = 0
) -> torch.Tensor:
    layout = BatchLayout(pieces, CPU, few)
    store.begin(layout)
    with torch.inference_mode():
        return lm(
            input_ids=torch.tensor([[token for ids in new for token in ids]]),
            position_ids=(layout.position + store.prefix_length).unsqueeze(0),
            use_cache=False,
        ).logits[0]


def assert_same(found: torch.Tensor, expected: torch.Tensor) -> None:
    scale = float(expected.abs().max())
    assert float((found - expected).abs().max()) < 1e-4 * scale
    assert scale > 1


# On a GPU, dialogues with up to eight new tokens attend in one call, without PyTorch's operator for
# the CPU.
@pytest.mark.parametrize(
    ("family", "few", "flash"),
    [
        *((family, 0, attention.FLASH) for family in EXACT),
        *((family, few, None) for family in ("llama", "gpt-oss") for few in (0, 8)),
    ],
)
def test_shared_attention_gives_the_logits_of_a_plain_forward_pass(
    family: str,
    few: int,
    flash: object,
    families: dict[str, Path],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(attention, "FLASH", flash)
    how = "eager" if family == "gpt-oss" else "sdpa"
    lm, oracle = (
        AutoModelForCausalLM.from_pretrained(families[family], attn_implementation=how).eval()
        for _ in range(2)
    )
    # Slots grow several times.
    monkeypatch.setattr(attention, "_STEP", 4)
    for prefix_length in (0, 45):
        chance = random.Random(prefix_length)
        prefix = tokens(chance, prefix_length)
        store = KeyValueStore(SLOTS)

        with sharing(lm, store):
            parts = [prefix[start : start + 20] for start in range(0, prefix_length, 20)]
            seen = [
                forward(lm, store, [Piece(0, 20 * i, len(part))], [part])
                for i, part in enumerate(parts)
            ]
            if prefix:
                assert_same(torch.cat(seen), plain(oracle, prefix))
            store.freeze_prefix(prefix_length, lm)
            cached: list[list[int]] = [[] for _ in range(SLOTS)]
            for _ in range(12):
                pieces, new = [], []
                # Some slots continue, with one token or several; some are cropped first.
                for slot in chance.sample(range(SLOTS), chance.randint(1, SLOTS)):
                    length = len(cached[slot])
                    back = chance.randint(1, length) if length and chance.random() < 0.3 else 0
                    count = 1 if chance.random() < 0.5 else chance.randint(2, 13)
                    pieces.append(Piece(slot, length - back, count))
                    new.append(tokens(chance, count))
                    cached[slot] = cached[slot][: length - back] + new[-1]
                logits = forward(lm, store, pieces, new, few)
                row = 0
                for slot, _, count in pieces:
                    expected = plain(oracle, prefix + cached[slot])[-count:]
                    assert_same(logits[row : row + count], expected)
                    row += count
        # Much longer than the sliding windows of Gemma 3 and gpt-oss.
        assert max(map(len, cached)) + prefix_length > 2 * 8
    ids = tokens(random.Random(2), 30)
    assert torch.equal(plain(lm, ids), plain(oracle, ids)), "the model's own attention is restored"
