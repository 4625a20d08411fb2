"""Reads the messages of a file in one of the usual forms: chat messages, a table or a transcript.

Reads only: :mod:`.conversion` decides which speaker is the User and what a column means.
"""

from __future__ import annotations

import codecs
import re
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

from cradle_lib.corpus.tables import brief, parse_json, read_parquet, split_csv
from cradle_lib.errors import CorpusError

CHAT: Final = "chat messages"
TABLE: Final = "a table"
TRANSCRIPT: Final = "a transcript"
#: ``Name: text``: a line of a transcript, or the text of a table without a column for the speaker.
NAMED: Final = re.compile(r"\s*([^\W\d_][^:\uff1a\n]{0,39})[:\uff1a](?!//)(.*)", re.DOTALL)
_SEPARATORS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_JSON_START: Final = re.compile(r'\s*(\{\s*["}]|\[\s*[\[{])')


class Message(NamedTuple):
    """One message of a file.

    Attributes:
        row: Zero-based row of the table or of the dialogue that it is in, or line of a transcript.
        cells: Its fields by name.
        dialogue: Zero-based position of its dialogue, if the form of the file says so.
    """

    row: int
    cells: Mapping[str, Any]
    dialogue: int = 0


class Source(NamedTuple):
    """The messages of a file.

    Attributes:
        form: :data:`CHAT`, :data:`TABLE` or :data:`TRANSCRIPT`.
        messages: All messages, in the order of the file.
        details: How it was read: ``encoding`` and ``separator``, where they apply.
        dialogues: The fields of each dialogue beside its messages, if the form says so.
    """

    form: str
    messages: Sequence[Message]
    details: Mapping[str, str]
    dialogues: Sequence[Mapping[str, Any]] = ()


def read_source(path: Path, encoding: str | None = None) -> Source:
    """Reads the messages of a file and recognises its form.

    Args:
        path: A parquet, CSV, JSON or JSON lines file, or a transcript with any other ending.
        encoding: Encoding of a text file, as Python names it. By default it is UTF-8, UTF-16 after
            a byte order mark, or else Windows-1252 if most letters are ASCII then.

    Raises:
        CorpusError: If the file can't be read, is damaged or cut off, or mixes forms.
    """
    ending = path.suffix.lower()
    try:
        if ending == ".parquet":
            columns = read_parquet(path, (), None)
            rows = zip(*columns.values(), strict=True)
            return _from_records([dict(zip(columns, row, strict=True)) for row in rows], {})
        text, used = _decode(path.read_bytes(), encoding)
        details = {"encoding": used}
        if ending in (".json", ".jsonl", ".ndjson") or _JSON_START.match(text):
            return _from_records(parse_json(text), details)
        if ending not in (".csv", ".tsv", ".tab") and NAMED.match(text):
            return _transcript(text, details)
        return _table(text, details)
    except CorpusError as error:
        raise error.located(path) from None
    except OSError as error:
        raise CorpusError(f"can't be read ({error.strerror})", path=path) from None


def _decode(content: bytes, encoding: str | None) -> tuple[str, str]:
    """Decodes a file; returns the encoding too."""
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    tried = [encoding] if encoding else ["utf-16"] if marked else ["utf-8", "windows-1252"]
    for name in tried:
        with suppress(UnicodeDecodeError, LookupError):
            text = content.decode(name).removeprefix("\ufeff")
            # Text in another script has more letters beyond ASCII if read as Windows-1252.
            letters = [letter for letter in text if letter.isalpha()]
            foreign = sum(not letter.isascii() for letter in letters) > 0.3 * len(letters)
            if (
                text.strip()
                and "\0" not in text
                and (encoding or name != "windows-1252" or not foreign)
            ):
                return text, name
    raise CorpusError(
        f"the file is empty or no text in {' or '.join(tried)}",
        hint="Give its encoding, such as --encoding utf-16-le or windows-1251. Save a spreadsheet "
        "as CSV, and a document as plain text.",
    )


def _from_records(items: Sequence[Any], details: Mapping[str, str]) -> Source:
    """Recognises dialogues that have lists of messages, one such list, or rows of a table."""
    items = [{"messages": item} if isinstance(item, list) else item for item in items]
    for row, item in enumerate(items):
        if not isinstance(item, dict):
            raise CorpusError(f"found {brief(item)}, expected an object", row=row)
    lists = {n: v for item in items for n, v in item.items() if v and _is_messages(v)}
    if not lists:
        messages = [Message(row, item) for row, item in enumerate(items)]
        if all({"role", "content"} <= item.keys() for item in items):
            return Source(CHAT, messages, details)
        return Source(TABLE, messages, details)
    usual = [name for name in ("messages", "conversations") if name in lists]
    [name, *more] = usual or lists
    if more:
        problem = f"{name} and {more[0]} could both be the messages"
        raise CorpusError(problem, hint="Keep one of them in the file.")
    if len(items) == 1 and not usual and any(map(_is_messages, lists[name][0].values())):
        # An object around a list of dialogues, such as {"data": [{"messages": [...]}, ...]}.
        return _from_records(lists[name], details)
    messages = []
    for row, item in enumerate(items):
        if not _is_messages(item.get(name)):
            hint = "All dialogues of a file have the same form: split the file."
            problem = f"{name} is no list of objects here; found {', '.join(item):.200}"
            raise CorpusError(problem, row=row, hint=hint)
        messages += [Message(row, each, row) for each in item[name]]
    about = [{key: item[key] for key in item if key != name} for item in items]
    return Source(CHAT, messages, details, about)


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _table(text: str, details: dict[str, str]) -> Source:
    separator = max(_SEPARATORS, key=text.lstrip().splitlines()[0].count)
    names, rows = split_csv(text, separator)
    messages = [Message(n, dict(zip(names, row, strict=True))) for n, row in enumerate(rows)]
    return Source(TABLE, messages, details | {"separator": _SEPARATORS[separator]})


def _transcript(text: str, details: Mapping[str, str]) -> Source:
    messages: list[Message] = []
    dialogue, blank = -1, True
    for number, line in enumerate(re.split("\r\n|\r|\n", text)):
        if line.strip():
            dialogue += blank
            messages.append(Message(number, {"text": line}, dialogue))
        blank = not line.strip()
    return Source(TRANSCRIPT, messages, details, [{}] * (dialogue + 1))
