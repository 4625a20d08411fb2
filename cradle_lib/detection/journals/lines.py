"""One line of a journal: how it is written, and what is checked when it is read.

A journal is a text file that anybody can edit, so that nothing of it is believed: every field is
of its kind and within bounds, no key stands twice, and the labels are those which the parser reads
in the raw answer beside them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, Final

from pydantic import ValidationError

from cradle_lib import paths, strict_json
from cradle_lib.detection.parsing import Outcome, read_answer
from cradle_lib.detection.session import Prediction
from cradle_lib.errors import JournalError, LabelError, PromptError
from cradle_lib.labels import format_mask, parse
from cradle_lib.prompts import load_template
from cradle_lib.prompts.template import DETECTION_SLOTS
from cradle_lib.record import Record

# Fields that most engines have nothing to say in: a line holds them only if there is something.
_OPTIONAL: Final = frozenset({"choices", "tokens_written", "served", "dropped"})
_FIELDS: Final = frozenset(Prediction.__dataclass_fields__) - {"mask"} - _OPTIONAL | {"labels"}
# Greater than any count that is true, and small enough for every array.
_MOST: Final = 1 << 40
# Bytes. A header that names ten million dialogues has a quarter of it.
_LONGEST_LINE: Final = 1 << 29


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _MOST


def _number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST


def _choices(value: Any) -> bool:
    # The logarithm of a probability that vanishes is minus infinity.
    return isinstance(value, list) and all(
        isinstance(fork, dict) and all(_number(x) or x == -math.inf for x in fork.values())
        for fork in value
    )


def _texts(value: Any) -> bool:
    return isinstance(value, list) and all(map(_text, value))


def _or_nothing(fits: Callable[[Any], bool]) -> Callable[[Any], bool]:
    return lambda value: value is None or fits(value)


_FITS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    **dict.fromkeys(("dialogue", "key", "answer", "labels", "outcome"), (_text, "text")),
    **dict.fromkeys(("reason", "served"), (_or_nothing(_text), "text")),
    "turn": (_count, "a whole number from 0"),
    **dict.fromkeys(
        ("tokens_in", "tokens_cached", "tokens_written", "tokens_out"),
        (_or_nothing(_count), "a whole number from 0"),
    ),
    "seconds": (lambda value: _number(value) and value >= 0, "a number from 0"),
    "choices": (_or_nothing(_choices), "a list of log-probabilities by text"),
    "dropped": (_texts, "a list of texts"),
}


def to_line(prediction: Prediction) -> dict[str, Any]:
    """Gives a prediction as the object of its line."""
    line = {name: getattr(prediction, name) for name in Prediction.__dataclass_fields__}
    for name in _OPTIONAL:
        if line[name] in (None, ()):
            del line[name]
    labels = format_mask(line.pop("mask"))
    place = {name: line.pop(name) for name in ("dialogue", "turn", "key", "answer")}
    return place | {"labels": labels} | line | {"seconds": round(prediction.seconds, 4)}


def whole_lines(file: BinaryIO, path: Path) -> Iterator[bytes]:
    """Gives the lines of a journal one after the other; a torn last one is left out.

    Args:
        file: The open journal.
        path: Its name, for messages.

    Yields:
        The lines, each with its line break.

    Raises:
        JournalError: If a line has no end that an answer could have.
    """
    number = 0
    while raw := file.readline(_LONGEST_LINE):
        number += 1
        if not raw.endswith(b"\n"):
            if len(raw) == _LONGEST_LINE:
                raise _damaged(path, number, f"is longer than {_LONGEST_LINE:,} bytes")
            return
        yield raw


def read_lines(lines: Iterable[bytes], path: Path) -> Iterator[Record | Prediction]:
    """Reads whole lines of a journal.

    Args:
        lines: The lines, with their line breaks or without.
        path: The journal, for messages.

    Yields:
        Records and predictions, in order. The first is a record, if there is any line at all.

    Raises:
        JournalError: If a line is damaged or edited, or the first is no header. The message
            names the line.
    """
    record: Record | None = None
    # Beside an answer that is asked for as labels stands what it says; drafts of dialogues,
    # which the same journals hold, are judged by whoever reads them.
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
            yield record
        elif record is None:
            raise JournalError(
                f"{paths.shown(path)}: the first line is not the header of a journal. "
                "Choose another place for the run, or move the file away."
            )
        else:
            yield _prediction(line, path, number, labels)


def _asks_for_labels(record: Record) -> bool:
    try:
        return set(load_template(record.prompt, slots=None).slots) >= DETECTION_SLOTS
    except PromptError:
        # A template of another machine.
        return True


def _record(line: dict[str, Any], path: Path, number: int) -> Record:
    try:
        record = Record.model_validate(line["record"])
    except ValidationError as error:
        problem = error.errors()[0]
        where = ".".join(str(part) for part in problem["loc"])
        raise _damaged(path, number, f"has a record whose {where} is wrong") from error
    if line.get("identity") != record.identity:
        raise _damaged(path, number, "has a record that does not match its identity")
    return record


def _prediction(line: dict[str, Any], path: Path, number: int, labels: bool) -> Prediction:
    if line.keys() - _OPTIONAL != _FIELDS:
        odd = ", ".join(sorted((line.keys() - _OPTIONAL) ^ _FIELDS))
        raise _damaged(path, number, f"has missing or unknown fields ({odd:.200})")
    for name, value in line.items():
        fits, expected = _FITS[name]
        if not fits(value):
            problem = f"can't be read: {name} is {value!r:.60}, expected {expected}"
            raise _damaged(path, number, problem)
    values = dict(line)
    try:
        mask = parse(values.pop("labels"))
        outcome = Outcome(values.pop("outcome"))
    except (LabelError, ValueError) as error:
        raise _damaged(path, number, f"can't be read ({error})") from error
    dropped = tuple(values.pop("dropped", ()))
    prediction = Prediction(**values, mask=mask, outcome=outcome, dropped=dropped)
    if mask and outcome is not Outcome.OK:
        raise _damaged(path, number, f"has labels although its outcome is {outcome}")
    said, read = read_answer(prediction.answer)
    # Where there is a reason, the engine knew more than the text says, such as a cut.
    told = outcome is Outcome.OK or (outcome is Outcome.UNPARSED and prediction.reason is None)
    if (told and labels and (said, read) != (outcome, mask)) or (mask and read != mask):
        raise _damaged(
            path,
            number,
            f"says {outcome}, {format_mask(mask)}, and its answer reads as {said}, "
            f"{format_mask(read)}: one of them was edited",
        )
    return prediction


def _damaged(path: Path, number: int, problem: str) -> JournalError:
    return JournalError(
        f"{paths.shown(path)}, line {number}: the line {problem}. "
        "Restore the file, or move it away and run again."
    )
