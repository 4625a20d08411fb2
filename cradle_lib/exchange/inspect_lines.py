"""The lines of a journal, carried through a log of Inspect and checked as in a journal."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, Final

from cradle_lib.detection.journals.lines import read_lines, to_bytes
from cradle_lib.detection.session import Prediction
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
