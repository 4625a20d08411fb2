"""The lines of a journal, carried through a log of Inspect and checked as in a journal."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np

from cradle_lib.corpus import Corpus
from cradle_lib.detection.journals.lines import read_lines, to_bytes
from cradle_lib.detection.journals.predictions import Predictions
from cradle_lib.detection.parsing import OUTCOMES
from cradle_lib.detection.session import Prediction
from cradle_lib.errors import NothingAnsweredError
from cradle_lib.record import Record

#: Under this key the lines of a dialogue stand in a sample's store and in its score.
ANSWERS: Final = "cradle_answers"


def read_answers(lines: Any, record: Record, place: str) -> list[Prediction]:
    """Reads lines as if they stood in a journal.

    Args:
        lines: A list of objects.
        record: The record of the run.
        place: Where they come from, for messages.

    Returns:
        The predictions, in order.

    Raises:
        JournalError: If a line is damaged or was edited.
    """
    written = [to_bytes(record), *(json.dumps(line).encode() for line in lines)]
    found = [line for line, _ in read_lines(written, Path(place))]
    return [line for line in found if isinstance(line, Prediction)]


def aligned(answers: Sequence[Prediction], corpus: Corpus, record: Record) -> Predictions:
    """Aligns answers to the dialogues that they cover completely.

    Raises:
        NothingAnsweredError: If they cover none.
    """
    found = {(answer.dialogue, answer.turn): answer for answer in answers}
    chosen = [
        place
        for place, dialogue in enumerate(corpus)
        if all((dialogue.id, turn.turn_id) in found for turn in dialogue.user_turns)
    ]
    if not chosen:
        raise NothingAnsweredError(
            f"no dialogue of {corpus.name} is answered completely. Let the evaluation run longer."
        )
    whole = len(chosen) == len(corpus)
    part = corpus if whole else corpus.subset(chosen, f"{corpus.name}[{len(chosen)}]")
    rows = [found[dialogue.id, turn.turn_id] for dialogue in part for turn in dialogue.user_turns]
    return Predictions(
        record=record,
        corpus=part,
        masks=np.array([row.mask for row in rows], dtype=np.uint16),
        outcomes=np.array([OUTCOMES.index(row.outcome) for row in rows], dtype=np.uint8),
        answers=tuple(row.answer for row in rows),
        of_turns=len(corpus.gold),
    )
