"""Shared attention gives the logits of the model's own attention, token by token.

The oracle is the same model, loaded again, in one plain forward pass over everything that a
dialogue has said so far: no cache, no packing, Transformers' own masks.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM

from cradle_lib.detection.local.wave.attention import BatchLayout, KeyValueStore, Piece, sharing

from .tiny_models import FAMILIES, make_weights

SERVED = [name for name in FAMILIES if name != "gemma2"]
SLOTS = 4
VOCABULARY = 400
WINDOW = 8


@pytest.fixture(scope="module", params=SERVED)
def models(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The same weights twice: one model to be shared, one left as it is."""
    folder = make_weights(tmp_path_factory.mktemp("weights"), family=request.param)
    return [load(folder, how) for how in ("sdpa" if request.param != "gpt-oss" else "eager",) * 2]


@pytest.fixture(params=[0, 4], ids=["alone", "grouped"])
def narrow(request: pytest.FixtureRequest) -> int:
    """Every piece attends in a call of its own, as on a processor; or short ones share a call."""
    return int(request.param)


def load(folder: Path, how: str) -> Any:
    lm = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation=how)
    return lm.eval()


class Shared:
    """A model under shared attention, with nothing of the engine around it."""

    def __init__(
        self, lm: Any, store: KeyValueStore, prefix: list[int], piece: int, narrow: int = 0
    ) -> None:
        self.lm, self.narrow, self.store = lm, narrow, store
        self.cached: list[list[int]] = [[] for _ in range(SLOTS)]
        self.seen = [
            self.forward(
                [Piece(0, start, len(prefix[start : start + piece]))],
                [prefix[start : start + piece]],
            )
            for start in range(0, len(prefix), piece)
        ]
        self.store.freeze_prefix(len(prefix), lm)
        self.cached = [[] for _ in range(SLOTS)]

    def forward(self, pieces: list[Piece], new: list[list[int]]) -> torch.Tensor:
        """Computes new tokens of some slots in one pass; what lay after their start is gone."""
        for (slot, start, _), ids in zip(pieces, new, strict=True):
            self.cached[slot] = self.cached[slot][:start] + ids
        self.store.reserve(max(start + count for _, start, count in pieces))
        self.store.layout = BatchLayout(pieces, torch.device("cpu"), self.narrow)
        with torch.inference_mode():
            output = self.lm(
                input_ids=torch.tensor([[token for ids in new for token in ids]]),
                position_ids=(self.store.layout.place + self.store.prefix_length).unsqueeze(0),
                use_cache=False,
            )
        return output.logits[0]


def plain(lm: Any, ids: list[int]) -> torch.Tensor:
    with torch.inference_mode():
        return lm(input_ids=torch.tensor([ids]), use_cache=False).logits[0]


def assert_same(found: torch.Tensor, expected: torch.Tensor, what: object) -> None:
    scale = float(expected.abs().max())
    worst = float((found - expected).abs().max())
    assert worst < 1e-4 * scale, f"{what}: {worst:.2e} of {scale:.2f}"
    assert scale > 1


def tokens(chance: random.Random, count: int) -> list[int]:
    return [chance.randrange(VOCABULARY) for _ in range(count)]


@pytest.mark.parametrize("prefix_length", [0, 3, 45])
def test_logits_are_those_of_a_plain_forward_pass_over_the_whole_prompt(
    models: Any, narrow: int, prefix_length: int
) -> None:
    lm, twin = models
    chance = random.Random(f"{prefix_length}")
    prefix = tokens(chance, prefix_length)
    store, kinds = KeyValueStore(SLOTS, step=4), set[str]()
    with sharing(lm, store):
        shared = Shared(lm, store, prefix, 20, narrow)
        if prefix:
            assert_same(torch.cat(shared.seen), plain(twin, prefix), "the prefix itself")
        for step in range(24):
            pieces: list[Piece] = []
            new: list[list[int]] = []
            for slot in chance.sample(range(SLOTS), chance.randint(1, SLOTS)):
                length = len(shared.cached[slot])
                back = chance.randint(1, length) if length and chance.random() < 0.3 else 0
                count = 1 if chance.random() < 0.5 else chance.randint(2, 13)
                pieces.append(Piece(slot, length - back, count))
                new.append(tokens(chance, count))
                kinds.add("rolled back" if back else "went on")
            sizes = {count == 1 for *_, count in pieces}
            kinds.add("mixed" if len(sizes) == 2 else "single" if sizes == {True} else "several")
            if len(pieces) > 1:
                kinds.add("lanes")
            logits = shared.forward(pieces, new)
            row = 0
            for slot, start, count in pieces:
                expected = plain(twin, prefix + shared.cached[slot])
                assert len(shared.cached[slot]) == start + count
                assert_same(logits[row : row + count], expected[-count:], (step, slot))
                row += count
            assert row == len(logits)
    assert kinds == {"rolled back", "went on", "mixed", "single", "several", "lanes"}
    # Far more than the sliding windows of Gemma 3 and gpt-oss reach back.
    assert max(map(len, shared.cached)) + prefix_length > 2 * WINDOW


def test_a_slot_that_moved_goes_on_as_if_nothing_had_happened(models: Any, narrow: int) -> None:
    lm, twin = models
    chance = random.Random(4)
    prefix = tokens(chance, 11)
    store = KeyValueStore(SLOTS, step=4)
    with sharing(lm, store):
        shared = Shared(lm, store, prefix, 20, narrow)
        shared.forward([Piece(slot, 0, 12) for slot in range(SLOTS)], [tokens(chance, 12)] * SLOTS)
        shared.forward([Piece(3, 12, 5)], [tokens(chance, 5)])
        with torch.inference_mode():
            shared.store.move(3, 1, 17)
        shared.cached[1] = shared.cached.pop()
        logits = shared.forward(
            [Piece(1, 17, 1), Piece(0, 12, 3)], [tokens(chance, 1), tokens(chance, 3)]
        )
        assert_same(logits[0], plain(twin, prefix + shared.cached[1])[-1], "moved")
        assert_same(logits[1:], plain(twin, prefix + shared.cached[0])[-3:], "not moved")


def test_a_model_gets_its_own_attention_back(models: Any) -> None:
    lm, twin = models
    ids = tokens(random.Random(2), 30)
    before = plain(lm, ids)
    store = KeyValueStore(SLOTS, step=4)
    with sharing(lm, store):
        Shared(lm, store, ids[:10], piece=20)
    assert torch.equal(plain(lm, ids), before)
    assert_same(before, plain(twin, ids), "the two models")
