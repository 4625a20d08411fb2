"""What two annotators gave, reduced to counts for each dialogue.

Every measure of agreement is a function of counts that add up over dialogues, so that it and
its interval come from the same numbers: the bootstrap resamples the rows.

Units:
    ``labelled``: turns that at least one of the two labelled (the paper's unit set for
    Jaccard, kappa and F1). ``user``: all user turns. ``all``: all turns, Listener turns
    included, as the paper's exact match has it. A label on a turn that is not a user turn
    is left out of ``user``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from cradle_lib.annotation.table import Annotations
from cradle_lib.errors import AnnotationError
from cradle_lib.labels import BITS, LABELS

Units = Literal["labelled", "user", "all"]
UNITS: Final[tuple[Units, ...]] = get_args(Units)
UNIT_NAMES: Final = {
    "labelled": "turns that either annotator labelled",
    "user": "all user turns",
    "all": "all turns",
}
#: Tolerances, in user turns, at which matches are counted.
WINDOWS: Final = (0, 1, 2)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Pair:
    """Two annotators over the dialogues that both labelled.

    Attributes:
        first: One annotator.
        second: The other one.
        dialogues: Ids of the D dialogues.
        masks: For each dialogue the masks of both, over all of its turns. D arrays of
            shape (2, turns).
        asked: For each dialogue, which turns are user turns. D arrays of shape (turns,).
    """

    first: str
    second: str
    dialogues: tuple[str, ...]
    masks: tuple[NDArray[np.uint16], ...]
    asked: tuple[NDArray[np.bool_], ...]


def pairs(
    annotations: Annotations, *, team: str | None = None, round_: int | None = None
) -> tuple[Pair, ...]:
    """Finds who labelled the same dialogues.

    Args:
        annotations: Everybody's.
        team: Only dialogues of this team; ``None`` for all.
        round_: Only this round; ``None`` for all.

    Returns:
        One pair for each two annotators who share dialogues, by name. Adjudicators and
        seniors are left out: they saw only what others had found difficult.

    Raises:
        AnnotationError: If a dialogue does not have two annotators, or none is left.
    """
    found: dict[tuple[str, str], list[str]] = {}
    masks: dict[str, NDArray[np.uint16]] = {}
    for dialogue, entries in annotations.by_dialogue.items():
        two = [e for e in entries if e.role == "annotator"]
        if team is not None:
            two = [e for e in two if e.team == team]
        if round_ is not None:
            two = [e for e in two if e.round == round_]
        if not two:
            continue
        if len(two) != 2:
            raise AnnotationError(
                f"dialogue {dialogue}: {len(two)} annotators, agreement is between two. "
                "Import all exports of the study."
            )
        one, other = sorted(two, key=lambda entry: entry.annotator)
        found.setdefault((one.annotator, other.annotator), []).append(dialogue)
        masks[dialogue] = np.array([one.masks, other.masks], dtype=np.uint16)
    if not found:
        raise AnnotationError(f"no annotations of team {team or 'any'}, round {round_ or 'any'}.")
    return tuple(
        Pair(
            one,
            other,
            tuple(dialogues),
            tuple(masks[name] for name in dialogues),
            tuple(
                np.array([turn.asked for turn in annotations.dialogues[name].turns])
                for name in dialogues
            ),
        )
        for (one, other), dialogues in sorted(found.items())
    )


@dataclass(frozen=True)
class Tallies:
    """Counts of one pair, or of several pairs together, for each of D dialogues.

    Attributes:
        units: The unit set.
        turns: Number of units. Shape (D,).
        exact: Units on which both sets are equal. Shape (D,).
        cells: For each label, units on which both gave it, only the first did, and only
            the second did. Shape (D, 16, 3).
        matched: For each label and window of :data:`WINDOWS`, the largest number of
            one-to-one matches within that many user turns. Shape (D, 16, W).
        values: The V different masks that occur.
        histogram: How often each value was given, by either. Shape (D, V).
        apart: For each distance, the summed distance between the two. Shape (D, 2):
            nominal, MASI.
    """

    units: Units
    turns: Ints
    exact: Ints
    cells: Ints
    matched: Ints
    values: tuple[int, ...]
    histogram: Ints
    apart: Floats


def tally(chosen: Sequence[Pair], units: Units) -> Tallies:
    """Counts.

    Args:
        chosen: One pair, or several whose dialogues are put together.
        units: The unit set.

    Returns:
        The counts, one row for each dialogue.
    """
    both = [
        (masks, asked)
        for pair in chosen
        for masks, asked in zip(pair.masks, pair.asked, strict=True)
    ]
    kept = [masks[:, _members(masks, asked, units)] for masks, asked in both]
    values = tuple(sorted({int(value) for masks in kept for value in np.unique(masks)}))
    place = {value: index for index, value in enumerate(values)}
    bits = np.array(list(BITS.values()), dtype=np.uint16)
    rows = len(kept)
    cells = np.zeros((rows, len(LABELS), 3), dtype=np.int64)
    matched = np.zeros((rows, len(LABELS), len(WINDOWS)), dtype=np.int64)
    histogram = np.zeros((rows, len(values)), dtype=np.int64)
    apart = np.zeros((rows, 2))
    for row, masks in enumerate(kept):
        one, other = ((masks[who][:, None] & bits) != 0 for who in (0, 1))
        cells[row] = np.stack(
            [(one & other).sum(0), (one & ~other).sum(0), (~one & other).sum(0)], axis=1
        )
        for value in masks.ravel():
            histogram[row, place[int(value)]] += 1
        apart[row, 0] = (masks[0] != masks[1]).sum()
        apart[row, 1] = sum(masi(int(a), int(b)) for a, b in masks.T)
        full, asked = both[row]
        matched[row] = _matches(full, asked, units)
    return Tallies(
        units=units,
        turns=np.array([masks.shape[1] for masks in kept], dtype=np.int64),
        exact=np.array([(masks[0] == masks[1]).sum() for masks in kept], dtype=np.int64),
        cells=cells,
        matched=matched,
        values=values,
        histogram=histogram,
        apart=apart,
    )


def _members(
    masks: NDArray[np.uint16], asked: NDArray[np.bool_], units: Units
) -> NDArray[np.bool_]:
    if units == "labelled":
        labelled: NDArray[np.bool_] = (masks[0] | masks[1]) != 0
        return labelled
    return asked if units == "user" else np.ones_like(asked)


def _matches(masks: NDArray[np.uint16], asked: NDArray[np.bool_], units: Units) -> Ints:
    """Counts matches within each window; other turns stand at the user turn before them."""
    position = np.maximum(np.cumsum(asked) - 1, 0)
    found = np.zeros((len(LABELS), len(WINDOWS)), dtype=np.int64)
    if units == "user":
        masks = np.where(asked, masks, 0).astype(np.uint16)
    for label, bit in enumerate(BITS.values()):
        one, other = (position[(masks[who] & bit) != 0].tolist() for who in (0, 1))
        if one and other:
            found[label] = [matches(one, other, window) for window in WINDOWS]
    return found


def matches(one: Sequence[int], other: Sequence[int], window: int) -> int:
    """Pairs as many positions as possible that are at most ``window`` apart.

    Args:
        one: Positions of one annotator, ascending.
        other: Positions of the other, ascending.
        window: Largest distance.

    Returns:
        The size of a largest one-to-one matching. On a line, taking the earliest partner
        that fits is one.
    """
    left = right = count = 0
    while left < len(one) and right < len(other):
        gap = one[left] - other[right]
        if abs(gap) <= window:
            left, right, count = left + 1, right + 1, count + 1
        elif gap < 0:
            left += 1
        else:
            right += 1
    return count


@lru_cache(maxsize=1 << 14)
def masi(one: int, other: int) -> float:
    """Distance of two label sets: 1 - J * M (Passonneau 2006).

    Args:
        one: A mask.
        other: A mask.

    Returns:
        0 for equal sets, two empty ones included, 1 for disjoint ones. J is the Jaccard
        index; M is 1 for equal sets, 2/3 for a subset, 1/3 for an overlap, 0 otherwise.
    """
    if one == other:
        return 0.0
    common, whole = (one & other).bit_count(), (one | other).bit_count()
    if not common:
        return 1.0
    monotonic = 2 / 3 if one & other in (one, other) else 1 / 3
    return 1.0 - common / whole * monotonic
