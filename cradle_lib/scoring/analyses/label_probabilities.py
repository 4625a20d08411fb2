"""Computes the probability of each label from the stored choices of a constrained answer.

An answer is written label by label, and the journal has the log-probability of every branch at
every choice: first ``none`` or the beginning of a label, then its parts, then the end or another
label. A *slot* of an answer is a position at which a label may be written. Probabilities in a slot
are conditional on the labels that were written before it, so that a confirm after an alert counts
as much as one in the first slot.

The probability of a label in a slot is the product of the shares of its branches. Shares are
normalised over the branches of a choice, because constrained decoding allows no other tokens;
:func:`share_on_branches` gives the model's own total for the branches. Choices after a branch that
was not taken are not stored, so its share is divided evenly among its labels.

A label is in an answer if it is in any slot: its probability is one minus the product over slots of
the probability that it is not there. The same applies to a stage. The probability of any label is
one minus that of ``none`` in the first slot.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Final

import numpy as np

from cradle_lib.detection.protocol.session import END
from cradle_lib.labels import ALL_MASK, BITS, LABELS, NONE
from cradle_lib.statistics.rates import Floats

Choice = Mapping[str, float]
_PART: Final = re.compile("[_;]")


def share_on_branches(choice: Choice) -> float:
    """Sums the model's own probabilities of all branches of a choice, 0 to 1."""
    return float(np.exp(list(choice.values())).sum())


def slot_probabilities(choices: Sequence[Choice], answer: str) -> Floats | None:
    """Computes the probability of each label in each slot of an answer.

    A choice maps the text of each branch's token to its log-probability; the answer is ``none``, or
    labels joined by ``; ``. Shape (slots, 16); ``None`` if the choices do not fit the answer.
    """
    remaining = list(reversed(choices))
    written: list[str] = []
    found = []
    for target in [*(part.strip() for part in answer.split(";")), END]:
        options = _options(written)
        # After ``none``, or after all labels, the end is forced: no choice was stored.
        if target == END and (written[-1:] == [NONE] or len(options) == 1):
            break
        probabilities = _slot(options, target, remaining)
        if probabilities is None:
            return None
        found.append(probabilities)
        written.append(target)
    return np.array(found) if not remaining else None


def probability(by_slot: Floats, mask: int) -> Floats:
    """Computes the probability that an answer has at least one of the labels of a mask.

    Shape (..., slots, 16), with zeros for slots that an answer does not have, to (...).
    """
    wanted = [bool(mask >> bit & 1) for bit in range(len(LABELS))]
    # A contiguous copy fixes the order of summation, so that equal answers have equal sums.
    each = np.ascontiguousarray(by_slot[..., wanted]).sum(axis=-1)
    return np.asarray(each[..., 0] if mask == ALL_MASK else 1 - np.prod(1 - each, axis=-1))


def _options(written: Sequence[str]) -> dict[str, str]:
    """Maps each label that is allowed in the next slot to its text."""
    if not written:
        return {text: text for text in (NONE, *LABELS)}
    return {END: END} | {label: f"; {label}" for label in LABELS if label not in written}


def _slot(options: dict[str, str], target: str, remaining: list[Choice]) -> Floats | None:
    """Computes the probabilities in a slot, and removes its choices from ``remaining``."""
    probabilities = np.zeros(len(LABELS))
    # The probability of the branches taken so far, and where the texts after them start.
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
        # Divided by this, the shares add up to `mass`.
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


# Cached, because thousands of answers go through the same few hundred states.
@lru_cache(maxsize=1 << 13)
def _split(
    options: tuple[tuple[str, str], ...], target: str, start: int, branches: tuple[str, ...]
) -> tuple[int, tuple[tuple[str, ...], ...]] | None:
    """Finds the position of a choice in the texts, and the options that follow each branch.

    It is the first position at which each option continues with a branch, and each branch has an
    option. The tokens before it were forced.
    """
    for end in range(start, len(dict(options)[target])):
        rests = {label: text[end:].lstrip() for label, text in options}
        groups = _groups(rests, [branch.strip() for branch in branches])
        if all(groups):
            return end, groups
    return None


def _groups(rests: Mapping[str, str], branches: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Lists the options of each branch; one empty group if an option fits no branch."""
    parts = {label: _PART.split(rest)[0] for label, rest in rests.items()}
    groups: dict[str, list[str]] = {branch: [] for branch in branches}
    for label, rest in rests.items():
        fits = [branch for branch in branches if rest.startswith(branch)]
        if not fits:
            return ((),)
        # ``SHA`` begins with ``SH``, which is a complete part of another label. If there is also a
        # branch ``S``, the tokenizer writes ``SHA`` as ``S`` and ``HA``.
        own = [branch for branch in fits if branch == parts[label]]
        others = [branch for branch in fits if branch not in parts.values()]
        groups[max(own or others or fits, key=len)].append(label)
    return tuple(map(tuple, groups.values()))
