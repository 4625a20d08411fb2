"""Per dialogue and label: true positives, false positives, false negatives.

Everything that is scored starts here. A corpus of N dialogues becomes N small tables; scores
are functions of their sum, and the bootstrap resamples them, so that a score and its
interval can't disagree about what is counted.

Three levels (Tables 4 and 5 of the paper):
    ``turn``: the unit is the user turn. A label counts if it stands on exactly that turn.
    ``dialogue``: the unit is the dialogue, with the union of its turns' labels.
    ``confirm``: the same, with alerts removed on both sides.

How it is fast: a mask is looked up in a table that spreads its sixteen bits over sixteen
bytes, held as two 64-bit words. Adding words adds sixteen counters at a time, so a dialogue's
counters are one ``add.reduceat`` per word. Turns on which nothing is gold and nothing is
tagged, the great majority, are only counted.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from cradle_lib.errors import ScoringError
from cradle_lib.labels import CONFIRM_MASK, LABELS
from cradle_lib.scoring.core.conventions import LEVELS, Conventions, Level

Masks = NDArray[np.uint16]

# Row m holds the bits of m, a byte each: labels 0-7 in the first word, 8-15 in the second.
_SPREAD: Final = np.ascontiguousarray(
    np.unpackbits(
        np.arange(1 << 16, dtype="<u2").view(np.uint8).reshape(-1, 2), axis=1, bitorder="little"
    )
    .view(np.uint64)
    .T
)
# A counter is one byte wide while it is being added up.
_LONGEST: Final = 255
_SIZES: Final = np.arange(len(LABELS) + 1)
# Jaccard index by size of the intersection (row) and of the union (column).
_JACCARD: Final = np.minimum(_SIZES[:, None] / np.maximum(_SIZES, 1), 1.0)


@dataclass(frozen=True)
class Counts:
    """The counts of N dialogues.

    Attributes:
        level: What was counted.
        tallies: True positives, false positives and false negatives of each dialogue and label;
            zeros for the two alerts at level ``confirm``. Shape (N, 16, 3).
        sets: For each dialogue its units (user turns, or 1 for the dialogue itself; 0 without
            scored turns), how many of them match exactly, and the sum of their Jaccard indices.
            Shape (N, 3).
    """

    level: Level
    tallies: NDArray[np.int32]
    sets: NDArray[np.float64]

    def __len__(self) -> int:
        """Counts the dialogues."""
        return len(self.tallies)

    @property
    def rows(self) -> NDArray[np.float64]:
        """One row of 51 numbers per dialogue: the flattened tallies, then the sets."""
        flat = self.tallies.reshape(len(self), 3 * len(LABELS))
        return np.concatenate([flat, self.sets], axis=1, dtype=np.float64)

    @property
    def total(self) -> NDArray[np.float64]:
        """The sum of :attr:`rows`. Shape (51,)."""
        flat = self.tallies.sum(axis=0, dtype=np.int64).reshape(-1)
        return np.concatenate([flat, self.sets.sum(axis=0)], dtype=np.float64)


def count(
    gold: Masks,
    predicted: Masks,
    dialogue_of: NDArray[np.int64],
    n: int,
    *,
    level: Level = "turn",
    conventions: Conventions | None = None,
    answered: NDArray[np.bool_] | None = None,
) -> Counts:
    """Counts true positives, false positives and false negatives of ``n`` dialogues.

    Masks, ``dialogue_of`` (the position of each row's dialogue, ascending, below ``n``) and
    ``answered`` (whether a row has a readable answer; ``None`` if all have) have shape (T,). What
    was tagged is ignored where there is no readable answer. Dialogues without rows have zeros
    throughout, units included. Of the conventions ``empty_jaccard`` and ``unparsed`` matter here.

    Raises:
        ScoringError: If shapes, types, level or the order of the rows are not as described.
    """
    conventions = conventions or Conventions()
    _check(gold, predicted, dialogue_of, n, level, answered)
    silent = None
    if answered is not None and not answered.all():
        predicted = np.where(answered, predicted, np.uint16(0))
        if conventions.unparsed == "exclude":
            gold, predicted = gold[answered], predicted[answered]
            dialogue_of = dialogue_of[answered]
        elif conventions.unparsed == "miss":
            silent = ~answered
    if level == "confirm":
        confirms = np.uint16(CONFIRM_MASK)
        gold, predicted = gold & confirms, predicted & confirms
    units = np.bincount(dialogue_of, minlength=n)

    # Rows on which nothing is gold and nothing tagged change no union and no tally.
    touched = np.flatnonzero((gold | predicted) != 0)
    gold, predicted, where = gold[touched], predicted[touched], dialogue_of[touched]
    if level == "turn":
        empty = units - np.bincount(where, minlength=n)
        if silent is not None:
            silent[touched] = False
            empty -= np.bincount(dialogue_of[silent], minlength=n)
    else:
        starts = _starts(where)
        where = where[starts]
        gold, predicted = (np.bitwise_or.reduceat(masks, starts) for masks in (gold, predicted))
        units = (units > 0).astype(np.int64)
        empty = units.copy()
        empty[where] = 0
        if silent is not None:
            empty[dialogue_of[silent]] = 0

    tp = gold & predicted
    jaccard = _JACCARD[np.bitwise_count(tp), np.bitwise_count(gold | predicted)]
    sets = np.empty((n, 3))
    sets[:, 0] = units
    sets[:, 1] = empty + np.bincount(where[gold == predicted], minlength=n)
    sets[:, 2] = conventions.empty_jaccard * empty
    sets[:, 2] += np.bincount(where, weights=jaccard, minlength=n)
    return Counts(level, _tally((tp, predicted ^ tp, gold ^ tp), where, n), sets)


def _tally(masks: tuple[Masks, ...], where: NDArray[np.int64], n: int) -> NDArray[np.int32]:
    """Adds up the bits of several masks per dialogue. Shape (n, 16, len(masks))."""
    tallies = np.zeros((n, len(masks), len(LABELS)), dtype=np.int32)
    for column, mask in enumerate(masks):
        rows = np.flatnonzero(mask != 0)
        owners, sums = _sums(mask[rows], where[rows])
        tallies[owners, column] = sums
    return tallies.transpose(0, 2, 1)


def _sums(
    masks: Masks, where: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.uint8] | NDArray[np.int32]]:
    """Adds up the bits per dialogue. Gives the dialogues, ascending, and sums (dialogues, 16)."""
    starts = _starts(where)
    lengths = np.diff(starts, append=len(where))
    long = lengths.max(initial=0) > _LONGEST
    if long:
        # A byte would overflow: such dialogues are added up in pieces, then the pieces.
        offset = np.arange(len(where)) - np.repeat(starts, lengths)
        starts = np.flatnonzero(offset % _LONGEST == 0)
    lanes = np.stack([np.add.reduceat(word[masks], starts) for word in _SPREAD], axis=1)
    sums, owners = lanes.view(np.uint8), where[starts]
    if not long:
        return owners, sums
    first = _starts(owners)
    return owners[first], np.add.reduceat(sums, first, axis=0, dtype=np.int32)


def _starts(ascending: NDArray[np.int64]) -> NDArray[np.int64]:
    """Positions where a new value begins."""
    if not len(ascending):
        return np.zeros(0, dtype=np.int64)
    return np.concatenate([[0], np.flatnonzero(ascending[1:] != ascending[:-1]) + 1])


def _check(
    gold: Masks,
    predicted: Masks,
    dialogue_of: NDArray[np.int64],
    n: int,
    level: Level,
    answered: NDArray[np.bool_] | None,
) -> None:
    if level not in LEVELS:
        raise ScoringError(f"no level {level!r}. Choose one of {', '.join(LEVELS)}.")
    arrays: list[tuple[str, NDArray[Any], str]] = [
        ("gold", gold, "uint16"),
        ("predicted", predicted, "uint16"),
        ("dialogue_of", dialogue_of, "int64"),
    ]
    if answered is not None:
        arrays.append(("answered", answered, "bool"))
    for name, array, kind in arrays:
        if array.shape != (len(gold),):
            raise ScoringError(
                f"{name} has shape {array.shape}, gold has {len(gold)} rows. "
                "Every array needs one entry per row."
            )
        if array.dtype != kind:
            raise ScoringError(f"{name} has type {array.dtype}. Expected {kind}.")
    if not len(dialogue_of):
        return
    if (dialogue_of[1:] < dialogue_of[:-1]).any():
        raise ScoringError("dialogue_of is not ascending. Sort the rows by dialogue first.")
    if dialogue_of[0] < 0 or dialogue_of[-1] >= n:
        raise ScoringError(
            f"dialogue_of runs from {dialogue_of[0]} to {dialogue_of[-1]}, "
            f"but there are {n} dialogues, 0 to {n - 1}."
        )
