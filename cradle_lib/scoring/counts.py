"""Counts true positives, false positives and false negatives per dialogue and label.

All scores are computed from these counts. A corpus of N dialogues becomes N small tables. Scores
are functions of their sum, and the bootstrap resamples them, so that a score and its interval are
always based on the same counts.

Three levels (Tables 4 and 5 of the paper):
    ``turn``: the unit is the user turn. A label counts on exactly that turn.
    ``dialogue``: the unit is the dialogue, with the union of its turns' labels.
    ``confirm``: the same, with alerts removed on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np

from cradle_lib.labels import CONFIRM_MASK
from cradle_lib.scoring.conventions import Conventions, Level, Rows
from cradle_lib.statistics.occurrences import label_counts
from cradle_lib.statistics.rates import Floats


@dataclass(frozen=True)
class Counts:
    """The counts of N dialogues.

    Attributes:
        level: The level, which defines the units.
        rows: :attr:`tallies` of the 16 labels, then :attr:`sets`. Shape (N, 17, 3).
    """

    level: Level
    rows: Floats

    @property
    def tallies(self) -> Floats:
        """True positives, false positives and false negatives of each label. Shape (N, 16, 3).

        Zero for the two alerts at level ``confirm``.
        """
        return self.rows[:, :-1]

    @property
    def sets(self) -> Floats:
        """Number of units, number of exact matches, and sum of Jaccard indices. Shape (N, 3).

        A unit is a scored user turn, or a dialogue that has one.
        """
        return self.rows[:, -1]

    @property
    def total(self) -> Floats:
        """The sum over dialogues. Shape (17, 3)."""
        return np.asarray(self.rows.sum(axis=0))


def count(
    rows: Rows, n: int, *, level: Level = "turn", conventions: Conventions | None = None
) -> Counts:
    """Counts true positives, false positives and false negatives of ``n`` dialogues.

    Unusable answers count as no prediction. Dialogues without rows have zeros only, also for units.
    Of the conventions, ``empty_jaccard`` and ``unparsed`` apply here.
    """
    conventions = conventions or Conventions()
    if conventions.unparsed == "exclude":
        rows = rows.take(rows.answered)
    gold, dialogue_of, answered = rows.gold, rows.dialogue_of, rows.answered
    predicted = np.where(answered, rows.predicted, np.uint16(0))
    if conventions.unparsed == "none":
        answered = np.ones_like(answered)
    if level == "confirm":
        confirms = np.uint16(CONFIRM_MASK)
        gold, predicted = gold & confirms, predicted & confirms
    if level != "turn":
        # A dialogue is one unit, with the labels of all its turns.
        starts = np.flatnonzero(np.diff(dialogue_of, prepend=-1))
        if len(starts):
            gold, predicted = (np.bitwise_or.reduceat(m, starts) for m in (gold, predicted))
            answered = np.logical_and.reduceat(answered, starts)
        dialogue_of = dialogue_of[starts]

    kinds = (gold & predicted, predicted & ~gold, gold & ~predicted)
    tallies = np.stack([label_counts(masks, dialogue_of, n) for masks in kinds], axis=-1)
    common, union = (
        np.bitwise_count(masks).astype(np.float64) for masks in (gold & predicted, gold | predicted)
    )
    empty = (union == 0) & answered
    exact = empty | ((gold == predicted) & (union > 0))
    jaccard = common / np.maximum(union, 1)
    per_dialogue = partial(np.bincount, dialogue_of, minlength=n)
    sums = conventions.empty_jaccard * per_dialogue(empty) + per_dialogue(jaccard)
    sets = np.stack([per_dialogue(), per_dialogue(exact), sums], axis=-1)
    return Counts(level, np.concatenate([tallies, sets[:, None]], axis=1, dtype=np.float64))
