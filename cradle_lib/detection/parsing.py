"""Reads what a model wrote: the four outcomes of an answer, never merged.

An answer is read as the paper's prompt asks for it: one line with labels separated
by ``; ``, or ``none``. Only the first line that is not empty counts. Letter case,
quotation marks, Markdown emphasis and closing punctuation are forgiven; a word that
is no label is not. What can't be read is ``unparsed``: it tags nothing, keeps its raw
text, and is counted beside every score.
"""

from __future__ import annotations

import re
from enum import StrEnum
from functools import lru_cache
from typing import Final

from cradle_lib.errors import LabelError
from cradle_lib.labels import BITS, NONE, find


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

_THINKING: Final = re.compile(r"</?think>", re.IGNORECASE)
# What models put around a label: quotes, code and emphasis marks, brackets, closing dots.
_WRAPPING: Final = " \t\"'`*“”‘’«»[](){}.,:!"  # noqa: RUF001


# Most answers of a run are the same few.
@lru_cache(maxsize=1 << 12)
def read_answer(text: str) -> tuple[Outcome, int]:
    """Reads a model's answer.

    Args:
        text: What the model wrote. ``<think>`` blocks are taken out first; one that is
            never closed leaves the answer unparsed.

    Returns:
        ``(ok, mask)`` for labels, ``(ok, 0)`` for ``none`` alone, else ``(unparsed, 0)``:
        for an empty answer, an unknown word, or ``none`` beside a label.
    """
    answer = spoken(text)
    if _THINKING.search(answer):
        return Outcome.UNPARSED, 0
    line = first_line(answer)
    names = [part.strip(_WRAPPING) for part in line.strip(_WRAPPING + ";").split(";")]
    if names == [""]:
        return Outcome.UNPARSED, 0
    if [name.lower() for name in names] == [NONE]:
        return Outcome.OK, 0
    mask = 0
    try:
        for name in names:
            mask |= BITS[find(name)]
    except LabelError:
        return Outcome.UNPARSED, 0
    return Outcome.OK, mask


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


def is_cut(text: str) -> bool:
    """Whether an answer that ran into its length limit was cut within the line that counts.

    It is whole if a line break follows the first line that is not empty. An open ``<think>`` block
    counts as cut.
    """
    answer = spoken(text).lstrip()
    whole = len(answer.splitlines()) > 1 or answer.endswith(("\n", "\r"))
    return not whole or _THINKING.search(answer) is not None
