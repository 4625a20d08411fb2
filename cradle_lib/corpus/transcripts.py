"""Recognises lines ``Name: text``, and reads exports of messengers line by line."""

from __future__ import annotations

import re
from collections import Counter
from typing import Final

import pandas as pd

from cradle_lib.errors import CorpusError

_CLOCK: Final = r"\d{1,2}:\d{2}(?::\d{2}(?:[.,]\d+)?)?"
_IN_BRACKETS: Final = rf"\s*[\[(]{_CLOCK}[\])]"
#: What to do about a line that only looks like that of another speaker.
FIX_LINE: Final = "If it is text, put a dash before it: `- Note: ...`."
#: ``Name: text``: a line of a transcript, or the text of a table without a column for the speaker.
#: There may be a time before or after the colon: ``Name [00:05]: text``, ``Name: [00:05] text``.
NAMED: Final = re.compile(
    rf"\A\s*(?P<name>[^\W\d_][^:\uff1a\n]{{0,39}}?)(?P<before>{_IN_BRACKETS}|\s+{_CLOCK})?\s*"
    rf"[:\uff1a](?!//)(?P<after>{_IN_BRACKETS})?(?P<text>.*)",
    re.DOTALL,
)
# Marks of direction, which messengers put around names and in front of their own notes.
_MARKS: Final = re.compile("[\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff]")
_DATE: Final = r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}"
_TIME: Final = r"\d{1,2}[:.]\d{2}(?:[:.]\d{2})?(?:\s?[ap]\.?\s?m\.?)?"
# The start of a message: `12/03/24, 21:00 - `, `[12.03.24, 21:00:05] `, `[21:00, 12/03/2024] `.
_STAMP: Final = re.compile(
    rf"{_MARKS.pattern}*(\[(?:{_DATE},?\s)?{_TIME}\]|\[{_TIME},\s{_DATE}\]|{_DATE},?\s{_TIME}(?:\s?[-\u2013]|:)?)"
    r"\s+(.*)",
    re.IGNORECASE | re.DOTALL,
)
_SENT: Final = re.compile(r"([^:\uff1a\n]{1,60})[:\uff1a](?!//)(.*)", re.DOTALL)
# Texts of the messenger itself: a note, or a placeholder of several words in any language, such as
# <Media omitted>. Notes without a mark of direction are known in English only.
_NOTE: Final = re.compile(
    r"\s*(\u200e.*|<[^<>]*[\s\u0080-\uffff][^<>]*>"
    r"|(you deleted this message|this message was deleted|null|missed (voice|video) call"
    r"|\S+\.\w{2,4} \(file attached\))\.?)\s*",
    re.DOTALL | re.IGNORECASE,
)
_EDITED: Final = re.compile("\\s*\u200e?<This message was edited>\\s*$")


def lines_of(text: str) -> list[str]:
    """Splits at line breaks; unlike ``splitlines``, not at U+2028 and similar characters."""
    return re.split("\r\n|\r|\n", text)


def looks_like_name(name: object) -> bool:
    """Whether a phrase before a colon looks like a name: at most two words, or only capitals."""
    words = str(name).split()
    return len(words) <= 2 or all(word[0].isupper() for word in words)


def is_export(text: str) -> bool:
    """Whether one of the first three lines is the start of a message with its time."""
    first = [line for line in lines_of(text[:10_000]) if line.strip()][:3]
    return any(_STAMP.match(line) for line in first)


def _form(stamp: re.Match[str]) -> tuple[bool, str]:
    """Describes a stamp: whether it has a date, and the signs around it."""
    return re.search(_DATE, stamp[1]) is not None, re.sub(r"\w", "", stamp[1][0] + stamp[1][-1])


def read_export(text: str, notes: Counter[str]) -> tuple[pd.DataFrame, list[int]]:
    """Reads lines with times: the export of a messenger, which is one dialogue, or a transcript.

    If the times have no dates, a blank line before a time ends a dialogue, as in a transcript.
    A line without a time continues the message above, also after blank lines. So does one without a
    sender whose time is written in another form than most. Other lines without a sender, such as a
    note that somebody joined, are counted in ``notes``.

    Returns:
        The columns ``time``, ``speaker`` and ``text``, by the number of the line from 0; and for
        each message the number of its dialogue.

    Raises:
        CorpusError: If it is not clear whether a line continues a message.
    """
    messages: dict[int, list[str]] = {}
    sent, dialogue, dialogues = None, 0, []
    lines = lines_of(text)
    stamps = [_STAMP.match(line) for line in lines]
    forms = Counter(_form(stamp) for stamp in stamps if stamp)
    [(usual, _)] = forms.most_common(1)
    is_dated = usual[0]
    for number, (line, stamp) in enumerate(zip(lines, stamps, strict=True)):
        said = _SENT.match(stamp[2]) if stamp else None
        if stamp and not said and _form(stamp) != usual:
            stamp = None
        if stamp is None and sent is not None:
            messages[sent][2] += f"\n{line}"
            continue
        if stamp is None and messages and line.strip():
            problem = "the line has no time, and the one above no sender"
            hint = "Write the sender and a colon after the time above, or delete both lines."
            raise CorpusError(problem, row=number, hint=hint)
        sent = number if said else None
        if stamp and number and not is_dated and not lines[number - 1].strip():
            dialogue += 1
        if stamp and said:
            name = _MARKS.sub("", said[1]).strip(" ~\u202f")
            own = _EDITED.sub("", said[2])
            dialogues.append(dialogue)
            messages[number] = [stamp[1], name, "" if _NOTE.fullmatch(own) else own]
        elif line.strip():
            notes["lines without a sender, left out"] += 1
    columns = ["time", "speaker", "text"]
    return pd.DataFrame(messages.values(), [*messages], columns, dtype=object), dialogues
