"""Kinds of error, an error profile, and cases to show (Sec 6.1 and Table 6 of the paper).

An error is a cell off the diagonal of the confusion matrix: a gold label, a predicted label,
or both, paired as :mod:`cradle_lib.scoring.errors.confusion` describes. Its kind follows from the
two labels alone:

    ``false_positive``: a prediction that answers no gold label.
    ``false_negative``: a gold label that no prediction answers.
    ``temporal``: the same crisis type, or two alerts, with ongoing and past swapped.
    ``stage``: an alert where a confirm is gold, or the other way round.
    ``type``: two confirms of different crisis types, whatever their temporal states.

The paper's Table 6 (a) calls a confirm in place of an alert a false positive; here that is
``stage``, because the turn was rightly noticed. False positives and negatives of the tallies
(:mod:`cradle_lib.scoring.core.counts`), and of the paper's Sec 6.1, are wider: there a wrong label
on a turn is one of each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.corpus.dialogue import Corpus, Dialogue, Turn
from cradle_lib.errors import ScoringError
from cradle_lib.labels import CRISIS_TYPES, LABELS, crisis_type, stage
from cradle_lib.scoring.core.counts import Masks, label_counts
from cradle_lib.scoring.errors.confusion import CELLS, NONE_CELL, confusion, pair

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

# What a page can print beside the cases.
RULE: Final = (
    "For each kind of error, in a fixed order, one after another until there are enough: the "
    "turn on which most of the models make an error of this kind, ties broken by a draw with "
    "the seed shown. No dialogue is shown twice."
)


class ErrorKind(StrEnum):
    """What is wrong with a pair of a gold and a predicted label."""

    FALSE_POSITIVE = "false_positive"
    FALSE_NEGATIVE = "false_negative"
    TEMPORAL = "temporal"
    STAGE = "stage"
    TYPE = "type"


def kind_of(gold: int, predicted: int) -> ErrorKind | None:
    """Classifies one cell of the confusion matrix.

    Args:
        gold: Position of the gold label in the order of the labels; 16 for none.
        predicted: The same for the predicted label.

    Returns:
        The kind of error, or ``None`` if the two are the same.
    """
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


@dataclass(frozen=True, slots=True)
class ErrorInstance:
    """One error.

    Attributes:
        turn: Position among the corpus' user turns.
        kind: What is wrong.
        gold: The gold label, or ``none``.
        predicted: The predicted label, or ``none``.
    """

    turn: int
    kind: ErrorKind
    gold: str
    predicted: str


def find_errors(gold: Masks, predicted: Masks) -> list[ErrorInstance]:
    """Lists every error of a run.

    Args:
        gold: Gold masks of T turns. Shape (T,).
        predicted: Masks of what was tagged. Shape (T,).

    Returns:
        The errors, by turn.
    """
    return [
        ErrorInstance(int(turn), kind, CELLS[row], CELLS[column])
        for turn in np.flatnonzero(gold != predicted)
        for row, column in pair(int(gold[turn]), int(predicted[turn]))
        if (kind := kind_of(row, column)) is not None
    ]


@dataclass(frozen=True, slots=True)
class Profile:
    """How a run errs, in the terms of Sec 6.1.

    Attributes:
        kinds: Errors of each kind.
        false_positives: Predicted labels that are not gold on their turn, whatever stands
            there instead.
        false_negatives: Gold labels that were not predicted on their turn.
        false_positives_of: The false positives of each label.
        false_negatives_of: The false negatives of each label.
        flagged_negatives: Share of the turns without gold labels on which something was
            tagged; NaN if every turn has a gold label.
        alert_to_none: Gold alerts that no prediction answers.
        alert_to_confirm: Gold alerts answered by a confirm.
        temporal_swaps: Swaps of ongoing and past by crisis type, and under ``alert``.
    """

    kinds: dict[ErrorKind, int]
    false_positives: int
    false_negatives: int
    false_positives_of: dict[str, int]
    false_negatives_of: dict[str, int]
    flagged_negatives: float
    alert_to_none: int
    alert_to_confirm: int
    temporal_swaps: dict[str, int]


def profile(gold: Masks, predicted: Masks) -> Profile:
    """Summarizes the errors of a run.

    Args:
        gold: Gold masks of T turns. Shape (T,).
        predicted: Masks of what was tagged. Shape (T,).

    Returns:
        The profile.
    """
    matrix = confusion(gold, predicted)
    kinds = dict.fromkeys(ErrorKind, 0)
    swaps = dict.fromkeys(("alert", *CRISIS_TYPES), 0)
    for row, column in np.argwhere(matrix):
        kind = kind_of(row, column)
        if kind is None:
            continue
        kinds[kind] += int(matrix[row, column])
        if kind is ErrorKind.TEMPORAL:
            swaps[crisis_type(LABELS[row]) or "alert"] += int(matrix[row, column])
    alerts = [i for i, label in enumerate(LABELS) if stage(label) == "alert"]
    confirms = [i for i, label in enumerate(LABELS) if stage(label) == "confirm"]
    made_up, missed = label_counts(predicted & ~gold), label_counts(gold & ~predicted)
    negatives = predicted[gold == 0]
    return Profile(
        kinds=kinds,
        false_positives=int(made_up.sum()),
        false_negatives=int(missed.sum()),
        false_positives_of=_by_label(made_up),
        false_negatives_of=_by_label(missed),
        flagged_negatives=float((negatives != 0).mean()) if len(negatives) else float("nan"),
        alert_to_none=int(matrix[alerts, NONE_CELL].sum()),
        alert_to_confirm=int(matrix[np.ix_(alerts, confirms)].sum()),
        temporal_swaps=swaps,
    )


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
    """
    gold, tagged = predictions.corpus.gold, predictions.masks
    found, matrix = profile(gold, tagged), confusion(gold, tagged)
    swap = CELLS.index("alert_ongoing"), CELLS.index("confirm_SI_passive_ongoing")
    values = {
        "fp": found.false_positives,
        "fp_alert_ongoing": found.false_positives_of["alert_ongoing"],
        "gold_negative_turns_flagged": found.flagged_negatives,
        "fn": found.false_negatives,
        "alert_to_none": found.alert_to_none,
        "alert_to_confirm": found.alert_to_confirm,
        "temporal": sum(found.temporal_swaps.values()),
        "alert_ongoing_to_si_passive_ongoing": int(matrix[swap]),
    }
    frame = pd.DataFrame({"quantity": list(values), "value": [float(n) for n in values.values()]})
    frame.insert(0, "system", predictions.record.name)
    frame.insert(1, "over", predictions.over)
    frame.insert(2, "dialogues", len(predictions.corpus))
    flagged = frame["quantity"] == "gold_negative_turns_flagged"
    return frame.assign(unit=np.where(flagged, "share", "count"))


def _by_label(counted: NDArray[np.int64]) -> dict[str, int]:
    return dict(zip(LABELS, counted.tolist(), strict=True))


@dataclass(frozen=True, slots=True)
class Case:
    """One turn that is shown as an example of an error.

    Attributes:
        kind: The kind that it stands for.
        dialogue: The dialogue it is from.
        turn: The turn, with its gold mask.
        position: The turn's position among the corpus' user turns.
        tagged: Each model's mask on this turn, in the order the models were given.
        erring: The models that make an error of this kind here.
    """

    kind: ErrorKind
    dialogue: Dialogue
    turn: Turn
    position: int
    tagged: dict[str, int]
    erring: tuple[str, ...]

    def before(self, turns: int) -> tuple[Turn, ...]:
        """Gives up to so many rows of the dialogue before this turn."""
        return self.dialogue.turns[max(0, self.turn.turn_id - turns) : self.turn.turn_id]


def pick_cases(
    corpus: Corpus,
    predictions: Mapping[str, Masks],
    *,
    per_kind: int = 1,
    seed: int = 0,
) -> list[Case]:
    """Picks error cases by :data:`RULE`, so that nobody chooses the telling ones.

    Args:
        corpus: The corpus with T user turns.
        predictions: Masks of what each model tagged, by the model's name. Shape (T,) each.
        per_kind: How many cases of each kind are wanted.
        seed: Seed of the draw among ties.

    Returns:
        The cases, by kind; fewer where a kind has fewer dialogues left.

    Raises:
        ScoringError: If there is no model, or masks don't have T entries.
    """
    gold = corpus.gold
    if not predictions:
        raise ScoringError("no predictions to pick error cases from. Give at least one model.")
    for name, masks in predictions.items():
        if masks.shape != gold.shape:
            raise ScoringError(
                f"{name} has masks of shape {masks.shape}, {corpus.name} has {len(gold)} user "
                "turns. Every model must have tagged the same corpus."
            )
    erring: dict[ErrorKind, dict[int, dict[str, None]]] = {kind: {} for kind in ErrorKind}
    for name, masks in predictions.items():
        for error in find_errors(gold, masks):
            erring[error.kind].setdefault(error.turn, {})[name] = None
    generator = np.random.default_rng(seed)
    asked = [(dialogue, turn) for dialogue in corpus for turn in dialogue.user_turns]
    shown: set[int] = set()
    cases = []
    for kind in ErrorKind:
        lot = generator.permutation(len(gold))
        found = erring[kind]
        wanted = per_kind
        for position in sorted(found, key=lambda turn: (-len(found[turn]), lot[turn])):
            if not wanted:
                break
            owner = int(corpus.dialogue_of[position])
            if owner in shown:
                continue
            shown.add(owner)
            wanted -= 1
            dialogue, turn = asked[position]
            tagged = {name: int(masks[position]) for name, masks in predictions.items()}
            cases.append(Case(kind, dialogue, turn, position, tagged, tuple(found[position])))
    return cases
