"""Dialogues with few new tokens each are grouped at the least cost: all partitions are tried."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection.engines.pack import (
    CALL,
    PORTION,
    QUERIES,
    Group,
    Piece,
    cost,
    neighbours,
    pack,
)

CPU = torch.device("cpu")

pieces_by_slot = st.dictionaries(
    st.integers(0, 20),
    st.tuples(st.integers(0, 3000), st.one_of(st.just(1), st.integers(1, 80))),
    min_size=1,
    max_size=7,
).map(lambda found: [Piece(slot, *rest) for slot, rest in sorted(found.items())])
pieces_in_any_order = pieces_by_slot.flatmap(st.permutations)


def price(group: Sequence[Piece]) -> float:
    """Cost of one call for these pieces."""
    slots = group[-1].slot - group[0].slot + 1
    return cost(slots, max(p.end for p in group), max(p.tokens for p in group))


def partitions(members: list[Piece]) -> list[list[list[Piece]]]:
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


@settings(deadline=None, max_examples=150)
@given(members=pieces_by_slot)
def test_no_other_grouping_costs_less(members: list[Piece]) -> None:
    groups = neighbours(members)
    assert [piece for group in groups for piece in group] == members
    least = min(sum(map(price, other)) for other in partitions(members))
    assert sum(map(price, groups)) == pytest.approx(least, rel=1e-12)


def test_a_call_costs_the_slots_it_reads_by_the_widest_and_the_longest() -> None:
    # Slots 2 to 5, of which two ask: four slots as far as 110, for 4 queries each.
    assert price([Piece(2, 9, 1), Piece(5, 106, 4)]) == CALL + 4 * 110 * (1 + 4 / QUERIES)


def told(group: Group, pieces: list[Piece]) -> list[tuple[Piece, list[int]]]:
    """Pieces of a group, and what their tokens see, read from its tensors alone."""
    columns = group.asked.shape[1]
    flat = group.filled.tolist() if group.filled is not None else range(group.asked.numel())
    found: dict[int, list[tuple[int, int]]] = {}
    for place, token in zip(flat, group.tokens.tolist(), strict=True):
        row, column = divmod(place, columns)
        assert group.asked[row, column] == token
        found.setdefault(group.first + row, []).append((token, int(group.seen_until[row, column])))
    by_slot = {piece.slot: piece for piece in pieces}
    return [(by_slot[slot], [seen for _, seen in sorted(rows)]) for slot, rows in found.items()]


@settings(deadline=None, max_examples=150)
@given(pieces=pieces_in_any_order)
def test_every_token_asks_once_and_sees_itself_and_what_came_before(pieces: list[Piece]) -> None:
    made = pack(pieces, CPU)
    assert made.slot.tolist() == [p.slot for p in pieces for _ in range(p.tokens)]
    assert made.place.tolist() == [p.start + i for p in pieces for i in range(p.tokens)]
    assert made.furthest == max(p.end for p in pieces) - 1
    asked = sorted(token for group in made.groups for token in group.tokens.tolist())
    assert asked == list(range(len(made.slot)))
    for group in made.groups:
        for piece, seen in told(group, pieces):
            assert seen == list(range(piece.start + 1, piece.end + 1))
        assert group.longest == int(group.seen_until.max())
        assert group.even == (len(set(group.seen_until.flatten().tolist())) == 1)
        assert {int(made.slot[t]) for t in group.tokens} <= set(
            range(group.first, group.first + len(group.asked))
        )


@settings(deadline=None, max_examples=150)
@given(pieces=pieces_in_any_order)
def test_portions_for_the_compiled_kernel_are_all_tokens_once(pieces: list[Piece]) -> None:
    made = pack(pieces, CPU)
    found = {
        first + i: (slot, start + i)
        for slot, start, tokens, first in made.work.tolist()
        for i in range(tokens)
    }
    assert sum(tokens for _, _, tokens, _ in made.work.tolist()) == len(found)
    everything = zip(made.slot.tolist(), made.place.tolist(), strict=True)
    assert found == dict(enumerate(everything))
    assert max(tokens for _, _, tokens, _ in made.work.tolist()) <= PORTION
