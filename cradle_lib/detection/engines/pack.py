"""The new tokens of many dialogues, packed into one forward pass without padding."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate, pairwise
from typing import Final, NamedTuple

import torch
from torch import Tensor

from cradle_lib.detection.engines.attend import Mask

# What a call of an attention kernel costs beside its work, in keys that it reads meanwhile.
CALL: Final = 800
# How many queries of a slot cost as much as reading its keys and values.
QUERIES: Final = 12
# No call takes more slots: the search for the best grouping looks no further.
SPAN: Final = 64
# New tokens of a dialogue that one thread takes at once, so that all have something to do.
PORTION: Final = 32


class Piece(NamedTuple):
    """What a dialogue needs next: tokens that follow each other in its slot.

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


@dataclass(frozen=True)
class Group:
    """Neighbouring slots that are attended to in one call, padded to the widest of them.

    Attributes:
        first: The first slot.
        asked: Index of the new token at each slot and column; of any token where there is
            none. Shape (slots, columns).
        seen_until: How many of its slot's tokens each sees, itself included; 1 where there
            is none. Shape (slots, columns).
        filled: Which of them, counted row by row, are new tokens; ``None`` if all are.
        tokens: Their indices. Shape (new tokens,).
        longest: The most tokens that one of them sees.
        even: Whether all see as many.
    """

    first: int
    asked: Tensor
    seen_until: Tensor
    filled: Tensor | None
    tokens: Tensor
    longest: int
    even: bool


@dataclass(frozen=True)
class Pack:
    """The new tokens of one forward pass, dialogue after dialogue.

    Attributes:
        slot: Slot of each token. Shape (tokens,).
        place: Place of each token in its slot, from 0. Shape (tokens,).
        furthest: The greatest place of all tokens.
        pieces: What each dialogue needs, in the order of the tokens.
        masks: Masks that were made for this pass: all layers of a kind use the same.
    """

    slot: Tensor
    place: Tensor
    furthest: int
    pieces: tuple[Piece, ...]
    masks: dict[tuple[object, ...], Mask] = field(default_factory=dict)

    @cached_property
    def groups(self) -> tuple[Group, ...]:
        """The calls of PyTorch's kernels in which dialogues attend to what is their own."""
        firsts = dict(zip((p.slot for p in self.pieces), self._firsts(), strict=True))
        device = self.slot.device
        return tuple(_group(m, firsts, device) for m in neighbours(sorted(self.pieces)))

    @cached_property
    def work(self) -> Tensor:
        """The same for the compiled kernel: slot, start, tokens and index of the first token.

        Shape (portions, 4), the most expensive first.
        """
        portions = [
            (slot, start + done, min(PORTION, tokens - done), first + done)
            for (slot, start, tokens), first in zip(self.pieces, self._firsts(), strict=True)
            for done in range(0, tokens, PORTION)
        ]
        # A portion costs the reading of its keys, and their product with each query.
        portions.sort(key=lambda p: -(p[1] + p[2]) * (QUERIES + p[2]))
        return torch.tensor(portions, dtype=torch.long, device=self.slot.device)

    def _firsts(self) -> list[int]:
        """Index of each piece's first token."""
        return [0, *accumulate(piece.tokens for piece in self.pieces)][:-1]

    def loses(self, length: int, window: int | None) -> bool:
        """Tells whether some token does not see all of a prefix.

        Args:
            length: Tokens of the prefix.
            window: How many tokens one sees at most, itself included; ``None`` for all.
        """
        return window is not None and length + self.furthest >= window

    def mask(self, key: tuple[object, ...], dtype: torch.dtype, see: Callable[[], Tensor]) -> Mask:
        """Makes a mask once.

        Args:
            key: All that the mask depends on within one forward pass.
            dtype: Number format of the queries.
            see: Tells which keys are seen; called if the mask is new.
        """
        if key not in self.masks:
            self.masks[key] = Mask.of(see(), dtype)
        return self.masks[key]


def pack(pieces: Sequence[Piece], device: torch.device) -> Pack:
    """Lays out one forward pass.

    Args:
        pieces: What each dialogue needs; one at least, no slot twice.
        device: Where the tensors live.

    Returns:
        The pack; its tokens are in the order of the pieces.
    """
    slots = [piece.slot for piece in pieces for _ in range(piece.tokens)]
    places = [place for piece in pieces for place in range(piece.start, piece.end)]
    return Pack(_vector(slots, device), _vector(places, device), max(places), tuple(pieces))


def cost(slots: int, longest: int, widest: int) -> float:
    """What one call for neighbouring slots costs, in keys that it reads meanwhile.

    Args:
        slots: Slots from its first to its last: all of them are read.
        longest: As far as the longest piece ends.
        widest: Queries of each, as many as the widest piece has.
    """
    return CALL + slots * longest * (1 + widest / QUERIES)


def neighbours(pieces: Sequence[Piece]) -> list[Sequence[Piece]]:
    """Groups pieces so that their calls cost least together.

    Args:
        pieces: The pieces by slot.

    Returns:
        The groups, by slot.
    """
    # Least cost of the first so many, and where the last group of them begins.
    best: list[tuple[float, int]] = [(0.0, 0)]
    for end, (last, _, _) in enumerate(pieces, start=1):
        longest = widest = 0
        found = []
        for begin in range(end - 1, max(end - SPAN, 0) - 1, -1):
            piece = pieces[begin]
            longest, widest = max(longest, piece.end), max(widest, piece.tokens)
            call = cost(last - piece.slot + 1, longest, widest)
            found.append((best[begin][0] + call, begin))
        best.append(min(found))
    cuts = [len(pieces)]
    while cuts[-1]:
        cuts.append(best[cuts[-1]][1])
    return [pieces[begin:end] for begin, end in pairwise(reversed(cuts))]


def _group(members: Sequence[Piece], firsts: dict[int, int], device: torch.device) -> Group:
    first, columns = members[0].slot, max(piece.tokens for piece in members)
    size = (members[-1].slot - first + 1) * columns
    asked, seen_until = [firsts[first]] * size, [1] * size
    filled: list[int] = []
    for piece in members:
        row = (piece.slot - first) * columns
        here = slice(row, row + piece.tokens)
        asked[here] = range(firsts[piece.slot], firsts[piece.slot] + piece.tokens)
        seen_until[here] = range(piece.start + 1, piece.end + 1)
        filled += range(row, row + piece.tokens)
    return Group(
        first=first,
        asked=_vector(asked, device).view(-1, columns),
        seen_until=_vector(seen_until, device).view(-1, columns),
        filled=None if len(filled) == size else _vector(filled, device),
        tokens=_vector([asked[i] for i in filled], device),
        longest=max(seen_until),
        even=min(seen_until) == max(seen_until),
    )


def _vector(values: list[int], device: torch.device) -> Tensor:
    return torch.tensor(values, dtype=torch.long, device=device)
