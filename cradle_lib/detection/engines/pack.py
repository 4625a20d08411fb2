"""The new tokens of many dialogues, packed into one forward pass without padding."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import torch
from torch import Tensor

from cradle_lib.detection.engines.attend import Mask


@dataclass(frozen=True)
class Pack:
    """The new tokens of one forward pass, dialogue after dialogue.

    Attributes:
        slot: Slot of each token. Shape (tokens,).
        place: Place of each token in its slot, from 0. Shape (tokens,).
        runs: For dialogues with several new tokens: ``(slot, first token, tokens, length)``,
            where length counts the slot's tokens including the new ones.
        single_tokens: Indices of tokens that are their dialogue's only new one. Shape (singles,).
        single_slots: The slots of these. Shape (singles,).
        seen_until: For each slot up to the last of these, how many of its tokens its only new
            one sees, itself included; 1 where a slot has no such token. Shape (slots,).
        longest: The greatest length of these slots, 0 if there is none.
        furthest: The greatest place of all tokens.
        masks: Masks that were made for this pass: all layers of a kind use the same.
    """

    slot: Tensor
    place: Tensor
    runs: tuple[tuple[int, int, int, int], ...]
    single_tokens: Tensor
    single_slots: Tensor
    seen_until: Tensor
    longest: int
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
    singles: list[tuple[int, int, int]] = []
    for slot, start, count in pieces:
        if count == 1:
            singles.append((len(slots), slot, start + 1))
        else:
            runs.append((slot, len(slots), count, start + count))
        slots += [slot] * count
        places += range(start, start + count)

    def vector(values: list[int]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=device)

    seen_until = [1] * (max((s[1] for s in singles), default=-1) + 1)
    for _, slot, length in singles:
        seen_until[slot] = length
    return Pack(
        slot=vector(slots),
        place=vector(places),
        runs=tuple(runs),
        single_tokens=vector([s[0] for s in singles]),
        single_slots=vector([s[1] for s in singles]),
        seen_until=vector(seen_until),
        longest=max((s[2] for s in singles), default=0),
        furthest=max(places),
    )
