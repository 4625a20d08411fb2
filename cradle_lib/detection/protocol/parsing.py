"""Parses a model's answer into labels and one of four outcomes.

The prompt asks for one line with labels separated by ``; ``, or ``none``. These additions are also
accepted, and such answers are counted (:func:`needs_cleaning`):

- upper case, quotation marks, brackets, closing punctuation, and Markdown: code fences, backticks,
  bold and italic marks, escaped underscores, list bullets and numbers;
- a leading ``Answer:``, ``Final answer:`` or ``Label:``, also in the plural or as a heading;
- labels on several lines, which are read together;
- a last part headed ``Explanation:``, ``Reason:``, ``Reasoning:``, ``Rationale:`` or
  ``Justification:``, if it names no further label.

Every other answer is ``unparsed``: if a line contains any other word, if ``none`` and a label are
given together, or if the answer is empty. Unparsed answers count as no prediction. Their raw text
is kept, and their number is reported with every score.

:mod:`.journal` parses stored answers again with these rules and refuses a journal if the labels
differ, so a change here can make older journals unreadable.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from cradle_lib.detection.protocol.thoughts import is_open, without_thoughts
from cradle_lib.labels import BITS, NONE, union


class Outcome(StrEnum):
    """Outcome of one question to a model.

    ``ok``: labels, or ``none``. ``unparsed``: an answer that can't be read as either.
    ``refused``: the model or its provider declined. ``failed``: no answer arrived.
    """

    OK = "ok"
    UNPARSED = "unparsed"
    REFUSED = "refused"
    FAILED = "failed"


OUTCOMES: Final[tuple[Outcome, ...]] = tuple(Outcome)

_MASKS: Final = {NONE: 0} | {label.lower(): bit for label, bit in BITS.items()}
# Quotes, code and emphasis marks, brackets and punctuation before and after a label.
_BEFORE: Final = " \t\"'`*_“”‘’«»[](){}.,:"  # noqa: RUF001
_AFTER: Final = _BEFORE + "!"
_ESCAPED: Final = re.compile(r"\\([_*`\[\]().-])")
_FENCE: Final = re.compile(r"(?:`{3,}|~{3,})\s*(?:text|txt|plaintext|markdown|md|json|yaml)?", re.I)
_BULLET: Final = re.compile(r"(?:[-+•]|[1-9][0-9]?[.)])\s+")
# An empty checkbox next to a label means that the label does not apply.
_EMPTY_BOX: Final = re.compile(r"\[\s*\]|\(\s*\)")
_HEADING: Final = r"(?:\#{1,6}\s+)?[*_`\"']*(?:%s)[*_`\"'\s]*(?::|$)"
_ANSWER_HEADING: Final = re.compile(_HEADING % r"(?:final\s+)?(?:answers?|labels?)", re.I)
_EXPLANATION: Final = re.compile(
    _HEADING % "explanation|reason|reasoning|rationale|justification", re.I
)
_NOT_LETTERS: Final = re.compile(r"[\W_]+")


# Most answers of a run are one of a few texts.
@lru_cache(maxsize=1 << 12)
def read_answer(text: str) -> tuple[Outcome, int]:
    """Parses a model's answer.

    Args:
        text: The model's raw text. Thoughts are removed first (:mod:`.thoughts`); an unclosed
            thought makes the answer unparsed.

    Returns:
        ``(ok, mask)`` for labels, ``(ok, 0)`` for ``none`` alone, else ``(unparsed, 0)``.
    """
    answer = without_thoughts(text)
    masks = _read_lines(answer)
    if is_open(answer) or not masks:
        return Outcome.UNPARSED, 0
    return Outcome.OK, union(masks)


def needs_cleaning(text: str) -> bool:
    """Whether an answer can be read although it is not written as the prompt asks.

    The prompt asks for one line with labels separated by ``;``, or ``none``. Thoughts and white
    space are ignored.
    """
    names = [name.strip(" \t") for name in without_thoughts(text).strip().split(";")]
    as_asked = names == [NONE] or all(name in BITS for name in names)
    return not as_asked and read_answer(text)[0] is Outcome.OK


def _read_lines(answer: str) -> list[int] | None:
    """Parses the lines of an answer, which may be truncated.

    Returns:
        The labels of each line, 0 for ``none``; empty if there is no line. ``None`` if the answer
        is unparsed, regardless of further lines.
    """
    lines = [_ESCAPED.sub(r"\1", line.strip()) for line in answer.splitlines()]
    lines = [line for line in lines if line and not _FENCE.fullmatch(line)]
    heading = _ANSWER_HEADING.match(lines[0]) if lines else None
    if heading:
        after = lines[0][heading.end() :].strip()
        lines = [after, *lines[1:]] if after.strip(_AFTER) else lines[1:]
    numbers = range(1, len(lines))
    end = next((n for n in numbers if _EXPLANATION.match(lines[n])), len(lines))
    masks: list[int] = []
    for line in lines[:end]:
        mask = _read_line(line)
        if mask is None:
            return None
        masks.append(mask)
    contradictory = 0 in masks and any(masks)
    if contradictory or _names_others("\n".join(lines[end:]), union(masks)):
        return None
    return masks


def _read_line(line: str) -> int | None:
    """Parses a line of labels; 0 for ``none`` alone, ``None`` if the line has any other word."""
    if _EMPTY_BOX.search(line):
        return None
    bullet = _BULLET.match(line)
    line = line[bullet.end() :] if bullet else line
    line = line.lstrip(_BEFORE + ";").rstrip(_AFTER + ";")
    names = [part.lstrip(_BEFORE).rstrip(_AFTER).lower() for part in line.split(";")]
    if names == [NONE]:
        return 0
    masks = [_MASKS.get(name, 0) for name in names]
    return union(masks) if all(masks) else None


def _names_others(explanation: str, read: int) -> bool:
    """Whether an explanation names a label that was not read, or ``none`` although labels were.

    Spaces and hyphens count as underscores.
    """
    words = f"_{_NOT_LETTERS.sub('_', explanation.lower())}_"
    named = [mask for name, mask in _MASKS.items() if f"_{name}_" in words]
    return any(mask & ~read for mask in named) or (0 in named and read != 0)


def first_line(text: str) -> str:
    """Gives the first line that is not blank, or an empty text."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def is_cut(text: str) -> bool:
    """Whether a truncated answer might be parsed differently if it were complete.

    It might, because labels may follow on any line, unless a complete line already makes it
    unparsed. An unclosed thought counts as cut.
    """
    answer = without_thoughts(text)
    finished = [line for line in answer.splitlines(keepends=True) if line.splitlines() != [line]]
    return is_open(answer) or _read_lines("".join(finished)) is not None
