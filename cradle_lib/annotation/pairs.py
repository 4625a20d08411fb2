"""Reduces the labels of two annotators to counts for each dialogue.

Every measure of agreement is a function of these counts, summed over dialogues. Its interval comes
from resampling them.

Units:
    ``labelled``: turns that at least one of the two labelled (the paper's unit set for Jaccard,
    kappa and F1). ``user``: all user turns. ``all``: all turns, Listener turns included (the
    paper's unit set for exact match). A label on a turn that is not a user turn is left out of
    ``user``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from cradle_lib.annotation.table import Annotations
from cradle_lib.errors import CorpusError
from cradle_lib.labels import LABELS
from cradle_lib.statistics.occurrences import Ints, label_counts, label_positions, match
from cradle_lib.statistics.rates import Floats

Units = Literal["labelled", "user", "all"]
UNITS: Final[tuple[Units, ...]] = get_args(Units)
UNIT_NAMES: Final = {
    "labelled": "turns that either annotator labelled",
    "user": "all user turns",
    "all": "all turns",
}
#: Tolerances, in user turns, at which matches are counted.
WINDOWS: Final = (0, 1, 2)


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
    """Finds the annotators who labelled the same dialogues, of one team and round or of all.

    Gives one pair for each two annotators who share dialogues, sorted by name. Adjudicators and
    seniors are left out, because they saw only disputed dialogues.

    Raises:
        CorpusError: If a dialogue does not have two annotators, or none is left.
    """
    found: dict[tuple[str, str], list[tuple[Any, ...]]] = {}
    for dialogue, entries in annotations.by_dialogue.items():
        two = [
            e
            for e in entries
            if e.role == "annotator" and team in (None, e.team) and round_ in (None, e.round)
        ]
        if not two:
            continue
        if len(two) != 2:
            raise CorpusError(
                f"dialogue {dialogue}: labelled by {len(two)} annotators, expected two. "
                "Import all exports of the study."
            )
        one, other = sorted(two, key=lambda entry: entry.annotator)
        masks = np.array([one.masks, other.masks], dtype=np.uint16)
        asked = np.array([turn.asked for turn in annotations.corpus.by_id[dialogue].turns])
        shared = found.setdefault((one.annotator, other.annotator), [])
        shared.append((dialogue, masks, asked))
    if not found:
        raise CorpusError(f"no annotations of team {team or 'any'}, round {round_ or 'any'}.")
    return tuple(
        Pair(*names, *zip(*shared, strict=True)) for names, shared in sorted(found.items())
    )


class Tallies(NamedTuple):
    """Counts of one pair, or of several pairs together, for each of D dialogues.

    Attributes:
        turns: Number of units. Shape (D,).
        exact: Units on which both sets are equal. Shape (D,).
        masi_sum: MASI distance between the two sets, summed over units. Shape (D,).
        cells: For each label, units on which both gave it, only the first did, and only
            the second did. Shape (D, 16, 3).
        matched: For each label and window of :data:`WINDOWS`, the largest number of
            one-to-one matches within that many user turns. Shape (D, 16, W).
        histogram: How often each of the V different masks was given, by either. Shape (D, V).
        distance: MASI distance of each two of the V masks. Shape (V, V).
    """

    turns: Ints
    exact: Ints
    masi_sum: Floats
    cells: Ints
    matched: Ints
    histogram: Ints
    distance: Floats


def tally(chosen: Sequence[Pair], units: Units) -> Tallies:
    """Counts agreements and differences of one pair, or of several pairs together.

    For distances in user turns, a label on another turn counts as on the user turn before it. There
    must be at least one dialogue.
    """
    masks = [masks for pair in chosen for masks in pair.masks]
    asked = [asked for pair in chosen for asked in pair.asked]
    n, dialogue_of = len(asked), np.repeat(np.arange(len(asked)), [len(each) for each in asked])
    position = np.maximum(np.concatenate([np.cumsum(each) - 1 for each in asked]), 0)
    both, is_user_turn = np.concatenate(masks, axis=1), np.concatenate(asked)
    units_of = {"labelled": both.any(axis=0), "user": is_user_turn, "all": is_user_turn | True}
    unit = units_of[units]
    one, other = np.where(unit, both, 0).astype(np.uint16)
    values, index = np.unique(both[:, unit], return_inverse=True)
    index, owner = index.reshape(2, -1), dialogue_of[unit]
    distance = np.array([[masi(int(a), int(b)) for b in values] for a in values])
    distance = distance.reshape(len(values), len(values))
    cells = (one & other, one & ~other, other & ~one)
    histogram = np.zeros((n, len(values)), dtype=np.int64)
    np.add.at(histogram, (np.concatenate([owner, owner]), index.ravel()), 1)
    return Tallies(
        turns=np.bincount(owner, minlength=n),
        exact=np.bincount(owner[index[0] == index[1]], minlength=n),
        masi_sum=np.bincount(owner, distance[index[0], index[1]], n).astype(np.float64),
        cells=np.stack([label_counts(m, dialogue_of, n) for m in cells], axis=-1),
        matched=_matched(
            label_positions(one, dialogue_of, position),
            label_positions(other, dialogue_of, position),
            n,
        ),
        histogram=histogram,
        distance=distance,
    )


def _matched(
    first: Mapping[tuple[int, int], list[int]], second: Mapping[tuple[int, int], list[int]], n: int
) -> Ints:
    found = np.zeros((n, len(LABELS), len(WINDOWS)), dtype=np.int64)
    for slot in first.keys() & second.keys():
        found[slot] = [match(first[slot], second[slot], early=w, late=w) for w in WINDOWS]
    return found


@lru_cache(maxsize=1 << 14)
def masi(one: int, other: int) -> float:
    """Computes the MASI distance of two masks: 1 - J * M (Passonneau 2006).

    It is 0 for equal sets, two empty ones included, 1 for disjoint ones. J is the Jaccard
    index; M is 1 for equal sets, 2/3 for a subset, 1/3 for an overlap, 0 otherwise.
    """
    if one == other:
        return 0.0
    common, either = (one & other).bit_count(), (one | other).bit_count()
    if not common:
        return 1.0
    monotonic = 2 / 3 if one & other in (one, other) else 1 / 3
    return 1.0 - common / either * monotonic
