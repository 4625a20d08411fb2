"""Reads the messages of a file or folder in one of the usual forms, and recognises the form.

Reads only: :mod:`.conversion` decides which speaker is the User and what a column means.
"""

from __future__ import annotations

import csv
import io
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import pandas as pd

from cradle_lib import strict_json
from cradle_lib.corpus import transcripts
from cradle_lib.corpus.columns import ABOUT, TEXT_NAMES, USUAL
from cradle_lib.corpus.encodings import decode
from cradle_lib.corpus.release import id_of
from cradle_lib.corpus.speakers import key
from cradle_lib.corpus.tables import (
    Columns,
    allow_long_fields,
    brief,
    parse_json,
    read_arrow,
    read_csv,
    read_parquet,
)
from cradle_lib.errors import CorpusError
from cradle_lib.files import visible_files

CHAT: Final = "chat messages"
TABLE: Final = "a table"
TRANSCRIPT: Final = "a transcript"
EXPORT: Final = "a messenger's export"
TEXTS: Final = "texts"
#: Separators of a table, with their names.
SEPARATORS: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "vertical bar"}
_JSON_START: Final = re.compile(r'\s*(\{\s*["}]|\[\s*[\[{"])')
_SEPARATOR_LINE: Final = re.compile(r'\s*"?sep=(.)"?[ \t]*\r?\n', re.IGNORECASE)
# Objects with more fields are kept as they are, and not made columns.
_MOST_FIELDS: Final = 30
# Files of a folder that the library `datasets` saved; the last one is of several splits.
_SAVED: Final = ("state.json", "dataset_info.json", "dataset_dict.json")


@dataclass(frozen=True)
class Source:
    """The messages of a file or folder.

    Attributes:
        form: :data:`CHAT`, :data:`TABLE`, :data:`TRANSCRIPT`, :data:`EXPORT` or :data:`TEXTS`.
        messages: One row per message, with the columns of the file. A field of an object in it has
            a name with a dot, and that of a field of the dialogue begins with :data:`.ABOUT`. The
            index is the zero-based row of the table, item of the JSON list (a message or a
            dialogue), or line of the text file.
        dialogues: For each message the number of its dialogue, if the form says.
        details: How the file was read: ``encoding`` and ``separator``, where they apply.
        notes: What was left out, with its number.
        is_folder: Each file of a folder is a dialogue.
    """

    form: str
    messages: pd.DataFrame
    dialogues: Sequence[int] | None = None
    details: Mapping[str, str] = field(default_factory=dict)
    notes: Counter[str] = field(default_factory=Counter)
    is_folder: bool = False


def read_source(
    path: Path, encoding: str | None = None, messages: str | None = None, *, single: bool = False
) -> Source:
    """Reads the messages of a file or folder.

    Args:
        path: A parquet, Arrow, CSV, JSON or JSON lines file, a text file with any other ending, a
            folder of text files, or a folder that ``datasets`` saved.
        encoding: Encoding of text files, as Python names it; see :func:`.decode`.
        messages: Field of a dialogue with the list of its messages.
        single: Each paragraph of a text file, or each text file of a folder, is one text.

    Raises:
        CorpusError: If a file can't be read, is damaged or cut off, or mixes forms.
    """
    ending = path.suffix.lower()
    try:
        if any((path / name).is_file() for name in _SAVED):
            return _from_tables([read_arrow(file) for file in _saved_files(path)], messages)
        if path.is_dir():
            return _read_folder(path, encoding, single=single)
        if ending in (".parquet", ".arrow"):
            read = read_parquet if ending == ".parquet" else read_arrow
            return _from_tables([read(path)], messages)
        text, used = decode(path.read_bytes(), encoding)
        if ending in (".json", ".jsonl", ".ndjson") or _JSON_START.match(text):
            source = _from_records(parse_json(text), messages)
        elif ending in (".csv", ".tsv", ".tab"):
            source = _read_table(text)
        else:
            source = _read_lines(text, single=single) or _read_table(text)
        return replace(source, details={"encoding": used, **source.details})
    except CorpusError as error:
        raise error.located(error.path or path) from None
    except UnicodeEncodeError:
        raise CorpusError("the name of a column has half a character", path=path) from None
    except UnicodeDecodeError as error:
        raise CorpusError(f"byte {error.start} of a text is not UTF-8", path=path) from None
    except OSError as error:
        raise CorpusError(f"can't be read ({error.strerror})", path=path) from None


def _read_table(text: str) -> Source:
    """Reads a table in text; a line ``sep=;``, as Excel writes it, names the separator."""
    if stated := _SEPARATOR_LINE.match(text):
        separator, text = stated[1], text[stated.end() :]
    else:
        separator = max(SEPARATORS, key=lambda mark: _fit(text, mark))
    details = {"separator": SEPARATORS.get(separator, repr(separator))}
    return Source(TABLE, pd.DataFrame(read_csv(text, separator), dtype=object), details=details)


def _fit(text: str, separator: str) -> tuple[int, bool, int]:
    """Rates a separator: usual names and fields in the header, and equal fields in a row."""
    allow_long_fields(text)
    with suppress(csv.Error, StopIteration):
        rows = filter(None, csv.reader(io.StringIO(text, newline=""), delimiter=separator))
        header = next(rows)
        usual = sum(key(name) in USUAL for name in header)
        return usual, len(next(rows, header)) == len(header), len(header)
    return 0, False, 0


def _read_lines(text: str, *, single: bool) -> Source | None:
    """Reads a text file; ``None`` if it may be a table.

    Raises:
        CorpusError: If it is a transcript without a speaker on the first line.
    """
    if single:
        texts = re.split(r"\n[ \t\r]*\n", text)
        return Source(TEXTS, pd.DataFrame({"text": texts}, dtype=object))
    if transcripts.is_export(text):
        notes: Counter[str] = Counter()
        messages, dialogues = transcripts.read_export(text, notes)
        return Source(EXPORT, messages, dialogues, notes=notes)
    if transcripts.NAMED.match(text):
        lines = pd.DataFrame({"text": transcripts.lines_of(text)}, dtype=object)
        blank = lines["text"].str.strip() == ""
        return Source(TRANSCRIPT, lines[~blank], blank.cumsum()[~blank].tolist())
    first, *others = [line for line in transcripts.lines_of(text) if line.strip()]
    named = sum(transcripts.NAMED.match(line) is not None for line in others)
    if 2 * named > len(others) and not any(mark in first for mark in SEPARATORS):
        hint = "Delete it, or write the name of its speaker and a colon before it."
        raise CorpusError("a transcript's first line names no speaker", row=0, hint=hint)
    return None


def _read_folder(folder: Path, encoding: str | None, *, single: bool) -> Source:
    """Reads a folder of text files, each of which is a dialogue, or a single text."""
    sources: list[Source] = []
    used = set()
    files = [file for file in visible_files(folder) if file.suffix.lower() == ".txt"]
    for number, file in enumerate(files):
        try:
            id_of("the file's name", file.stem, 0)
        except CorpusError as error:
            hint = "Rename the file: its name becomes the id of the dialogue."
            raise CorpusError(error.problem, path=file, hint=hint) from None
        try:
            text, name = decode(file.read_bytes(), encoding)
            source = _read_lines(text, single=single)
            if source is None or source.form != (sources[0].form if sources else source.form):
                problem = "not a transcript of the same form as the files before"
                raise CorpusError(problem, hint="Convert it by itself.")
        except CorpusError as error:
            raise error.located(file) from None
        messages = source.messages
        if single:
            messages = pd.DataFrame({"text": [text]}, dtype=object)
        messages = messages.assign(**{f"{ABOUT}id": file.stem})
        messages.index = pd.Index([f"{row} of {file.name}" for row in messages.index])
        sources.append(replace(source, messages=messages, dialogues=[number] * len(messages)))
        used.add(name)
    if not sources:
        hint = "Put each dialogue into a text file that ends in .txt; convert other files by name."
        raise CorpusError("the folder has no text file", hint=hint)
    notes = sum((source.notes for source in sources), Counter[str]())
    if others := len(visible_files(folder)) - len(files):
        notes["files and folders without the ending .txt, left out"] = others
    return Source(
        sources[0].form,
        pd.concat([source.messages for source in sources]),
        [number for source in sources for number in source.dialogues or ()],
        {"encoding": ", ".join(sorted(used))},
        notes,
        is_folder=True,
    )


def _saved_files(folder: Path) -> list[Path]:
    """Lists the Arrow files of a folder that ``Dataset.save_to_disk`` wrote, in order."""
    if (folder / _SAVED[-1]).is_file():
        splits = [state.parent.name for state in sorted(folder.glob("*/state.json"))]
        hint = f"Name one of them, such as {folder / splits[0]}." if splits else None
        raise CorpusError(f"the folder has the splits {', '.join(splits)}", hint=hint)
    try:
        state = strict_json.loads((folder / _SAVED[0]).read_bytes())
        # The last part only: a name must not lead to another folder.
        return [folder / Path(file["filename"]).name for file in state["_data_files"]]
    except (ValueError, TypeError, KeyError):
        raise CorpusError(
            "state.json does not name the data files", hint="Save it again."
        ) from None


def _from_tables(tables: Sequence[Columns], messages: str | None) -> Source:
    rows = [
        dict(zip(table, row, strict=True))
        for table in tables
        for row in zip(*table.values(), strict=True)
    ]
    return _from_records(rows, messages)


def _from_records(items: Sequence[Any], wanted: str | None) -> Source:
    """Recognises one list of messages, dialogues that each have such a list, or table rows."""
    items = [{"messages": item} if isinstance(item, list) else item for item in items]
    items = [{"text": item} if isinstance(item, str) else item for item in items]
    for row, item in enumerate(items):
        if not isinstance(item, dict):
            raise CorpusError(f"found {brief(item)}, expected an object", row=row)
    items = [_flat(item) for item in items]
    if all({"role", "content"} <= item.keys() for item in items):
        return Source(CHAT, pd.DataFrame(items, dtype=object), [0] * len(items))
    name = wanted or _field_of_messages(items)
    if name is None:
        return Source(TABLE, pd.DataFrame(items, dtype=object))
    if len(items) == 1 and _is_messages(items[0].get(name)) and _contains_dialogues(items[0][name]):
        # An object around a list of dialogues, such as {"data": [{"messages": [...]}, ...]}.
        return _from_records(items[0][name], wanted)
    messages: list[dict[str, Any]] = []
    rows: list[int] = []
    for row, item in enumerate(items):
        if not _is_messages(item.get(name)):
            hint = "All dialogues of a file have the same form: split the file."
            problem = f"{name} is no list of objects here; found {', '.join(item):.200}"
            raise CorpusError(problem, row=row, hint=hint)
        about = {f"{ABOUT}{field}": value for field, value in item.items() if field != name}
        messages += [about | _flat(message) for message in item[name]]
        rows += [row] * len(item[name])
    notes: Counter[str] = Counter()
    if empty := len(items) - len({*rows}):
        notes["dialogues without messages, left out"] = empty
    return Source(CHAT, pd.DataFrame(messages, index=rows, dtype=object), rows, notes=notes)


def _field_of_messages(items: Sequence[Mapping[str, Any]]) -> str | None:
    """Finds the field of the dialogues that has the list of messages."""
    # The fields that have a list of objects, and whether the first of these has a text.
    lists = {n: _has_text(v[0]) for i in items for n, v in i.items() if v and _is_messages(v)}
    usual = [n for n in lists if n.rpartition(".")[2] in ("messages", "conversations")]
    found = usual or [name for name, has_text in lists.items() if has_text] or [*lists]
    if len(found) > 1:
        problem = f"{' and '.join(found):.200} could each be the messages"
        raise CorpusError(problem, hint="Name one of them: --messages FIELD.")
    return found[0] if found else None


def _has_text(message: Mapping[str, Any]) -> bool:
    return not TEXT_NAMES.isdisjoint(map(key, message))


def _contains_dialogues(items: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a list of objects is one of dialogues, not of messages."""
    return not any(map(_has_text, items)) and any(
        _is_messages(value) for item in items for value in item.values() if value
    )


def _is_messages(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _flat(item: Mapping[str, Any]) -> dict[str, Any]:
    """Makes the fields of inner objects fields with a dot in their name."""
    found: dict[str, Any] = {}
    for name, value in item.items():
        inner = isinstance(value, dict) and 0 < len(value) <= _MOST_FIELDS
        fields = {f"{name}.{k}": v for k, v in _flat(value).items()} if inner else {name: value}
        if twice := found.keys() & fields.keys():
            raise CorpusError(f"the field {twice.pop()!r:.60} appears twice", hint="Rename one.")
        found |= fields
    return found
