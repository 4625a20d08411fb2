"""The compiled kernels against the definition of attention, in float64, one query at a time."""

from __future__ import annotations

import math
import random
import tempfile
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection.engines import compiled as module
from cradle_lib.detection.engines.compiled import Compiled, compiled
from cradle_lib.detection.engines.pack import PORTION, Piece, pack

pytestmark = pytest.mark.usefixtures("any_processor")

CAPACITY = 150
SLOTS = 5


def kernels(size: int) -> Compiled:
    tensor = torch.zeros(1, size)
    found = compiled(tensor, tensor, tensor)
    assert found is not None
    return found


def assert_no_kernels() -> None:
    """Compiles anew, as a process does that begins now."""
    tensor = torch.zeros(1, 16)
    module._for_size.cache_clear()
    try:
        assert compiled(tensor, tensor, tensor) is None
    finally:
        module._for_size.cache_clear()


def by_definition(
    query: torch.Tensor, keys: torch.Tensor, values: torch.Tensor, scale: float
) -> torch.Tensor:
    """One query's result and log-sum-exp, one after the other; then what may be wrong with them.

    A score in float32 is wrong by some ten-millionth of all that it adds up, and so are the
    weights.
    """
    scores = keys.double() @ query.double() * scale
    result = torch.softmax(scores, 0) @ values.double()
    added = keys.double().abs() @ query.double().abs() * scale
    error = 5e-7 * (1 + added.max())
    return torch.cat([result, torch.logsumexp(scores, 0).view(1), error.view(1)])


def assert_close(out: torch.Tensor, lse: torch.Tensor, expected: torch.Tensor) -> None:
    found = torch.cat([out, lse.view(1)]).double()
    torch.testing.assert_close(found, expected[:-1], atol=float(expected[-1]), rtol=2e-6)


shapes = st.fixed_dictionaries(
    {
        "size": st.sampled_from([16, 48, 64, 80, 128]),
        "few": st.integers(1, 3),
        "sharers": st.integers(1, 5),
        "seed": st.integers(0, 2**30),
        # Great scores make one key outweigh all others, and most others vanish.
        "spread": st.sampled_from([0.1, 1.0, 30.0]),
    }
)


def random_query(shape: dict[str, int], tokens: int) -> torch.Tensor:
    """Queries as models leave them: token after token in memory, or head after head."""
    few, sharers, size = shape["few"], shape["sharers"], shape["size"]
    if shape["seed"] % 2:
        return torch.randn(few, sharers, tokens, size)
    return torch.randn(tokens, few * sharers, size).transpose(0, 1).unflatten(0, (few, sharers))


@settings(deadline=None, max_examples=120)
@given(shape=shapes, window=st.sampled_from([None, 1, 7, 40]), prefix=st.booleans())
def test_each_token_sees_its_dialogue_up_to_itself_and_the_prefix(
    shape: dict[str, int], window: int | None, prefix: bool
) -> None:
    torch.manual_seed(shape["seed"])
    chance = random.Random(shape["seed"])
    few, sharers, size = shape["few"], shape["sharers"], shape["size"]
    pieces = []
    for slot in chance.sample(range(SLOTS), chance.randint(1, SLOTS)):
        tokens = chance.choice([1, 2, 5, PORTION, PORTION + 1, 70])
        pieces.append(Piece(slot, chance.randint(0, CAPACITY - tokens), tokens))
    made = pack(pieces, torch.device("cpu"))
    query = random_query(shape, len(made.slot)) * shape["spread"]
    keys, values = torch.randn(2, SLOTS, few, CAPACITY, size).unbind()
    # What nobody has written yet must not be read as anything.
    for piece in pieces:
        keys[piece.slot, :, piece.end :] = math.nan
        values[piece.slot, :, piece.end :] = math.nan
    scale = size**-0.5
    shared_keys, shared_values = torch.randn(2, few, chance.randint(1, 40), size).unbind()
    there = None
    if prefix:
        turned = kernels(size).turn(shared_keys)
        there = kernels(size).prefix(query, turned, shared_values, scale)
    out, lse = kernels(size).own(query, keys, values, made.work, scale, window, there)
    for token, (slot, place) in enumerate(
        zip(made.slot.tolist(), made.place.tolist(), strict=True)
    ):
        seen = slice(max(0, place + 1 - window) if window else 0, place + 1)
        for head in range(few):
            k, v = keys[slot, head, seen], values[slot, head, seen]
            if prefix:
                k, v = torch.cat([shared_keys[head], k]), torch.cat([shared_values[head], v])
            for sharer in range(sharers):
                here = head, sharer, token
                assert_close(out[here], lse[here], by_definition(query[here], k, v, scale))


@settings(deadline=None, max_examples=60)
@given(shape=shapes, length=st.integers(1, 70), tokens=st.integers(1, 40))
def test_each_token_sees_the_whole_prefix(shape: dict[str, int], length: int, tokens: int) -> None:
    torch.manual_seed(shape["seed"])
    query = random_query(shape, tokens) * shape["spread"]
    # A view with gaps, as a slice of a longer cache is.
    keys, values = torch.randn(2, shape["few"], length + 3, shape["size"])[:, :, :length].unbind()
    ours = kernels(shape["size"])
    out, lse = ours.prefix(query, ours.turn(keys), values, 0.2)
    for head in range(shape["few"]):
        for sharer in range(shape["sharers"]):
            for token in range(tokens):
                here = head, sharer, token
                expected = by_definition(query[here], keys[head], values[head], 0.2)
                assert_close(out[here], lse[here], expected)


def test_without_a_folder_for_the_result_there_are_no_kernels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "is not there"))
    assert_no_kernels()


def test_a_number_that_is_none_is_not_hidden() -> None:
    query, keys = torch.ones(1, 1, 3, 16), torch.ones(1, 4, 16)
    query[0, 0, 1, 5] = math.nan
    ours = kernels(16)
    out, _ = ours.prefix(query, ours.turn(keys), keys, 1.0)
    assert out.isnan().all(-1).tolist() == [[[False, True, False]]]


@pytest.mark.parametrize(
    "compiler",
    ["false", "a-compiler-that-is-not-there", "gcc --no-such-option", "gcc -D__clang__", "gcc '"],
)
def test_without_a_compiler_there_are_no_kernels(
    monkeypatch: pytest.MonkeyPatch, compiler: str
) -> None:
    monkeypatch.setenv("CC", compiler)
    assert_no_kernels()


@pytest.mark.parametrize(
    ("query", "value"),
    [
        (torch.zeros(1, 24), torch.zeros(1, 24)),
        (torch.zeros(1, 32), torch.zeros(1, 16)),
        (torch.zeros(1, 16, dtype=torch.bfloat16), torch.zeros(1, 16, dtype=torch.bfloat16)),
        (torch.zeros(1, 16, device="meta"), torch.zeros(1, 16, device="meta")),
    ],
)
def test_what_the_kernels_are_not_made_for_is_left_to_others(
    query: torch.Tensor, value: torch.Tensor
) -> None:
    assert compiled(query, query, value) is None
