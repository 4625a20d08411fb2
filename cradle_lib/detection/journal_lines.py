"""Writes and validates single lines of a journal.

A journal is a text file that anybody can edit. Every field is checked for its type and range, keys
may occur only once, and the labels must be those that the parser reads in the raw answer.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Final

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from cradle_lib import paths, strict_json
from cradle_lib.detection.parsing import Outcome, read_answer
from cradle_lib.detection.session import Prediction
from cradle_lib.errors import CorpusError, JournalError, RegistryError
from cradle_lib.labels import format_mask, parse
from cradle_lib.prompts import load_template
from cradle_lib.prompts.template import DETECTION_SLOTS
from cradle_lib.record import Record

# Fields that are written only if they are set: most engines do not use them.
_OPTIONAL: Final = frozenset({"choices", "tokens_written", "served", "dropped", "ending"})
# Greater than any real count, and small enough for every integer type.
_MOST: Final = 1 << 40

_Count = Annotated[int, Field(ge=0, lt=_MOST)]


class _Line(BaseModel):
    """The fields of an answer's line: a prediction with its labels as text."""

    model_config = ConfigDict(strict=True, extra="forbid")

    dialogue: str
    turn: _Count
    key: str
    answer: str
    labels: str
    outcome: str
    reason: str | None
    tokens_in: _Count | None
    tokens_cached: _Count | None
    tokens_out: _Count | None
    seconds: Annotated[float, Field(ge=0, le=_MOST)]
    # The log-probability of an impossible answer is minus infinity.
    choices: list[dict[str, Annotated[float, Field(le=_MOST)]]] | None = None
    tokens_written: _Count | None = None
    served: str | None = None
    dropped: list[str] = []
    ending: str | None = None


def to_line(prediction: Prediction) -> dict[str, Any]:
    """Converts a prediction into the JSON object of its line."""
    names = [name for name in Prediction.__dataclass_fields__ if name != "error"]
    line = {"labels" if name == "mask" else name: getattr(prediction, name) for name in names}
    line |= {"labels": format_mask(prediction.mask), "seconds": round(prediction.seconds, 4)}
    return {
        name: value
        for name, value in line.items()
        if name not in _OPTIONAL or value not in (None, ())
    }


def to_bytes(line: Record | Prediction) -> bytes:
    """Gives the line of a record or a prediction, with its line break."""
    if isinstance(line, Prediction):
        content = to_line(line)
    else:
        content = {"record": line.model_dump(), "identity": line.identity}
    # ASCII, so that no reader takes a Unicode line separator in an answer for a new line.
    return (json.dumps(content) + "\n").encode("ascii")


def read_lines(lines: Iterable[bytes], path: Path) -> Iterator[tuple[Record | Prediction, bytes]]:
    """Parses lines, of which the first must be a header.

    Args:
        lines: Complete lines.
        path: The journal, for messages.

    Yields:
        The record or prediction of each line, and the line itself.

    Raises:
        JournalError: If a line is damaged or edited, or the first is no header. The message
            names the line.
    """
    record: Record | None = None
    # Answers that are labels are parsed again. Drafts of dialogues are checked by their reader.
    labels = True
    for number, raw in enumerate(lines, start=1):
        try:
            line = strict_json.loads(raw)
        except ValueError as error:
            raise _damaged(path, number, f"is not JSON ({str(error)[:120]})") from error
        if not isinstance(line, dict):
            raise _damaged(path, number, "is not a JSON object")
        if "record" in line:
            record = _record(line, path, number)
            labels = _asks_for_labels(record)
            yield record, raw
        elif record is None:
            raise no_header(path)
        else:
            yield _prediction(line, path, number, labels), raw


def no_header(path: Path) -> JournalError:
    """Makes the error for a file that is no journal."""
    return JournalError(
        f"{paths.shown(path)}: the first line is not the header of a journal. "
        "Choose another place for the run, or move the file away."
    )


def _asks_for_labels(record: Record) -> bool:
    try:
        return set(load_template(record.prompt, slots=None).slots) >= DETECTION_SLOTS
    except RegistryError:
        # A template of another machine.
        return True


def _record(line: dict[str, Any], path: Path, number: int) -> Record:
    try:
        record = Record.model_validate(line["record"])
    except ValidationError as error:
        where = ".".join(map(str, error.errors()[0]["loc"]))
        raise _damaged(path, number, f"has a record whose {where} is wrong") from error
    if line.get("identity") != record.identity:
        raise _damaged(path, number, "has a record that does not match its identity")
    return record


def _prediction(line: dict[str, Any], path: Path, number: int, labels: bool) -> Prediction:
    try:
        values = vars(_Line.model_validate(line))
        mask = parse(values.pop("labels"))
        outcome = Outcome(values.pop("outcome"))
    except ValidationError as error:
        first = error.errors()[0]
        found = "" if first["type"] == "missing" else f" is {first['input']!r:.60}"
        where = ".".join(map(str, first["loc"]))
        problem = f"can't be read: {where:.60}{found}. {first['msg']}"
        raise _damaged(path, number, problem) from error
    except (CorpusError, ValueError) as error:
        raise _damaged(path, number, f"can't be read ({error})") from error
    dropped = tuple(values.pop("dropped"))
    prediction = Prediction(**values, mask=mask, outcome=outcome, dropped=dropped)
    if mask and outcome is not Outcome.OK:
        raise _damaged(path, number, f"has labels although its outcome is {outcome}")
    said, read = read_answer(prediction.answer)
    # If there is a reason, the engine knew more than the text says, such as a cut.
    readable = outcome is Outcome.OK or (outcome is Outcome.UNPARSED and prediction.reason is None)
    if (readable and labels and (said, read) != (outcome, mask)) or (mask and read != mask):
        raise _damaged(
            path,
            number,
            f"says {outcome}, {format_mask(mask)}, and its answer reads as {said}, "
            f"{format_mask(read)}: one of them was edited, or a version with other rules read it",
        )
    return prediction


def _damaged(path: Path, number: int, problem: str) -> JournalError:
    return JournalError(
        f"{paths.shown(path)}, line {number}: the line {problem}. "
        "Restore the file, or move it away and run again."
    )
