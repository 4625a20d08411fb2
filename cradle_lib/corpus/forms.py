"""Reads the messages of a file in one of the usual forms: chat messages, a table or a transcript.

Reads only: :mod:`.conversion` decides which speaker is the User and what a column means.
"""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from cradle_lib.corpus.formats import brief, read_parquet
from cradle_lib.corpus.text_formats import csv_rows, parse_json, read_bytes, require_fields
from cradle_lib.errors import CorpusError

CHAT: Final = "chat messages"
TABLE: Final = "a table"
TRANSCRIPT: Final = "a transcript"
#: ``Name: text``: a line of a transcript, or the text of a table without a column for the speaker.
NAMED: Final = re.compile(r"\s*([^\W\d_][^:\uff1a\n]{0,39})[:\uff1a](?!//)(.*)", re.DOTALL)
_SEPARATORS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_JSON_START: Final = re.compile(r'\s*(\{\s*["}]|\[\s*[\[{])')
# Text in another script, read as Windows-1252, has a larger share of letters beyond ASCII.
_MOST_FOREIGN: Final = 0.3


@dataclass(frozen=True, slots=True)
class Message:
    """One message of a file.

    Attributes:
        row: Zero-based row of the table or of the dialogue that it is in, or line of a transcript.
        cells: Its fields by name.
        dialogue: Zero-based position of its dialogue, if the form of the file says so.
    """

    row: int
    cells: Mapping[str, Any]
    dialogue: int | None = None


@dataclass(frozen=True)
class Source:
    """The messages of a file.

    Attributes:
        form: :data:`CHAT`, :data:`TABLE` or :data:`TRANSCRIPT`.
        messages: All messages, in the order of the file.
        details: How it was read: ``encoding`` and ``separator``, where they apply.
        dialogues: The fields of each dialogue beside its messages, for chats.
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
        content, details = _decoded(read_bytes(path), encoding)
        if ending in (".json", ".jsonl", ".ndjson") or _JSON_START.match(content):
            return _from_records(_json_items(content), details)
        if ending not in (".csv", ".tsv", ".tab") and NAMED.match(content):
            return _transcript(content, details)
        return _table(content, details)
    except CorpusError as error:
        raise CorpusError(error.problem, path=path, row=error.row, hint=error.hint) from None


def _decoded(content: bytes, encoding: str | None) -> tuple[str, dict[str, str]]:
    if not content.strip():
        raise CorpusError("the file is empty", hint="Export it again.")
    marked = content.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    tried = [encoding] if encoding else ["utf-16"] if marked else ["utf-8", "windows-1252"]
    for name in tried:
        try:
            text = content.decode(name).removeprefix("\ufeff")
        except (UnicodeDecodeError, LookupError):
            continue
        letters = [letter for letter in text if letter.isalpha()]
        foreign = sum(not letter.isascii() for letter in letters) > _MOST_FOREIGN * len(letters)
        if "\0" not in text and not (foreign and name == "windows-1252" != encoding):
            return text, {"encoding": name}
    raise CorpusError(
        f"the file is no text in {' or '.join(tried)}",
        hint="Give its encoding, such as --encoding utf-16-le or windows-1251. Save a spreadsheet "
        "as CSV, and a document as plain text.",
    )


def _json_items(content: str) -> list[Any]:
    """Reads one document, or one document a line if the first line is one."""
    lines = [line for line in content.split("\n") if line.strip()]
    try:
        parse_json(lines[0])
    except CorpusError:
        lines = []
    if len(lines) > 1:
        return [parse_json(line, row) for row, line in enumerate(lines)]
    document = parse_json(content)
    if isinstance(document, list):
        return document
    # An object around a list of dialogues, such as {"data": [{"messages": [...]}, ...]}.
    inner = [document[name] for name in _list_names([document])]
    return inner[0] if len(inner) == 1 and _list_names(inner[0]) else [document]


def _list_names(items: Sequence[Any]) -> list[str]:
    """Names the fields that are lists of objects."""
    fields = [field for item in items if isinstance(item, dict) for field in item.items()]
    return sorted({name for name, value in fields if value and _is_list_of_objects(value)})


def _is_list_of_objects(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _from_records(items: Sequence[Any], details: Mapping[str, str]) -> Source:
    """Recognises dialogues that have lists of messages, one such list, or rows of a table."""
    items = [{"messages": item} if isinstance(item, list) else item for item in items]
    for row, item in enumerate(items):
        if not isinstance(item, dict):
            raise CorpusError(f"found {brief(item)}, expected an object", row=row)
    found = _list_names(items)
    if not found:
        one_chat = all({"role", "content"} <= item.keys() for item in items)
        messages = [Message(row, item) for row, item in enumerate(items)]
        return Source(CHAT if one_chat else TABLE, messages, details)
    [name, *more] = [name for name in ("messages", "conversations") if name in found] or found
    if more:
        problem = f"{name} and {more[0]} could both be the messages"
        raise CorpusError(problem, hint="Keep one of them in the file.")
    messages = []
    for row, item in enumerate(items):
        if not _is_list_of_objects(item.get(name)):
            hint = "All dialogues of a file have the same form: split the file."
            problem = f"{name} is no list of objects here; found {', '.join(item):.200}"
            raise CorpusError(problem, row=row, hint=hint)
        messages += [Message(row, each, row) for each in item[name]]
    about = [{key: item[key] for key in item if key != name} for item in items]
    return Source(CHAT, messages, details, about)


def _table(content: str, details: dict[str, str]) -> Source:
    def columns(mark: str) -> int:
        return len(next(csv.reader(io.StringIO(content.lstrip(), newline=""), delimiter=mark)))

    separator = max(_SEPARATORS, key=columns)
    head, rows, lines = csv_rows(content, separator)
    require_fields(head, rows, lines)
    names = [name.strip() for name in head]
    if twice := sorted({name for name in names if name and names.count(name) > 1}):
        raise CorpusError(f"column {', '.join(twice)} appears twice", hint="Keep one of each.")
    messages = [Message(n, dict(zip(names, row, strict=True))) for n, row in enumerate(rows)]
    return Source(TABLE, messages, details | {"separator": _SEPARATORS[separator]})


def _transcript(content: str, details: Mapping[str, str]) -> Source:
    messages: list[Message] = []
    dialogue, blank = -1, True
    for number, line in enumerate(re.split("\r\n|\r|\n", content)):
        if line.strip():
            dialogue += blank
            messages.append(Message(number, {"text": line}, dialogue))
        blank = not line.strip()
    return Source(TRANSCRIPT, messages, details, [{}] * (dialogue + 1))
