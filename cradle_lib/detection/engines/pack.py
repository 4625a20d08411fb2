"""The new tokens of many dialogues, packed into one forward pass without padding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

import torch
from torch import Tensor

from cradle_lib.detection.engines.attend import Mask

# What a call of an attention kernel costs beside its work, in keys that it reads meanwhile.
CALL: Final = 800


@dataclass(frozen=True)
class Singles:
    """Neighbouring slots that are attended to in one call, with one new token each at most.

    Attributes:
        first: The first slot.
        tokens: Indices of the new tokens. Shape (singles,).
        slots: Their slots, counted from the first. Shape (singles,).
        seen_until: For each slot, how many of its tokens the new one sees, itself included; 1
            where it has none. Shape (slots,).
        longest: The greatest of these.
    """

    first: int
    tokens: Tensor
    slots: Tensor
    seen_until: Tensor
    longest: int


@dataclass(frozen=True)
class Pack:
    """The new tokens of one forward pass, dialogue after dialogue.

    Attributes:
        slot: Slot of each token. Shape (tokens,).
        place: Place of each token in its slot, from 0. Shape (tokens,).
        runs: For dialogues that are attended to by themselves: ``(slot, first token, tokens,
            length)``, where length counts the slot's tokens including the new ones.
        singles: Groups of dialogues that have one new token each.
        furthest: The greatest place of all tokens.
        masks: Masks that were made for this pass: all layers of a kind use the same.
    """

    slot: Tensor
    place: Tensor
    runs: tuple[tuple[int, int, int, int], ...]
    singles: tuple[Singles, ...]
    furthest: int
    masks: dict[tuple[object, ...], Mask] = field(default_factory=dict)

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


def pack(pieces: list[tuple[int, int, int]], device: torch.device) -> Pack:
    """Lays out one forward pass.

    Args:
        pieces: ``(slot, place of the first new token, new tokens)`` for each dialogue.
        device: Where the tensors live.

    Returns:
        The pack; its tokens are in the order of the pieces.
    """
    slots: list[int] = []
    places: list[int] = []
    runs: list[tuple[int, int, int, int]] = []
    single: list[tuple[int, int, int]] = []
    for slot, start, count in pieces:
        if count == 1:
            single.append((slot, len(slots), start + 1))
        else:
            runs.append((slot, len(slots), count, start + count))
        slots += [slot] * count
        places += range(start, start + count)

    def vector(values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=device)

    groups: list[Singles] = []
    for members in _neighbours(sorted(single)):
        if len(members) == 1:
            slot, token, length = members[0]
            runs.append((slot, token, 1, length))
            continue
        first = members[0][0]
        seen_until = [1] * (members[-1][0] - first + 1)
        for slot, _, length in members:
            seen_until[slot - first] = length
        groups.append(
            Singles(
                first=first,
                tokens=vector([token for _, token, _ in members]),
                slots=vector([slot - first for slot, _, _ in members]),
                seen_until=vector(seen_until),
                longest=max(seen_until),
            )
        )
    return Pack(
        slot=vector(slots),
        place=vector(places),
        runs=tuple(runs),
        singles=tuple(groups),
        furthest=max(places),
    )


def _neighbours(single: list[tuple[int, int, int]]) -> list[list[tuple[int, int, int]]]:
    """Groups ``(slot, token, length)``, sorted, so that least is read that nobody sees.

    A call reads every slot between its first and its last as far as the longest of them.
    """
    # Least cost of the first so many, and where the last group of them begins.
    best: list[tuple[int, int]] = [(0, 0)]
    for end, (last, _, _) in enumerate(single, start=1):
        longest, found = 0, []
        for begin in range(end - 1, -1, -1):
            first, _, length = single[begin]
            longest = max(longest, length)
            found.append((best[begin][0] + CALL + (last - first + 1) * longest, begin))
        best.append(min(found))
    groups, end = [], len(single)
    while end:
        begin = best[end][1]
        groups.append(single[begin:end])
        end = begin
    return groups
