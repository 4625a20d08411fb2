"""Dialogues with one new token each are grouped at the least cost: all partitions are tried."""

from __future__ import annotations

from itertools import product

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection.engines import pack as module
from cradle_lib.detection.engines.pack import Pack, pack

CPU = torch.device("cpu")


def cost(groups: list[list[tuple[int, int]]]) -> int:
    """Keys read, and what the calls cost beside it."""
    return sum(
        module.CALL + (g[-1][0] - g[0][0] + 1) * max(length for _, length in g) for g in groups
    )


def partitions(members: list[tuple[int, int]]) -> list[list[list[tuple[int, int]]]]:
    found = []
    for cuts in product((False, True), repeat=len(members) - 1):
        groups = [[members[0]]]
        for member, cut in zip(members[1:], cuts, strict=True):
            if cut:
                groups.append([member])
            else:
                groups[-1].append(member)
        found.append(groups)
    return found


def grouped(made: Pack) -> list[list[tuple[int, int]]]:
    """Slots and lengths of each call, in the order of the slots."""
    groups = [[(slot, length)] for slot, _, count, length in made.runs if count == 1]
    for group in made.singles:
        lengths = group.seen_until.tolist()
        groups.append([(group.first + i, lengths[i]) for i in sorted(group.slots.tolist())])
    return sorted(groups)


@settings(deadline=None, max_examples=150)
@given(
    lengths=st.dictionaries(st.integers(0, 20), st.integers(1, 3000), min_size=1, max_size=7),
    order=st.randoms(use_true_random=False),
)
def test_no_other_grouping_costs_less(lengths: dict[int, int], order: object) -> None:
    members = sorted(lengths.items())
    pieces = [(slot, length - 1, 1) for slot, length in members]
    order.shuffle(pieces)  # type: ignore[attr-defined]
    made = pack(pieces, CPU)
    groups = grouped(made)
    assert [member for group in groups for member in group] == members
    assert cost(groups) == min(cost(other) for other in partitions(members))
    # Each call takes the tokens of its own slots.
    for group in made.singles:
        for token, place in zip(group.tokens.tolist(), group.slots.tolist(), strict=True):
            assert pieces[token][0] == group.first + place
        assert group.longest == int(group.seen_until.max())


def test_a_longer_piece_is_a_run_and_keeps_its_place() -> None:
    made = pack([(2, 5, 3), (0, 9, 1), (1, 7, 1)], CPU)
    assert made.runs == ((2, 0, 3, 8),)
    assert made.slot.tolist() == [2, 2, 2, 0, 1]
    assert made.place.tolist() == [5, 6, 7, 9, 7]
    assert made.furthest == 9
    assert grouped(made) == [[(0, 10), (1, 8)]]
