"""How likely each label was, from the stored choices of a constrained answer.

An answer is written label by label, and the journal keeps the log-probability of every branch at
every choice: ``none`` or the beginning of a label, then its parts, then an end or one label more. A
*slot* of an answer is a position at which a label may be written. At each slot the labels before
it are given, as they were when the model chose, so that a confirm after an alert is seen as well
as one at the beginning.

The probability of a label in a slot is the product of the shares of its branches. A share is taken
among the branches of a choice, because constrained decoding allows no others, however little of
the model's probability these have: :func:`share_on_branches` gives that. What follows a branch
that was not taken is not stored: its share is divided evenly among its labels.

A label is in an answer if it is written in any of its slots; its probability is one minus the
product of the probabilities that it is not. The same goes for a stage. Some label is written unless
the first slot is ``none``.
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

Choice = Mapping[str, float]
_END: Final = "<end>"
_PART: Final = re.compile("[_;]")


def share_on_branches(choice: Choice) -> float:
    """Adds up the model's own probability of all branches of a choice, 0 to 1."""
    return float(np.exp(list(choice.values())).sum())


def slot_probabilities(choices: Sequence[Choice], answer: str) -> Floats | None:
    """Computes how likely each label was in each slot of an answer.

    A choice has the log-probability of each branch by the text of its token; the answer is
    ``none``, or labels joined by ``; ``. Shape (slots, 16); ``None`` if the choices do not belong
    to the answer.
    """
    remaining = list(reversed(choices))
    written: list[str] = []
    found = []
    for target in [*(part.strip() for part in answer.split(";")), _END]:
        options = _options(written)
        if target == _END and (written[-1:] == [NONE] or len(options) == 1):
            break
        probabilities = _slot(options, target, remaining)
        if probabilities is None:
            return None
        found.append(probabilities)
        written.append(target)
    return np.array(found) if not remaining else None


def probability(by_slot: Floats, mask: int) -> Floats:
    """Computes how likely answers were to have one of the labels of a mask.

    Shape (..., slots, 16), with zeros for slots that an answer lacks, to (...).
    """
    wanted = [bool(mask >> bit & 1) for bit in range(len(LABELS))]
    # Added up in one order, whatever the shape: equal answers have equal probabilities.
    each = np.ascontiguousarray(by_slot[..., wanted]).sum(axis=-1)
    return np.asarray(each[..., 0] if mask == ALL_MASK else 1 - np.prod(1 - each, axis=-1))


def _options(written: Sequence[str]) -> dict[str, str]:
    """What may be written in the next slot, and its text."""
    if not written:
        return {text: text for text in (NONE, *LABELS)}
    return {_END: _END} | {label: f"; {label}" for label in LABELS if label not in written}


def _slot(options: dict[str, str], target: str, remaining: list[Choice]) -> Floats | None:
    """Follows one label through its choices, which are taken off ``remaining``."""
    probabilities = np.zeros(len(LABELS))
    mass, start = 1.0, 0
    if target not in options:
        return None
    while len(options) > 1:
        if not remaining:
            return None
        choice = remaining.pop()
        split = _split(tuple(options.items()), target, start, tuple(choice))
        if split is None:
            return None
        start, groups = split
        largest = max(choice.values())
        shares = [math.exp(value - largest) for value in choice.values()]
        total = sum(shares) / mass
        for share, group in zip(shares, groups, strict=True):
            if target in group:
                mass, taken = share / total, group
                continue
            for label in group:
                if label in BITS:
                    probabilities[LABELS.index(label)] += share / total / len(group)
        options = {label: options[label] for label in taken}
    if target in BITS:
        probabilities[LABELS.index(target)] += mass
    return probabilities


# Thousands of answers go through the same few hundred states.
@lru_cache(maxsize=1 << 13)
def _split(
    options: tuple[tuple[str, str], ...], target: str, start: int, branches: tuple[str, ...]
) -> tuple[int, tuple[tuple[str, ...], ...]] | None:
    """Finds the place of a choice in the texts, and divides the options among its branches.

    Forced tokens come before it: the texts first differ there as its branches do.
    """
    for end in range(start, len(dict(options)[target])):
        rests = {label: text[end:].lstrip() for label, text in options}
        groups = _groups(rests, [branch.strip() for branch in branches])
        if all(groups):
            return end, groups
    return None


def _groups(rests: Mapping[str, str], branches: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Lists the options behind each branch; an empty group if an option fits no branch."""
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
