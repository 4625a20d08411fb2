"""What became of each label on a turn: right, missed, or another one in its place."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from cradle_lib.detection.parsing import OUTCOMES, Outcome
from cradle_lib.scoring.confusion import CELLS, NONE_CELL, pair
from cradle_lib.scoring.error_types import ErrorKind, kind_of

if TYPE_CHECKING:
    from cradle_lib.detection.predictions import Predictions

#: A label, its mark (``correct``, or an :class:`.ErrorKind`) and what the mark says.
Mark = tuple[str, str, str]
_NOTES: Final = {
    None: "correct",
    ErrorKind.FALSE_POSITIVE: "not in gold",
    ErrorKind.FALSE_NEGATIVE: "missed",
}


def marks(gold: int, predicted: int) -> list[Mark]:
    """Marks each label on a turn, which has a gold mask and a predicted one.

    The label is the predicted one, or the gold label where it was missed. Labels are paired as in
    the confusion matrix.
    """
    found: list[Mark] = []
    for row, column in pair(gold, predicted):
        if row == column == NONE_CELL:
            continue
        kind = kind_of(row, column)
        note = _NOTES.get(kind, f"in place of {CELLS[row]}")
        label = CELLS[row if column == NONE_CELL else column]
        found.append((label, kind or "correct", note))
    return found


def turn_marks(runs: Sequence[Predictions]) -> dict[str, dict[tuple[str, int], str | list[Mark]]]:
    """Marks the predictions of runs on every user turn, for :func:`.show_examples`.

    Args:
        runs: Runs over the dialogues that are shown or over parts of them.

    Returns:
        For each run by its name: dialogue id and ``turn_id`` to its marks, or to the outcome of an
        answer that could not be used. Turns on which a run was not asked are left out.
    """
    found: dict[str, dict[tuple[str, int], str | list[Mark]]] = {}
    for run in runs:
        turns = [(d.id, turn) for d in run.corpus for turn in d.user_turns]
        own = found.setdefault(run.record.name, {})
        for (dialogue, turn), mask, code in zip(
            turns, run.masks.tolist(), run.outcomes.tolist(), strict=True
        ):
            usable = OUTCOMES[code] is Outcome.OK
            own[dialogue, turn.turn_id] = marks(turn.mask, mask) if usable else str(OUTCOMES[code])
    return found
