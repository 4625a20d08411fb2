"""New tokens of many dialogues in one row: every token attends once, and sees what it should."""

from __future__ import annotations

import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection.local.wave.attention import BatchLayout, Group, Piece

CPU = torch.device("cpu")

pieces_by_slot = st.dictionaries(
    st.integers(0, 20),
    st.tuples(st.integers(0, 3000), st.one_of(st.just(1), st.integers(1, 80))),
    min_size=1,
    max_size=7,
).map(lambda found: [Piece(slot, *rest) for slot, rest in sorted(found.items())])
pieces_in_any_order = pieces_by_slot.flatmap(st.permutations)


def read_group(group: Group, pieces: list[Piece]) -> list[tuple[Piece, list[int]]]:
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
@given(pieces=pieces_in_any_order, narrow=st.sampled_from([0, 1, 8]))
def test_every_token_asks_once_and_sees_itself_and_what_came_before(
    pieces: list[Piece], narrow: int
) -> None:
    made = BatchLayout(pieces, CPU, narrow)
    short = sum(piece.tokens <= narrow for piece in pieces)
    assert len(made.groups) == len(pieces) - max(short - 1, 0)
    assert made.slot.tolist() == [p.slot for p in pieces for _ in range(p.tokens)]
    assert made.place.tolist() == [p.start + i for p in pieces for i in range(p.tokens)]
    assert made.furthest == max(p.end for p in pieces) - 1
    asked = sorted(token for group in made.groups for token in group.tokens.tolist())
    assert asked == list(range(len(made.slot)))
    for group in made.groups:
        for piece, seen in read_group(group, pieces):
            assert seen == list(range(piece.start + 1, piece.end + 1))
        assert group.longest == int(group.seen_until.max())
        assert group.even == (len(set(group.seen_until.flatten().tolist())) == 1)
        assert {int(made.slot[t]) for t in group.tokens} <= set(
            range(group.first, group.first + len(group.asked))
        )
