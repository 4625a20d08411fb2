"""Converts dialogues in usual forms into the release's format.

Reads chat messages, tables with a speaker column and transcripts. What could swap speakers or lose
a label is never guessed: the error names the option that decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, Final, NamedTuple

from cradle_lib.corpus.collect import check_ending, write_release
from cradle_lib.corpus.dialogue import Corpus, valid_unicode
from cradle_lib.corpus.formats import COLUMNS, brief
from cradle_lib.corpus.forms import CHAT, NAMED, TABLE, TRANSCRIPT, Source, read_source
from cradle_lib.corpus.release import build_corpus, read_mask
from cradle_lib.errors import CorpusError
from cradle_lib.labels import LABELS, format_mask

#: Values of options in place of a column: the file is one dialogue; labels are left out.
WHOLE_FILE: Final = "file"
NO_LABELS: Final = "none"
_COLUMNS: Final = {
    "text": "text content value utterance message body",
    "speaker": "speaker role from author sender",
    "dialogue": "dialogue_id dialog_id conversation_id session_id chat_id dialogue conversation",
    "labels": "labels label gold gold_labels",
    "turn": "turn_id turn turn_number turn_index",
}
_NAMES: Final = {
    "User": "user human patient client seeker help_seeker caller texter",
    "Listener": "listener assistant gpt bot chatbot model ai therapist counselor counsellor "
    "supporter helper volunteer",
}
_ROLES: Final = {name: role for role, names in _NAMES.items() for name in names.split()}
_NOBODY: Final = ("system", "developer", "tool", "function")
_LABEL: Final = re.compile(rf"[\['\" ]*({'|'.join(LABELS)})\b", re.IGNORECASE)
_NUMBER: Final = re.compile(r"\s*(\d{1,9})(\.0+)?\s*")
_FIX_LABELS: Final = f"Correct it, or leave labels out: --labels {NO_LABELS}."


class Conversion(NamedTuple):
    """A converted corpus, and how its file was understood.

    Attributes:
        corpus: The dialogues, as :func:`.load_corpus` reads them from the written file.
        understood: Form, encoding, separator, speakers, dialogues, labels, consecutive messages and
            what was left out, each as a phrase; no text of a dialogue.
    """

    corpus: Corpus
    understood: Mapping[str, str]


class _Utterance(NamedTuple):
    """A message with its row in the source; without a speaker it continues the one above."""

    row: int
    dialogue: int
    speaker: str | None
    text: str
    mask: int


def convert(
    path: str | Path,
    out: str | Path | None = None,
    *,
    user: Sequence[str] = (),
    listener: Sequence[str] = (),
    leave_out: Sequence[str] = (),
    speaker: str | None = None,
    text: str | None = None,
    dialogue: str | None = None,
    labels: str | None = None,
    encoding: str | None = None,
    consecutive: str = "joined",
) -> Conversion:
    """Converts a file of dialogues into the release's format.

    Args:
        path: Chat messages (JSON, JSON lines or parquet), a table (CSV with any separator, JSON,
            JSON lines or parquet), or a transcript: lines ``Name: text``, with a blank line between
            dialogues.
        out: The file to write, ``.csv`` or ``.parquet``; by default none is written.
        user: Names of the User in the file. Usual names, such as ``patient``, need no option.
        listener: Names of the Listener.
        leave_out: Names of speakers whose messages are left out, such as ``system``.
        speaker: Column that says who speaks.
        text: Column with the text.
        dialogue: Column with the id of the dialogue; ``file``: the file is one dialogue.
        labels: Column with labels; ``none``: leave labels out.
        encoding: Encoding of the file, as Python names it.
        consecutive: ``joined``: several messages of one speaker in a row are one utterance, with a
            line break between them and the labels of all of them. In the release no speaker has two
            utterances in a row. ``turns``: each message is a turn.

    Returns:
        The corpus and how the file was understood.

    Raises:
        CorpusError: If the file can't be read, or something in it is ambiguous. The message names
            the row and the option that decides.
        CradleError: If ``out`` can't be written.
    """
    path, target = Path(path), None if out is None else Path(out)
    if consecutive not in ("joined", "turns"):
        raise CorpusError(f"consecutive is {brief(consecutive)}, expected joined or turns")
    if target is not None:
        check_ending(target)
        if target.resolve() == path.resolve():
            raise CorpusError("is the file to convert", path=target, hint="Name another file.")
    source = read_source(path, encoding)
    notes: Counter[str] = Counter()
    given = {"speaker": speaker, "text": text, "dialogue": dialogue, "labels": labels}
    try:
        columns = _find_columns(source, given)
        numbers, ids = _find_dialogues(source, columns, dialogue)
        names = {_key(name) for name in (*user, *listener, *leave_out)}
        said = _read(source, columns, numbers, names if user and listener else None, notes)
        roles = _find_roles(said, user, listener, leave_out)
        if source.form == TRANSCRIPT and len(roles) > 1 and len(said) == len({*numbers}) > 1:
            raise CorpusError(
                "each dialogue has one line",
                hint=f"If the file is one dialogue: --dialogue {WHOLE_FILE}. Otherwise delete the "
                "blank lines within dialogues.",
            )
        kept = _without_empty(said, roles, notes)
        joined = _merge(kept, lambda above, one: _key(above.speaker) == _key(one.speaker))
        rows = joined if consecutive == "joined" else kept
        corpus = _build(rows, roles, ids, (target or path).stem)
    except CorpusError as error:
        place, row = path, error.row
        if source.form == TRANSCRIPT and row is not None:
            place, row = Path(f"{path}:{row + 1}"), None
        raise CorpusError(error.problem, path=place, row=row, hint=error.hint) from None
    if target is not None:
        write_release(corpus, target)
    turns = Counter((roles[_key(one.speaker)], one.speaker) for one in rows)
    understood = {"form": source.form, **source.details}
    for role in _NAMES:
        found = [f"{count:,} by {name}" for (own, name), count in turns.items() if own == role]
        understood[f"turns of the {role}"] = ", ".join(found) or "none"
    count = sum(turn.mask.bit_count() for turn in corpus.turns)
    origin = f"in column {columns['labels']}" if "labels" in columns else "no column of labels"
    again = "joined to the one before" if consecutive == "joined" else "kept as turns"
    understood |= {
        "dialogues": f"{len(corpus):,}, named {'by their ids' if ids else 'by their order'}",
        "labels": f"{count:,} ({origin})",
        "consecutive messages": f"{len(kept) - len(joined):,} {again}",
        "left out": ", ".join(f"{count:,} {what}" for what, count in notes.items()) or "nothing",
    }
    return Conversion(corpus, understood)


def other_form(path: Path) -> str | None:
    """Recognises a file that is not in the release's format, and that :func:`convert` is for.

    Returns:
        The form, such as ``chat messages``; ``None`` if it is another one, or in the release's
        format with a mistake.
    """
    try:
        source = read_source(path)
        keys = list({key: None for message in source.messages for key in message.cells})
        if source.form == TABLE and (
            {*COLUMNS} <= {*keys} or _choose("speaker", keys, None) is None
        ):
            convert(path)
    except CorpusError:
        return None
    return source.form


def _key(name: object) -> str:
    """Folds the spelling of a name: case, width, spaces and hyphens, a colon at its end."""
    folded = unicodedata.normalize("NFKC", str(name)).casefold()
    return re.sub(r"[\s-]+", "_", folded.strip(" \t:"))


def _find_columns(source: Source, given: Mapping[str, str | None]) -> dict[str, str]:
    """Finds the columns with text, speaker, dialogue, labels and number of the turn."""
    cells = [message.cells for message in source.messages]
    keys = list(dict.fromkeys(key for own in cells for key in own))
    about = list(dict.fromkeys(key for own in source.dialogues for key in own))
    found = {}
    for kind in _COLUMNS:
        inside = about if kind == "dialogue" and source.dialogues else keys
        chosen = _choose(kind, inside, given.get(kind))
        if chosen is None and kind == "dialogue" and "id" in about and given[kind] is None:
            chosen = "id"
        if chosen is not None:
            found[kind] = chosen
    if "text" not in found:
        problem = f"no column is known as the text; found {', '.join(keys) or 'none':.200}"
        raise CorpusError(problem, hint="Name it: --text COLUMN.")
    lost = [key for key in about if _holds_labels(key, source.dialogues)]
    if "labels" not in found:
        lost += [k for k in keys if k not in found.values() and _holds_labels(k, cells)]
    if lost and given["labels"] != NO_LABELS:
        raise CorpusError(
            f"{', '.join(lost):.200} looks like labels, which would be lost",
            hint="Labels belong to a message, in one column: --labels COLUMN. Or leave them out: "
            f"--labels {NO_LABELS}.",
        )
    return found


def _choose(kind: str, keys: Sequence[str], given: str | None) -> str | None:
    """Finds the column of a kind, as the option says or by its usual names."""
    names = _COLUMNS[kind].split() if given is None else [_key(given)]
    found = [key for key in keys if key == given] or [key for key in keys if _key(key) in names]
    if len(found) > 1:
        hint = "Keep one of them." if kind == "turn" else f"Choose one: --{kind} COLUMN."
        raise CorpusError(f"{found[0]} and {found[1]} could both be the {kind}", hint=hint)
    if (
        given
        and not found
        and (kind, given)
        not in (
            ("dialogue", WHOLE_FILE),
            ("labels", NO_LABELS),
        )
    ):
        raise CorpusError(f"no column {brief(given)}; found {', '.join(keys) or 'none':.200}")
    return found[0] if found else None


def _holds_labels(key: str, records: Iterable[Mapping[str, Any]]) -> bool:
    cells = (record.get(key) for record in records)
    parts = (part for cell in cells for part in (cell if isinstance(cell, list) else [cell]))
    return any(isinstance(each, str) and _LABEL.match(each) for each in (key, *parts))


def _find_dialogues(
    source: Source, columns: Mapping[str, str], option: str | None
) -> tuple[list[int], list[Any]]:
    """Numbers the dialogue of each message, and lists the ids of the dialogues if they have any."""
    column, turn = columns.get("dialogue"), columns.get("turn")
    if column is None and (option == WHOLE_FILE or (source.form == CHAT and not source.dialogues)):
        return [0] * len(source.messages), []
    if source.dialogues:
        ids = [cells.get(column) for cells in source.dialogues] if column is not None else []
        return [message.dialogue or 0 for message in source.messages], ids
    if column is None and turn is None:
        raise CorpusError(
            "no column says to which dialogue a row belongs",
            hint=f"Name it: --dialogue COLUMN; or --dialogue {WHOLE_FILE}, if the file is one.",
        )
    turns = _turn_numbers(source, turn) if turn is not None else []
    names = [message.cells.get(str(column)) for message in source.messages]
    starts = [True, *(before != here for before, here in pairwise(names))][: len(names)]
    ids = [name for name, start in zip(names, starts, strict=True) if start]
    if column is None:
        ids, starts = [], [here == turns[0] for here in turns]
    for row, (before, here) in enumerate(pairwise(turns), start=1):
        if not starts[row] and (here <= before if ids else here != before + 1):
            hint = "A row is missing, doubled or out of order."
            raise CorpusError(f"turn {here} comes after turn {before}", row=row, hint=hint)
    if turns and not ids and turns[0] > 1:
        hint = "A dialogue starts with turn 0 or 1; is this the end of a longer file?"
        raise CorpusError(f"the first turn is {turns[0]}", row=0, hint=hint)
    return [number - 1 for number in accumulate(map(int, starts))], ids


def _turn_numbers(source: Source, column: str) -> list[int]:
    found = [_NUMBER.fullmatch(str(message.cells.get(column))) for message in source.messages]
    if None in found:
        row = found.index(None)
        problem = f"{column} is {brief(source.messages[row].cells.get(column))}, expected a number"
        hint = "Correct it, or rename the column if it does not number the turns."
        raise CorpusError(problem, row=row, hint=hint)
    return [int(number[1]) for number in found if number]


def _read(
    source: Source,
    columns: Mapping[str, str],
    numbers: Iterable[int],
    names: set[str] | None,
    notes: Counter[str],
) -> list[_Utterance]:
    """Reads who says what in each message, and with which labels.

    If the text names its speaker, and ``names`` are given, only these names start an utterance.
    """
    said: list[_Utterance] = []
    for message, number in zip(source.messages, numbers, strict=True):
        row, name = message.row, message.cells.get(columns.get("speaker", ""))
        text = _plain(message.cells.get(columns["text"]), row, notes)
        if "speaker" in columns:
            if isinstance(name, bool) or not isinstance(name, str | int) or not _key(name):
                hint = "Fill it in, or name the right column: --speaker COLUMN."
                raise CorpusError(f"the speaker is {brief(name)}", row=row, hint=hint)
        elif (named := NAMED.fullmatch(text)) and (names is None or _key(named[1]) in names):
            name, text = named[1], named[2]
        elif not said or said[-1].dialogue != number:
            raise CorpusError(
                f"a dialogue starts with {brief(text)}, which names no speaker",
                row=row,
                hint="Name the column: --speaker COLUMN. A blank line of a transcript ends a "
                f"dialogue, unless --dialogue {WHOLE_FILE} is given.",
            )
        try:
            mask = read_mask(message.cells.get(columns["labels"])) if "labels" in columns else 0
        except CorpusError as error:
            raise CorpusError(error.problem, row=row, hint=_FIX_LABELS) from None
        speaker = None if name is None else str(name).strip()
        said.append(_Utterance(row, number, speaker, text.strip(), mask))
    lines = sum(one.speaker is None for one in said)
    if lines:
        notes["lines without a speaker, joined to the line above"] = lines
    return _merge(said, lambda above, one: one.speaker is None)


def _plain(value: Any, row: int, notes: Counter[str]) -> str:
    """Reads text, or a list of parts, of which only those with text are kept."""
    if isinstance(value, list) and all(isinstance(part, str | dict) for part in value):
        parts = [{"text": part} if isinstance(part, str) else part for part in value]
        notes.update(f"parts of type {brief(p.get('type'))}" for p in parts if "text" not in p)
        value = "\n".join(str(part["text"]) for part in parts if "text" in part)
    if value is not None and not isinstance(value, str):
        raise CorpusError(f"text is {brief(value)}, expected text", row=row)
    if value and valid_unicode(value) != value:
        raise CorpusError("the text holds half a character", row=row, hint="Correct it there.")
    return value or ""


def _merge(
    said: Iterable[_Utterance], belongs: Callable[[_Utterance, _Utterance], bool]
) -> list[_Utterance]:
    """Joins each utterance to the one above in its dialogue if it belongs to it."""
    merged: list[_Utterance] = []
    for one in said:
        above = merged[-1] if merged else None
        if above is not None and above.dialogue == one.dialogue and belongs(above, one):
            text = f"{above.text}\n{one.text}".strip()
            merged[-1] = above._replace(text=text, mask=above.mask | one.mask)
        else:
            merged.append(one)
    return merged


def _find_roles(
    said: Sequence[_Utterance],
    user: Sequence[str],
    listener: Sequence[str],
    leave_out: Sequence[str],
) -> dict[str, str | None]:
    """Decides who is the User and who the Listener; ``None`` for a speaker who is left out."""
    counts = Counter(_key(one.speaker) for one in said)
    first = {_key(one.speaker): one for one in reversed(said)}
    shown = ", ".join(f"{first[key].speaker} ({n:,})" for key, n in counts.most_common(8))
    roles: dict[str, str | None] = {}
    for role, names in (("User", user), ("Listener", listener), (None, leave_out)):
        for name in names:
            if _key(name) not in counts:
                raise CorpusError(f"no message is by {brief(name)}; found {shown}")
            if roles.setdefault(_key(name), role) != role:
                raise CorpusError(f"{brief(name)} has two roles, expected one")
    rest = [key for key in counts if key not in roles]
    other = {"User", "Listener"} - set(roles.values())
    if len(rest) == len(other) == 1:
        # Who is not the one must be the other.
        usual = dict.fromkeys(rest, other.pop())
    else:
        usual = {key: _ROLES[key] for key in rest if key in _ROLES and len(other) > 1}
    if len(usual) == len(set(usual.values())):
        roles |= {key: role for key, role in usual.items() if _ROLES.get(key, role) == role}
    rest = [key for key in rest if key not in roles]
    if rest or "User" not in roles.values():
        options = (
            "--user NAME, --listener NAME or --leave-out NAME; each may be given several times"
        )
        if rest and all(key in _NOBODY for key in rest):
            options = " ".join(f"--leave-out {first[key].speaker}" for key in rest)
        raise CorpusError(
            f"can't tell User and Listener: found {shown or 'no message'}",
            row=first[rest[0]].row if rest else None,
            hint=f"Say who is who: {options}.",
        )
    return roles


def _without_empty(
    said: Iterable[_Utterance], roles: Mapping[str, str | None], notes: Counter[str]
) -> list[_Utterance]:
    """Leaves out messages without text, and of speakers without a role."""
    kept = []
    for one in said:
        why = f"messages by {one.speaker}" if one.text else "messages without text"
        if one.text and roles[_key(one.speaker)] is not None:
            kept.append(one)
        elif one.mask:
            raise CorpusError(
                f"{why} are left out; this one has labels", row=one.row, hint=_FIX_LABELS
            )
        else:
            notes[why] += 1
    return kept


def _build(
    said: Sequence[_Utterance], roles: Mapping[str, str | None], ids: Sequence[Any], name: str
) -> Corpus:
    """Makes a corpus; an error names the row in the source."""
    twice = [own for own, count in Counter(map(str, ids)).items() if count > 1 and own != "None"]
    if twice:
        hint = "Sort the rows by dialogue, and give each dialogue its own id."
        raise CorpusError(f"dialogue {brief(twice[0])} begins twice", hint=hint)
    rows: list[tuple[int, str, str]] = []
    for above, one in zip((None, *said), said, strict=False):
        turn = rows[-1][0] + 1 if above is not None and above.dialogue == one.dialogue else 0
        rows.append((turn, f"{roles[_key(one.speaker)]}: {one.text}", format_mask(one.mask)))
    about = {"dialogue_id": [ids[one.dialogue] for one in said]} if ids else {}
    try:
        return build_corpus(rows, name, about=about)
    except CorpusError as error:
        row = None if error.row is None else said[error.row].row
        raise CorpusError(error.problem, row=row, hint=error.hint) from None
