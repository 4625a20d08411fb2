"""How likely each label was, from all forks of a constrained answer.

An answer is written label by label, and the journal keeps the log-probability of every branch at
every fork: ``none`` or the beginning of a label, then its parts, then an end or one label more. A
*place* of an answer is where a label may be written. At each place the labels before it are given,
as they were when the model chose, so that a confirm after an alert is seen as well as one at the
beginning.

The probability of a label at a place is the product, along its way, of the shares of its branches.
A share is taken among the branches of a fork, because constrained decoding allows no others,
however little of the model's probability these hold: :func:`on_branches` says how little. What
follows a branch that was not taken is not stored: its share is divided evenly among its labels.

A label is in an answer if it is written at any of its places; its chance is one minus the product
of the probabilities that it is not. The same goes for a stage. Some label is written unless the
first place goes to ``none``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from cradle_lib.labels import ALL_MASK, BITS, LABELS, NONE
from cradle_lib.statistics.rates import Floats

Fork = Mapping[str, float]
_END: Final = "<end>"
_PART: Final = re.compile("[_;]")


def on_branches(fork: Fork) -> float:
    """Adds up the model's own probability of all branches of a fork, 0 to 1."""
    return float(np.exp(list(fork.values())).sum())


def places(forks: Sequence[Fork], answer: str) -> Floats | None:
    """Computes how likely each label was at each place of an answer.

    A fork has the log-probability of each branch by the text of its token; the answer is ``none``,
    or labels joined by ``; ``. Shape (places, 16); ``None`` if the two do not belong together.
    """
    left = list(reversed(forks))
    written: list[str] = []
    found = []
    for target in [*(part.strip() for part in answer.split(";")), _END]:
        alive = _open(written)
        if target == _END and (written[-1:] == [NONE] or len(alive) == 1):
            break
        chances = _place(alive, target, left)
        if chances is None:
            return None
        found.append(chances)
        written.append(target)
    return np.array(found) if not left else None


def chance(by_place: Floats, mask: int) -> Floats:
    """Computes how likely answers were to have one of the labels of a mask.

    Shape (..., places, 16), with zeros for places that an answer lacks, to (...).
    """
    wanted = [bool(mask >> bit & 1) for bit in range(len(LABELS))]
    # Added up in one order, whatever the shape: equal answers have equal chances.
    each = np.ascontiguousarray(by_place[..., wanted]).sum(axis=-1)
    return np.asarray(each[..., 0] if mask == ALL_MASK else 1 - np.prod(1 - each, axis=-1))


def _open(written: Sequence[str]) -> dict[str, str]:
    """What may be written at the next place, and its text."""
    if not written:
        return {text: text for text in (NONE, *LABELS)}
    return {_END: _END} | {label: f"; {label}" for label in LABELS if label not in written}


def _place(alive: dict[str, str], target: str, left: list[Fork]) -> Floats | None:
    """Follows one label through its forks, which are taken off ``left``."""
    chances = np.zeros(len(LABELS))
    mass, start = 1.0, 0
    if target not in alive:
        return None
    while len(alive) > 1:
        if not left:
            return None
        fork = left.pop()
        split = _split(tuple(alive.items()), target, start, tuple(fork))
        if split is None:
            return None
        start, groups = split
        largest = max(fork.values())
        shares = [math.exp(value - largest) for value in fork.values()]
        total = sum(shares) / mass
        for share, group in zip(shares, groups, strict=True):
            if target in group:
                mass, taken = share / total, group
                continue
            for label in group:
                if label in BITS:
                    chances[LABELS.index(label)] += share / total / len(group)
        alive = {label: alive[label] for label in taken}
    if target in BITS:
        chances[LABELS.index(target)] += mass
    return chances


# Thousands of answers go through the same few hundred states.
@lru_cache(maxsize=1 << 13)
def _split(
    alive: tuple[tuple[str, str], ...], target: str, start: int, branches: tuple[str, ...]
) -> tuple[int, tuple[tuple[str, ...], ...]] | None:
    """Finds where a fork stands, and divides what may be written among its branches.

    Forced tokens come before it: it is where the texts first go apart as its branches do.
    """
    for end in range(start, len(dict(alive)[target])):
        rests = {label: text[end:].lstrip() for label, text in alive}
        groups = _groups(rests, [branch.strip() for branch in branches])
        if all(groups):
            return end, groups
    return None


def _groups(rests: Mapping[str, str], branches: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """What each branch leads to; without entries where something is on no branch."""
    parts = {label: _PART.split(rest)[0] for label, rest in rests.items()}
    groups: dict[str, list[str]] = {branch: [] for branch in branches}
    for label, rest in rests.items():
        fits = [branch for branch in branches if rest.startswith(branch)]
        if not fits:
            return ((),)
        # ``SHA`` begins with ``SH``, which is a whole part of another label: a tokenizer that
        # has a branch ``S`` besides writes it as ``S`` and ``HA``.
        own = [branch for branch in fits if branch == parts[label]]
        others = [branch for branch in fits if branch not in parts.values()]
        groups[max(own or others or fits, key=len)].append(label)
    return tuple(map(tuple, groups.values()))
