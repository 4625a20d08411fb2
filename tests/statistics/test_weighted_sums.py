from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst
from numpy.typing import NDArray

from cradle_lib.statistics import weighted_sums as resampling
from cradle_lib.statistics.weighted_sums import (
    draw_blocks,
    draw_weights,
    swap_blocks,
    swap_weights,
)

# Sums with these factors need 16, 32 and 64 bits.
scale = st.sampled_from([1, 10**4, 10**12])
rows = npst.arrays(
    np.int64, st.tuples(st.integers(1, 12), st.just(2), st.just(3)), elements=st.integers(-9, 9)
)


def drawn(rows: NDArray[np.generic], draws: int, seed: int) -> NDArray[np.float64]:
    return np.concatenate(list(draw_blocks(rows, draws, seed)))


@settings(deadline=None, max_examples=100)
@given(rows, scale, st.integers(0, 99))
def test_weighted_sums_equal_plain_sums(rows: NDArray[np.int64], scale: int, seed: int) -> None:
    n = len(rows)
    found = drawn(rows * scale, 8, seed)
    block = draw_weights(np.random.default_rng(seed), 8, n)
    for total, taken in zip(found, block, strict=True):
        # Python's integers never overflow.
        picked = [rows[i].astype(object) * scale for i in np.repeat(np.arange(n), taken)]
        assert (total == sum(picked)).all()
    [swaps] = swap_blocks(n, 8, seed)
    assert np.array_equal(swaps, swap_weights(np.random.default_rng(seed), 8, n))


def test_fractions_are_summed_without_rounding() -> None:
    rows = np.random.default_rng(1).integers(0, 9, size=(20, 3))
    assert drawn(rows / 8, 30, 1) == pytest.approx(drawn(rows, 30, 1) / 8, abs=1e-12)
    # Columns of integers and columns of fractions in one array.
    mixed = np.concatenate([rows / 8, rows], axis=1)
    expected = np.tile(drawn(rows, 30, 1), 2) / np.repeat([8, 1], 3)
    assert drawn(mixed, 30, 1) == pytest.approx(expected, abs=1e-12)


def swapped(rows: NDArray[np.int64], number: int, seed: int) -> Iterator[NDArray[np.int64]]:
    return (block @ rows for block in swap_blocks(len(rows), number, seed))


@pytest.mark.parametrize("blocks", [draw_blocks, swapped])
def test_sums_do_not_depend_on_the_number_of_draws_or_the_block_size(
    blocks: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert callable(blocks)
    rows = np.random.default_rng(2).integers(0, 5, size=(41, 7))
    long = np.concatenate(list(blocks(rows, 1000, 2)))
    assert len(long) == 1000
    assert np.array_equal(np.concatenate(list(blocks(rows, 100, 2))), long[:100])
    for max_cached in (1 << 23, 0):
        monkeypatch.setattr(resampling, "_MAX_CACHED", max_cached)
        for block in (1, 41, 333, 4321):
            monkeypatch.setattr(resampling, "_BLOCK", block)
            resampling._cached.cache_clear()
            assert np.array_equal(np.concatenate(list(blocks(rows, 1000, 2))), long)
    resampling._cached.cache_clear()


def test_the_draws_of_a_seed_do_not_change_between_versions() -> None:
    # Reproducing a published interval needs the same draws, which are specified here.
    block = draw_weights(np.random.default_rng(0), 2, 6)
    picks = np.random.default_rng(0).integers(0, 6, size=(2, 6))
    assert block.tolist() == [[int((row == i).sum()) for i in range(6)] for row in picks]
    block = swap_weights(np.random.default_rng(0), 3, 5)
    expected = np.random.default_rng(0).integers(0, 2, size=(3, 5), dtype=np.uint8)
    assert np.array_equal(block, expected)
