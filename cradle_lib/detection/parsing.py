"""Reads what a model wrote: the four outcomes of an answer, never merged.

The prompt asks for one line with labels separated by ``; ``, or ``none``. These departures from
that form are accepted around the labels, and counted (:func:`needs_cleaning`):

- letter case, quotation marks, brackets, closing punctuation, and Markdown: code fences, backticks,
  bold and italic marks, escaped underscores, list bullets;
- one leading ``Answer:``, ``Final answer:``, ``Label:`` or ``Labels:`` (also in the plural), on the
  first line or on a line before it;
- labels on several lines, which are read together;
- an explanation in sentences of its own after the labels, which is ignored.

Everything else is ``unparsed``: a first line that contains another word, ``none`` beside a label,
labels that a sentence continues, and text after the answer that names a label which was not read.
An unparsed answer predicts nothing, keeps its raw text, and is counted beside every score.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from cradle_lib.labels import BITS, NONE, labels_of, union


class Outcome(StrEnum):
    """What became of one question to a model.

    ``ok``: labels, or ``none``. ``unparsed``: an answer that can't be read as either.
    ``refused``: the model or its provider declined. ``failed``: no answer came.
    """

    OK = "ok"
    UNPARSED = "unparsed"
    REFUSED = "refused"
    FAILED = "failed"


OUTCOMES: Final[tuple[Outcome, ...]] = tuple(Outcome)

#: What data frames show instead of labels where the outcome is not ``ok``.
UNUSABLE: Final = "unusable"

_THINKING: Final = re.compile(r"</?think>", re.IGNORECASE)
# What models put before and after a label: quotes, code and emphasis marks, brackets, punctuation.
_BEFORE: Final = " \t\"'`*_“”‘’«»[](){}.,:"  # noqa: RUF001
_AFTER: Final = _BEFORE + "!"
_ESCAPED: Final = re.compile(r"\\([_*`\[\]().-])")
_FENCE: Final = re.compile(r"(?:`{3,}|~{3,})\s*([\w+-]*)")
_BULLET: Final = re.compile(r"(?:[-+•]|[1-9][0-9]?[.)])\s+")
_LEAD: Final = re.compile(
    r"(?:\#{1,6}\s+)?[*_`\"']*(?:final\s+)?(?:answers?|labels?)[*_`\"'\s]*(?::|$)", re.IGNORECASE
)
# A box that may be ticked. An empty one says that the label does not apply.
_BOX: Final = re.compile(r"\[\s*\]|\(\s*\)")
# Words with such a part are labels, or are meant as one: DV_past, confirm_hurt.
_LABEL_PARTS: Final = ("alert_", "confirm_", "_ongoing", "_past")
_WORD: Final = re.compile(r"\w+")
_BY_NAME: Final = {NONE: 0} | {label.lower(): bit for label, bit in BITS.items()}


# Most answers of a run are the same few.
@lru_cache(maxsize=1 << 12)
def read_answer(text: str) -> tuple[Outcome, int]:
    """Reads a model's answer.

    Args:
        text: What the model wrote. ``<think>`` blocks are taken out first; one that is
            never closed leaves the answer unparsed.

    Returns:
        ``(ok, mask)`` for labels, ``(ok, 0)`` for ``none`` alone, else ``(unparsed, 0)``:
        for an empty answer, an unknown word, ``none`` beside a label, or a label that is only
        named in the text after the answer.
    """
    answer = spoken(text)
    masks, rest = _answer_lines(answer)
    if _THINKING.search(answer) or _contradicted(masks, rest):
        return Outcome.UNPARSED, 0
    return Outcome.OK, union(masks)


def needs_cleaning(text: str) -> bool:
    """Whether an answer can be read although it is not written as the prompt asks.

    As asked is one line with nothing but labels separated by ``;``, or ``none``. Thoughts and the
    white space around labels do not matter.
    """
    names = [name.strip(" \t") for name in spoken(text).strip().split(";")]
    asked = names == [NONE] or all(name in BITS for name in names)
    return not asked and read_answer(text)[0] is Outcome.OK


def _answer_lines(answer: str) -> tuple[list[int], list[str]]:
    """Reads lines up to the first one that is not an answer.

    Returns:
        The labels of each answer line, 0 for ``none``, and the lines that follow.
    """
    lines = [_ESCAPED.sub(r"\1", line.strip()) for line in answer.splitlines()]
    lines = [line for line in lines if line and not _is_fence(line)]
    if lines and (lead := _LEAD.match(lines[0])):
        # The label may follow on the same line, or on the next one.
        first = lines[0][lead.end() :]
        lines = [first, *lines[1:]] if first.strip(_AFTER) else lines[1:]
    masks: list[int] = []
    for number, line in enumerate(lines):
        mask = _line_mask(line)
        if mask is None:
            return masks, lines[number:]
        masks.append(mask)
    return masks, []


def _is_fence(line: str) -> bool:
    """Whether a line opens or closes a block of code, perhaps with the name of a language."""
    found = _FENCE.fullmatch(line)
    return found is not None and _line_mask(found[1]) is None


def _line_mask(line: str) -> int | None:
    """Reads a line of labels; 0 for ``none`` alone, ``None`` if anything else is in it."""
    bullet = _BULLET.match(line)
    line = line[bullet.end() :] if bullet else line
    if _BOX.search(line):
        return None
    line = line.lstrip(_BEFORE + ";").rstrip(_AFTER + ";")
    names = [part.lstrip(_BEFORE).rstrip(_AFTER).lower() for part in line.split(";")]
    masks = [_BY_NAME.get(name) for name in names]
    if None in masks or (0 in masks and len(masks) > 1):
        return None
    return union(mask for mask in masks if mask is not None)


def _contradicted(masks: list[int], rest: list[str]) -> bool:
    """Whether no answer was read, or what was read is doubtful.

    It is if lines deny each other, if a sentence goes on after the labels, or if the text after
    them names others.

    Args:
        masks: The labels of each answer line.
        rest: The lines after the answer.
    """
    if not masks or (0 in masks and any(masks)):
        return True
    if rest and rest[0][:1].islower():
        return True
    read = union(masks)
    names = {label.lower() for label in labels_of(read)}
    for line in rest:
        lead = _LEAD.match(line)
        if read and _line_mask(line[lead.end() :] if lead else line) == 0:
            return True
        words = (word.lower().strip("_") for word in _WORD.findall(line))
        if any(w not in names and any(part in w for part in _LABEL_PARTS) for w in words):
            return True
    return False


def spoken(text: str) -> str:
    """Takes out what stands from each ``<think>`` to the next ``</think>``.

    It looks at each tag once. A pattern for the whole block would search the rest of the text
    again from every tag that is never closed.
    """
    kept: list[str] = []
    start: int | None = None
    end = 0
    for tag in _THINKING.finditer(text):
        closes = tag[0].startswith("</")
        if start is None and not closes:
            start = tag.start()
        elif start is not None and closes:
            kept.append(text[end:start])
            start, end = None, tag.end()
    return "".join(kept) + text[end:]


def first_line(text: str) -> str:
    """Gives the first line that holds more than white space, or an empty text."""
    return next((line.strip() for line in text.splitlines() if line.strip()), "")


def is_settled(text: str) -> bool:
    """Whether a text is unparsed, whatever a model still adds to it.

    Only whole lines are judged. While a ``<think>`` block is open, nothing is settled.
    """
    answer = spoken(text)
    masks, rest = _answer_lines(_whole_lines(answer))
    begun = bool(masks or rest) and not _THINKING.search(answer)
    return begun and _contradicted(masks, rest)


def is_cut(text: str) -> bool:
    """Whether an answer that ran into its length limit was cut within the lines that are read.

    It was not if it is settled, or if a line that is no answer has begun after the labels. An open
    ``<think>`` block counts as cut.
    """
    answer = spoken(text)
    if _THINKING.search(answer):
        return True
    whole = _whole_lines(answer)
    masks, rest = _answer_lines(whole)
    if rest or is_settled(text):
        return False
    return not masks or _may_become_answer(answer[len(whole) :])


def _whole_lines(text: str) -> str:
    """Leaves out a last line that has not ended."""
    lines = text.splitlines(keepends=True)
    if lines and lines[-1].splitlines() == [lines[-1]]:
        lines.pop()
    return "".join(lines)


def _may_become_answer(line: str) -> bool:
    """Whether the beginning of a line could still go on as labels, or as ``none``."""
    begun = _ESCAPED.sub(r"\1", line.strip()).lower()
    begun = begun[bullet.end() :] if (bullet := _BULLET.match(begun)) else begun
    *before, last = begun.lstrip(_BEFORE + ";-+•~0123456789").split(";")
    last = last.lstrip(_BEFORE).rstrip(_AFTER + "\\")
    could = any(name.startswith(last) for name in _BY_NAME)
    return could and (not before or _line_mask(";".join(before)) is not None)
