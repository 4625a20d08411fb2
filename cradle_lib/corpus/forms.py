"""Reads the messages of a file in one of the usual forms: chat messages, a table or a transcript.

Reads only: :mod:`.conversion` decides which speaker is the User and what a column means.
"""

from __future__ import annotations

import codecs
import csv
import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, NamedTuple

import pandas as pd

from cradle_lib.corpus.tables import brief, parse_json, read_csv, read_parquet
from cradle_lib.errors import CorpusError

CHAT: Final = "chat messages"
TABLE: Final = "a table"
TRANSCRIPT: Final = "a transcript"
#: ``Name: text``: a line of a transcript, or the text of a table without a column for the speaker.
NAMED: Final = re.compile(r"\A\s*([^\W\d_][^:\uff1a\n]{0,39})[:\uff1a](?!//)(.*)", re.DOTALL)
#: Column with the number of a message in its dialogue, if the form gives it.
TURN: Final = "turn"
#: Start of the name of a column with a field of the dialogue, not of the message.
ABOUT: Final = "dialogue."
#: Separators of a table, with their names.
SEPARATORS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_JSON_START: Final = re.compile(r'\s*(\{\s*["}]|\[\s*[\[{])')


class Source(NamedTuple):
    """The messages of a file.

    Attributes:
        form: :data:`CHAT`, :data:`TABLE` or :data:`TRANSCRIPT`.
        messages: One row per message, with the columns of the file. The index is the zero-based
            row of the table, item of the JSON list (a message or a dialogue), or line of the
            transcript.
        details: How it was read: ``encoding``, ``separator`` and ``dialogues without messages``,
            where they apply.
    """

    form: str
    messages: pd.DataFrame
    details: dict[str, str]


def read_source(path: Path, encoding: str | None = None) -> Source:
    """Reads the messages of a file and recognises its form.

    Args:
        path: A parquet, CSV, JSON or JSON lines file, or a transcript with any other ending.
        encoding: Encoding of a text file, as Python names it. By default it is UTF-8, UTF-16 after
            a byte order mark, or else Windows-1252 if at least 70 % of the letters are ASCII.

    Raises:
        CorpusError: If the file can't be read, is damaged or cut off, or mixes forms.
    """
    ending = path.suffix.lower()
    try:
        if ending == ".parquet":
            frame = pd.DataFrame(read_parquet(path), dtype=object)
            return _from_records(frame.to_dict("records"), {})
        text, used = _decode(path.read_bytes(), encoding)
        details = {"encoding": used}
        if ending in (".json", ".jsonl", ".ndjson") or _JSON_START.match(text):
            return _from_records(parse_json(text), details)
        if ending not in (".csv", ".tsv", ".tab") and NAMED.match(text):
            lines = pd.DataFrame({"text": re.split("\r\n|\r|\n", text)})
            blank = lines["text"].str.strip() == ""
            lines = lines[~blank]
            turns = lines.groupby(blank.cumsum()).cumcount()
            return Source(TRANSCRIPT, lines.assign(**{TURN: turns}), details)
        separator = ","
        with suppress(csv.Error):  # A table with one column has no separator.
            # As pandas detects a separator, but pandas would also accept a letter.
            header = text.lstrip().splitlines()[0]
            separator = csv.Sniffer().sniff(header, "".join(SEPARATORS)).delimiter
        table = pd.DataFrame(read_csv(text, separator), dtype=object)
        return Source(TABLE, table, details | {"separator": SEPARATORS[separator]})
    except CorpusError as error:
        raise error.located(path) from None
    except UnicodeEncodeError:
        raise CorpusError("the name of a column has half a character", path=path) from None
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
            guessed = name == "windows-1252" and not encoding
            letters = [mark.isascii() for mark in text if guessed and mark.isalpha()]
            if text.strip() and "\0" not in text and sum(letters) >= 0.7 * len(letters):
                return text, name
    raise CorpusError(
        f"the file is empty or no text in {' or '.join(tried)}",
        hint="Give its encoding, such as --encoding utf-16-le or windows-1251. Save a spreadsheet "
        "as CSV, and a document as plain text.",
    )


def _from_records(items: Sequence[Any], details: dict[str, str]) -> Source:
    """Recognises one list of messages, dialogues that each have such a list, or table rows."""
    items = [{"messages": item} if isinstance(item, list) else item for item in items]
    for row, item in enumerate(items):
        if not isinstance(item, dict):
            raise CorpusError(f"found {brief(item)}, expected an object", row=row)
    if all({"role", "content"} <= item.keys() for item in items):
        one_dialogue = [{TURN: turn} | item for turn, item in enumerate(items)]
        return Source(CHAT, pd.DataFrame(one_dialogue, dtype=object), details)
    # The fields that have messages, each with one of its values.
    lists = {n: v for item in items for n, v in item.items() if v and _is_messages(v)}
    if not lists:
        return Source(TABLE, pd.DataFrame(items, dtype=object), details)
    usual = [name for name in ("messages", "conversations") if name in lists]
    [name, *more] = usual or lists
    if more:
        problem = f"{name} and {more[0]} could both be the messages"
        raise CorpusError(problem, hint="Keep one of them in the file.")
    if len(items) == 1 and not usual and any(map(_is_messages, lists[name][0].values())):
        # An object around a list of dialogues, such as {"data": [{"messages": [...]}, ...]}.
        return _from_records(lists[name], details)
    messages: list[dict[str, Any]] = []
    rows: list[int] = []
    for row, item in enumerate(items):
        if not _is_messages(item.get(name)):
            hint = "All dialogues of a file have the same form: split the file."
            problem = f"{name} is no list of objects here; found {', '.join(item):.200}"
            raise CorpusError(problem, row=row, hint=hint)
        about = {f"{ABOUT}{key}": value for key, value in item.items() if key != name}
        messages += [about | message | {TURN: turn} for turn, message in enumerate(item[name])]
        rows += [row] * len(item[name])
    if empty := len(items) - len({*rows}):
        details = details | {"dialogues without messages": f"{empty:,}, left out"}
    return Source(CHAT, pd.DataFrame(messages, index=rows, dtype=object), details)


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)
