"""What exactly went wrong: every error in one category, and the categories add up.

An error is a cell off the diagonal of the confusion matrix: a gold label, a predicted label,
or both, paired as :mod:`cradle_lib.scoring.confusion` describes. Ten categories say what it
is; five kinds group them, by the two labels alone:

    ``false_negative``: a gold label that no tag answers: ``missed_alert``, ``missed_confirm``.
    ``stage``: a confirm in place of an alert, ``over_confirmed``; the reverse, ``under_confirmed``.
    ``temporal``: ongoing and past taken for each other, ``temporal_swap``; the crisis type is the
        same, or both are alerts.
    ``type``: one crisis type in place of another, ``wrong_type``, whatever the temporal states.
    ``false_positive``: a tag that answers no gold label, by where the dialogue has that label:
        ``too_early``: gold only on a later turn.
        ``too_late``: gold on an earlier turn, where no tag answered it, and this is the dialogue's
        first tag of it; the missed gold label is an error of its own.
        ``repeated``: gold on an earlier turn, and this is a further tag.
        ``unfounded``: nowhere gold in the dialogue.

False positives and false negatives of the tallies (:mod:`cradle_lib.scoring.counts`), and of
the paper's Sec 6.1, are wider: there a wrong label on a turn is one of each. The paper's Table 6
(a) calls a confirm in place of an alert a false positive; here that is ``stage``, because the turn
was rightly noticed.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.labels import BITS, CRISIS_TYPES, LABELS, NONE, UNUSABLE, crisis_type, stage
from cradle_lib.scoring.confusion import CELLS, NONE_CELL, pair
from cradle_lib.scoring.conventions import Conventions
from cradle_lib.scoring.counts import Masks
from cradle_lib.scoring.evaluate import signature_of
from cradle_lib.scoring.occurrences import first_positions
from cradle_lib.scoring.signature import signed
from cradle_lib.statistics.matching import positions

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions


class ErrorKind(StrEnum):
    """What is wrong with a pair of a gold and a predicted label."""

    FALSE_POSITIVE = "false_positive"
    FALSE_NEGATIVE = "false_negative"
    TEMPORAL = "temporal"
    STAGE = "stage"
    TYPE = "type"


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


# Where a kind has two categories, the first one is that of a gold alert.
_CATEGORIES: Final[dict[ErrorKind, tuple[Category, ...]]] = {
    ErrorKind.FALSE_NEGATIVE: (Category.MISSED_ALERT, Category.MISSED_CONFIRM),
    ErrorKind.STAGE: (Category.OVER_CONFIRMED, Category.UNDER_CONFIRMED),
    ErrorKind.TEMPORAL: (Category.TEMPORAL_SWAP,),
    ErrorKind.TYPE: (Category.WRONG_TYPE,),
    ErrorKind.FALSE_POSITIVE: tuple(Category)[6:],
}
#: The kind that each category belongs to.
KINDS: Final = {category: kind for kind, own in _CATEGORIES.items() for category in own}
_NUMBER: Final = {category: number for number, category in enumerate(Category)}


def kind_of(gold: int, predicted: int) -> ErrorKind | None:
    """Classifies one cell of the confusion matrix, by its place; ``None`` on the diagonal."""
    if gold == predicted:
        return None
    if gold == NONE_CELL:
        return ErrorKind.FALSE_POSITIVE
    if predicted == NONE_CELL:
        return ErrorKind.FALSE_NEGATIVE
    if stage(LABELS[gold]) != stage(LABELS[predicted]):
        return ErrorKind.STAGE
    if crisis_type(LABELS[gold]) == crisis_type(LABELS[predicted]):
        return ErrorKind.TEMPORAL
    return ErrorKind.TYPE


def _category_number(gold: int, predicted: int) -> int:
    """The category as far as the two labels decide it; -1 for none, and for a false positive."""
    kind = kind_of(gold, predicted)
    if kind is None or kind is ErrorKind.FALSE_POSITIVE:
        return -1
    return _NUMBER[_CATEGORIES[kind][0 if stage(LABELS[gold]) == "alert" else -1]]


_OF_CELL: Final = np.array(
    [[_category_number(row, column) for column in range(17)] for row in range(17)]
)
_TYPES: Final = [None if cell == NONE else crisis_type(cell) or "alert" for cell in CELLS]


def classify(gold: Masks, tagged: Masks, dialogue_of: NDArray[np.int64]) -> pd.DataFrame:
    """Pairs gold labels with tags, turn by turn, and classifies every error.

    Two masks for each of T turns, and the position of the turn's dialogue, ascending. Shape (T,).

    Returns:
        One row for each pair, by turn; one row of ``none`` and ``none`` for a turn with neither
        gold labels nor tags.

        - ``row`` (int): position of the turn, 0 to T - 1.
        - ``gold``, ``tagged`` (categorical): a label, or ``none``.
        - ``gold_type``, ``tagged_type`` (categorical): ``alert`` or the crisis type; missing for
          ``none``.
        - ``category`` (categorical): the :class:`Category` of an error; missing where ``gold``
          and ``tagged`` are the same.
    """
    found = [pair(*masks) for masks in zip(gold.tolist(), tagged.tolist(), strict=True)]
    rows = np.repeat(np.arange(len(found)), [len(each) for each in found])
    cells = np.array([cell for each in found for cell in each], dtype=np.int64).reshape(-1, 2)
    number = _OF_CELL[cells[:, 0], cells[:, 1]]

    spare = np.flatnonzero((cells[:, 0] == NONE_CELL) & (cells[:, 1] != NONE_CELL))
    n = int(dialogue_of[-1]) + 1 if len(dialogue_of) else 0
    where = dialogue_of[rows[spare]], cells[spare, 1]
    place = positions(dialogue_of)[rows[spare]]
    onset, first_tag = (
        first_positions(masks, dialogue_of, n, tuple(BITS.values()))[where]
        for masks in (gold, tagged)
    )
    number[spare] = np.select(
        [np.isinf(onset), onset > place, first_tag == place],
        [_NUMBER[Category.UNFOUNDED], _NUMBER[Category.TOO_EARLY], _NUMBER[Category.TOO_LATE]],
        _NUMBER[Category.REPEATED],
    )
    frame = pd.DataFrame({"row": rows})
    for name, side in zip(("gold", "tagged"), cells.T, strict=True):
        frame[name] = pd.Categorical.from_codes(side, pd.Index(CELLS))
        types = [_TYPES[code] for code in side]
        frame[f"{name}_type"] = pd.Categorical(types, ("alert", *CRISIS_TYPES))
    frame["category"] = pd.Categorical.from_codes(number, pd.Index([str(c) for c in Category]))
    return frame


def _apart(pairs: pd.DataFrame, usable: NDArray[np.bool_]) -> pd.DataFrame:
    """Names unusable answers in ``tagged``, so that they are not taken for *none*."""
    tagged = pairs["tagged"].cat.add_categories([UNUSABLE])
    return pairs.assign(tagged=tagged.where(usable[pairs["row"].to_numpy()], UNUSABLE))


def label_pairs(run: Predictions) -> pd.DataFrame:
    """Pairs the gold and predicted labels of every user turn, as a tidy data frame.

    Args:
        run: What it says about every user turn of its corpus.

    Returns:
        One row for each pair, as :func:`classify` gives them, with these columns beside its own.

        - ``system`` (str): the run. ``tagged`` is ``unusable answer`` where ``outcome`` is not
          ``ok``.
        - ``dialogue``, ``turn``, ``position``, ``outcome``, and ``scenario`` and ``timing`` where
          the corpus has them: as in :meth:`.Predictions.to_frame`.

        ``attrs["signature"]`` is what the run was measured under.
    """
    pairs = _apart(classify(run.corpus.gold, run.masks, run.corpus.dialogue_of), run.ok)
    turns = run.to_frame().drop(columns=["gold", "gold_mask", "tagged", "tagged_mask", "answer"])
    turns = turns.iloc[pairs.pop("row")].reset_index(drop=True)
    turns.insert(0, "system", run.record.name)
    return signed(pd.concat([turns, pairs], axis=1), signature_of(run, Conventions()))


_SHARE: Final = "gold_negative_turns_flagged"
# The pairs that each quantity of `error_counts` is about.
_COUNTED: Final[dict[str, dict[str, str]]] = {
    "fp": {"tagged": "any", "category": "any"},
    "fp_alert_ongoing": {"tagged": "alert_ongoing", "category": "any"},
    _SHARE: {"gold": NONE, "tagged": "any", "pairing": "all"},
    "fn": {"gold": "any", "category": "any"},
    "alert_to_none": {"gold": "alert", "tagged": NONE},
    "alert_to_confirm": {"gold": "alert", "tagged": "confirm"},
    "temporal": {"category": Category.TEMPORAL_SWAP},
    "alert_ongoing_to_si_passive_ongoing": {
        "gold": "alert_ongoing",
        "tagged": "confirm_SI_passive_ongoing",
    },
}
# What stands for several labels or categories there.
_MEANT: Final[dict[str, tuple[str, ...]]] = {
    "any": (*LABELS, *Category),
    **{name: tuple(x for x in LABELS if stage(x) == name) for name in ("alert", "confirm")},
}


def error_counts(predictions: Predictions) -> pd.DataFrame:
    """Counts a run's errors at turn level in the terms of Sec 6.1, as a tidy data frame.

    Args:
        predictions: The run.

    Returns:
        One row for each quantity.

        - ``system`` (str): the model's name; ``over`` (str): over which dialogues, as a heading;
          ``dialogues`` (int): how many these are.
        - ``quantity`` (str): ``fp``, ``fp_alert_ongoing``, ``gold_negative_turns_flagged``, ``fn``,
          ``alert_to_none``, ``alert_to_confirm``, ``temporal`` (ongoing and past swapped), and
          ``alert_ongoing_to_si_passive_ongoing``. As in the paper, a wrong label on a turn is one
          ``fp`` and one ``fn``.
        - ``value`` (float): a number of labels, or a share of the turns without gold labels; NaN
          if there is no such turn.
        - ``unit`` (str): ``count`` or ``share``.
        - ``gold``, ``tagged``, ``category``, ``pairing`` (str): which pairs it counts, or for the
          share on which turns they are: a label, a stage, ``none`` or ``any``; missing where
          nothing is asked. ``outcome`` (str): ``ok`` where the run has unusable answers that the
          quantity does not count; missing elsewhere.

        ``attrs["signature"]`` is what the run was measured under.
    """
    corpus, tagged = predictions.corpus, predictions.masks
    pairs = _apart(classify(corpus.gold, tagged, corpus.dialogue_of), predictions.ok)
    values = {
        quantity: np.all(
            [pairs[c].isin(_MEANT.get(name, (name,))) for c, name in wanted.items() if c in pairs],
            axis=0,
        ).sum()
        for quantity, wanted in _COUNTED.items()
    }
    negatives = tagged[corpus.gold == 0]
    values[_SHARE] = (negatives != 0).mean() if len(negatives) else np.nan
    frame = pd.DataFrame(
        {
            "system": predictions.record.name,
            "over": predictions.over,
            "dialogues": len(corpus),
            "quantity": list(values),
            "value": np.array(list(values.values()), dtype=np.float64),
            "unit": ["share" if quantity == _SHARE else "count" for quantity in values],
        }
    )
    columns = ["gold", "tagged", "category", "pairing"]
    frame = frame.join(pd.DataFrame(list(_COUNTED.values()), columns=columns, dtype=str))
    usable_only = (frame["tagged"] == NONE) & bool(not predictions.ok.all())
    frame["outcome"] = usable_only.map({True: "ok", False: None})
    return signed(frame, signature_of(predictions, Conventions()))
