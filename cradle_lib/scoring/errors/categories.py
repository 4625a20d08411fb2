"""What exactly went wrong: every error in one category, and the categories add up.

Each error instance is a cell off the diagonal of the confusion matrix, as
``error_kinds`` lists them. Its category follows from the pair of labels and, for
a tag that answers no gold label, from where the dialogue has that label:

    ``missed_alert``, ``missed_confirm``: a gold label that no tag answers.
    ``over_confirmed``: a confirm in place of an alert; ``under_confirmed``: the reverse.
    ``temporal_swap``: ongoing and past taken for each other.
    ``wrong_type``: one crisis type in place of another.
    ``too_early``: a tag whose label is gold only on a later turn.
    ``too_late``: the dialogue's first tag of a label that was gold on an earlier turn, where
        no tag answered it; the missed gold label is an error of its own.
    ``repeated``: a further tag of a label that was gold on an earlier turn.
    ``unfounded``: a tag whose label is nowhere gold in the dialogue.

The first, second and last four are the false negatives and false positives of Sec 6.1 that stand
alone; each of the other four is one of both.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.labels import ALERT_MASK, BITS, CRISIS_TYPES, LABELS, NONE, crisis_type
from cradle_lib.scoring.core.conventions import Conventions
from cradle_lib.scoring.core.counts import Masks
from cradle_lib.scoring.errors.confusion import CELLS, pair
from cradle_lib.scoring.errors.error_kinds import (
    ErrorInstance,
    ErrorKind,
    Profile,
    find_errors,
    profile,
)
from cradle_lib.scoring.timing.occurrences import first_positions, positions, scored_rows

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions


_Key = TypeVar("_Key")


class Category(StrEnum):
    """What an error is, in one word; see the module."""

    MISSED_ALERT = "missed_alert"
    MISSED_CONFIRM = "missed_confirm"
    OVER_CONFIRMED = "over_confirmed"
    UNDER_CONFIRMED = "under_confirmed"
    TEMPORAL_SWAP = "temporal_swap"
    WRONG_TYPE = "wrong_type"
    TOO_EARLY = "too_early"
    TOO_LATE = "too_late"
    REPEATED = "repeated"
    UNFOUNDED = "unfounded"


# Categories of a tag that answers no gold label.
SPARE = (Category.TOO_EARLY, Category.TOO_LATE, Category.REPEATED, Category.UNFOUNDED)
MISSED = (Category.MISSED_ALERT, Category.MISSED_CONFIRM)


@dataclass(frozen=True)
class ErrorAnalysis:
    """How one run errs, at turn level.

    Attributes:
        categories: Errors of each category.
        profile: False positives and negatives as Sec 6.1 counts them.
        confirmed_alerts: For gold alerts answered by a confirm, which confirm, most frequent
            first.
        wrong_types: For wrong types, which gold type was taken for which, most frequent first.
    """

    categories: dict[Category, int]
    profile: Profile
    confirmed_alerts: dict[str, int]
    wrong_types: dict[tuple[str, str], int]

    def as_dict(self) -> dict[str, Any]:
        """Everything, ready for strict JSON."""
        found = self.profile
        share = found.flagged_negatives
        return {
            "categories": {str(name): n for name, n in self.categories.items()},
            "false_positives": found.false_positives,
            "false_negatives": found.false_negatives,
            "false_positives_of": dict(found.false_positives_of),
            "false_negatives_of": dict(found.false_negatives_of),
            "flagged_negatives": None if np.isnan(share) else share,
            "alert_to_none": found.alert_to_none,
            "alert_to_confirm": found.alert_to_confirm,
            "confirmed_alerts": dict(self.confirmed_alerts),
            "temporal_swaps": dict(found.temporal_swaps),
            "wrong_types": {f"{a} as {b}": n for (a, b), n in self.wrong_types.items()},
        }


def label_pairs(run: Predictions) -> pd.DataFrame:
    """Pairs the gold labels of every user turn with its tags, as a tidy data frame.

    Args:
        run: What it says about every user turn of its corpus; an unreadable answer tags nothing.

    Returns:
        One row for each pair, paired as ``confusion`` describes; one row
        of ``none`` and ``none`` for a turn with neither gold labels nor tags.

        - ``system`` (str): the run.
        - ``dialogue``, ``turn``, ``position``, ``outcome``, and ``scenario`` and ``timing`` where
          the corpus has them: as in :meth:`.Predictions.to_frame`.
        - ``gold``, ``tagged`` (categorical): a label, or ``none``.
        - ``gold_type``, ``tagged_type`` (categorical): ``alert`` or the crisis type; missing for
          ``none``.
        - ``category`` (categorical): the :class:`Category` of an error; missing where ``gold``
          and ``tagged`` are the same.
    """
    gold, tags = run.corpus.gold, run.masks
    found = [pair(*masks) for masks in zip(gold.tolist(), tags.tolist(), strict=True)]
    turns = run.to_frame().drop(columns=["gold", "gold_mask", "tagged", "tagged_mask", "answer"])
    frame = turns.iloc[np.repeat(np.arange(len(found)), [len(each) for each in found])]
    frame = frame.reset_index(drop=True)
    frame.insert(0, "system", run.record.name)
    cells = np.array([cell for each in found for cell in each], dtype=np.int64).reshape(-1, 2)
    types = [None if cell == NONE else crisis_type(cell) or "alert" for cell in CELLS]
    for name, side in zip(("gold", "tagged"), cells.T, strict=True):
        frame[name] = pd.Categorical.from_codes(side, pd.Index(CELLS))
        named = [types[code] for code in side]
        frame[f"{name}_type"] = pd.Categorical(named, ("alert", *CRISIS_TYPES))
    category = np.full(len(cells), None, dtype=object)
    errors = find_errors(gold, tags)
    category[cells[:, 0] != cells[:, 1]] = categorize(errors, gold, tags, run.corpus.dialogue_of)
    frame["category"] = pd.Categorical(category, [*map(str, Category)])
    return frame


def analyse(run: Predictions, *, conventions: Conventions | None = None) -> ErrorAnalysis:
    """Analyses the errors of a run.

    Args:
        run: What it says about every user turn of its corpus.
        conventions: ``orphans`` and ``unparsed`` matter here; the defaults if ``None``.

    Returns:
        The analysis; an unreadable answer tags nothing.
    """
    rows = scored_rows(run, conventions or Conventions())
    scored = rows.answered
    return analyse_masks(rows.gold[scored], rows.predicted[scored], rows.dialogue_of[scored])


def analyse_masks(gold: Masks, predicted: Masks, dialogue_of: NDArray[np.int64]) -> ErrorAnalysis:
    """Does the work of :func:`analyse` on arrays, each of shape (T,)."""
    errors = find_errors(gold, predicted)
    sorted_out = categorize(errors, gold, predicted, dialogue_of)
    counted = Counter(sorted_out)
    return ErrorAnalysis(
        categories={category: counted[category] for category in Category},
        profile=profile(gold, predicted),
        confirmed_alerts=_ordered(
            Counter(
                error.predicted
                for error, category in zip(errors, sorted_out, strict=True)
                if category is Category.OVER_CONFIRMED
            )
        ),
        wrong_types=_ordered(
            Counter(
                (crisis_type(error.gold) or "", crisis_type(error.predicted) or "")
                for error, category in zip(errors, sorted_out, strict=True)
                if category is Category.WRONG_TYPE
            )
        ),
    )


def categorize(
    errors: list[ErrorInstance], gold: Masks, predicted: Masks, dialogue_of: NDArray[np.int64]
) -> list[Category]:
    """Puts every error into exactly one category.

    Args:
        errors: As :func:`~cradle_lib.scoring.errors.error_kinds.find_errors` lists them.
        gold: Gold masks. Shape (T,).
        predicted: Masks of what was tagged. Shape (T,).
        dialogue_of: Position of each turn's dialogue, ascending. Shape (T,).

    Returns:
        One category for each error.
    """
    n = int(dialogue_of[-1]) + 1 if len(dialogue_of) else 0
    onset, first_tag = (
        first_positions(masks, dialogue_of, n, tuple(BITS.values())) for masks in (gold, predicted)
    )
    place = positions(dialogue_of)
    found = []
    for error in errors:
        match error.kind:
            case ErrorKind.FALSE_NEGATIVE:
                alert = BITS[error.gold] & ALERT_MASK
                found.append(Category.MISSED_ALERT if alert else Category.MISSED_CONFIRM)
            case ErrorKind.STAGE:
                alert = BITS[error.gold] & ALERT_MASK
                found.append(Category.OVER_CONFIRMED if alert else Category.UNDER_CONFIRMED)
            case ErrorKind.TEMPORAL:
                found.append(Category.TEMPORAL_SWAP)
            case ErrorKind.TYPE:
                found.append(Category.WRONG_TYPE)
            case ErrorKind.FALSE_POSITIVE:
                cell = dialogue_of[error.turn], LABELS.index(error.predicted)
                if np.isinf(onset[cell]):
                    found.append(Category.UNFOUNDED)
                elif onset[cell] > place[error.turn]:
                    found.append(Category.TOO_EARLY)
                else:
                    late = first_tag[cell] == place[error.turn]
                    found.append(Category.TOO_LATE if late else Category.REPEATED)
    return found


def _ordered(counted: Counter[_Key]) -> dict[_Key, int]:
    return dict(counted.most_common())
