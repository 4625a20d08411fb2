"""The layout of one forward pass: the new tokens of many dialogues in one row, without padding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import Final, NamedTuple

import torch
from torch import Tensor

# Dialogues with at most so many new tokens share one attention call, padded to the longest and the
# widest of them. On a GPU a call costs more than the padding; on a processor it costs less.
NARROW: Final = {"cpu": 0, "cuda": 8}


class Piece(NamedTuple):
    """New tokens of one dialogue, which follow each other in its slot.

    Attributes:
        slot: The slot.
        start: Place of the first new token in it.
        tokens: How many there are.
    """

    slot: int
    start: int
    tokens: int

    @property
    def end(self) -> int:
        """How many tokens the slot holds afterwards."""
        return self.start + self.tokens


class Group:
    """Slots that attend in one call: a row of queries each, as long as the widest piece.

    Slots between the first and the last that have no piece in the group are rows too; like the
    rest of a shorter row they hold some token whose result is not read.

    Args:
        members: Pieces, by slot, each with the index of its first token in the layout.
        device: Where the tensors live.

    Attributes:
        first: The first slot.
        asked: Index in the layout of the token at each slot and column. Shape (slots, columns).
        seen_until: How many tokens of its slot each sees, itself included; 1 where the result is
            not read. Shape (slots, columns).
        filled: Which results are read, counted row by row; ``None`` if all are.
        tokens: Indices of their tokens in the layout. Shape (new tokens,).
        longest: The largest of ``seen_until``.
        even: Whether ``seen_until`` is the same everywhere, so that no mask is needed.
    """

    def __init__(self, members: Sequence[tuple[Piece, int]], device: torch.device) -> None:
        self.first, columns = members[0][0].slot, max(piece.tokens for piece, _ in members)
        size = (members[-1][0].slot - self.first + 1) * columns
        asked, seen_until = [members[0][1]] * size, [1] * size
        filled: list[int] = []
        for piece, index in members:
            row = (piece.slot - self.first) * columns
            here = slice(row, row + piece.tokens)
            asked[here] = range(index, index + piece.tokens)
            seen_until[here] = range(piece.start + 1, piece.end + 1)
            filled += range(row, row + piece.tokens)
        self.asked = _vector(asked, device).view(-1, columns)
        self.seen_until = _vector(seen_until, device).view(-1, columns)
        self.filled = None if len(filled) == size else _vector(filled, device)
        self.tokens = _vector([asked[i] for i in filled], device)
        self.longest = max(seen_until)
        self.even = min(seen_until) == self.longest


class BatchLayout:
    """The new tokens of one forward pass, dialogue after dialogue.

    Args:
        pieces: New tokens of each dialogue, in this order; one piece at least, no slot twice.
        device: Where the tensors live.
        narrow: Pieces of at most so many tokens share a call; by default :data:`NARROW`.

    Attributes:
        slot: Slot of each token. Shape (tokens,).
        place: Place of each token in its slot, from 0. Shape (tokens,).
        furthest: The largest place.
        groups: The calls in which dialogues attend to their own tokens; each piece is in one.
    """

    def __init__(
        self, pieces: Sequence[Piece], device: torch.device, narrow: int | None = None
    ) -> None:
        places = [place for piece in pieces for place in range(piece.start, piece.end)]
        self.slot = _vector([piece.slot for piece in pieces for _ in range(piece.tokens)], device)
        self.place, self.furthest = _vector(places, device), max(places)
        if narrow is None:
            narrow = NARROW.get(device.type, NARROW["cuda"])
        starts = accumulate((piece.tokens for piece in pieces), initial=0)
        indexed = list(zip(pieces, starts, strict=False))
        together = sorted(member for member in indexed if member[0].tokens <= narrow)
        calls = [together] if together else []
        calls += [[member] for member in indexed if member[0].tokens > narrow]
        self.groups = [Group(call, device) for call in calls]
        self._biases: dict[tuple[object, ...], Tensor] = {}

    def bias(
        self,
        call: object,
        ends: Tensor,
        longest: int,
        window: int | None,
        sharers: int,
        dtype: torch.dtype,
    ) -> Tensor:
        """What a call adds to its scores: 0 where a token sees a place, else minus infinity.

        Tokens see the places before their ends, shape (slots, columns), or only the last of them
        in a window. Query heads that share a key head are folded into the rows: what is given,
        made once for all layers of one kind, has shape (slots, 1, sharers * columns, longest).
        """
        key = call, window, sharers
        if key not in self._biases:
            places, ends = torch.arange(longest, device=ends.device), ends.unsqueeze(-1)
            seen = places < ends
            if window is not None:
                seen &= places >= ends - window
            unseen = ~seen.repeat(1, sharers, 1).unsqueeze(1)
            zeros = torch.zeros(unseen.shape, dtype=dtype, device=ends.device)
            self._biases[key] = zeros.masked_fill_(unseen, -math.inf)
        return self._biases[key]


def _vector(values: list[int], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.long, device=device)
