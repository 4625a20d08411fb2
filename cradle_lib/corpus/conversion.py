"""Converts dialogues in usual forms into the release's format.

Reads chat messages, tables with a speaker column and transcripts. What could swap speakers or lose
a label is never guessed: the error names the option that decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

from cradle_lib.corpus.dialogue import Corpus, valid_unicode
from cradle_lib.corpus.forms import CHAT, NAMED, TABLE, TRANSCRIPT, Source, read_source
from cradle_lib.corpus.release import (
    COLUMNS,
    build_corpus,
    read_mask,
    whole_number,
    write_release,
)
from cradle_lib.corpus.tables import brief, check_ending
from cradle_lib.errors import CorpusError
from cradle_lib.labels import LABELS, format_mask

# Values of options in place of a column: the file is one dialogue; labels are left out.
_WHOLE_FILE: Final = "file"
_NO_LABELS: Final = "none"
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
_FIX_LABELS: Final = f"Correct it, or leave labels out: --labels {_NO_LABELS}."


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
    """What one speaker says, with its row in the source and the position of its dialogue."""

    row: int
    dialogue: int
    speaker: str
    text: str
    mask: int

    def joined(self, text: str, mask: int) -> _Utterance:
        """Appends a further message of the same speaker."""
        return self._replace(text=f"{self.text}\n{text}".strip(), mask=self.mask | mask)


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
    options = {"text": text, "speaker": speaker, "dialogue": dialogue, "labels": labels}
    known = {_key(name) for name in (*user, *listener, *leave_out)} if user and listener else None
    notes: Counter[str] = Counter()
    try:
        columns = _find_columns(source, options)
        numbers, ids = _number_dialogues(source, columns, dialogue == _WHOLE_FILE)
        said = _read_utterances(source, columns, numbers, known, notes)
        roles = _find_roles(said, {"User": user, "Listener": listener, None: leave_out})
        rows = _merge(said, roles, notes, join=consecutive == "joined")
        corpus = _build(rows, roles, ids, (target or path).stem)
    except CorpusError as error:
        if source.form == TRANSCRIPT and error.row is not None:
            place = f"{path}:{error.row + 1}"
            raise CorpusError(error.problem, path=place, hint=error.hint) from None
        raise error.located(path) from None
    if target is not None:
        write_release(corpus, target)
    labelled = sum(turn.mask.bit_count() for turn in corpus.turns)
    origin = f"in column {columns['labels']}" if "labels" in columns else "no column of labels"
    understood = {
        "form": source.form,
        **source.details,
        **{f"turns of the {role}": _count_turns(rows, roles, role) for role in _NAMES},
        "dialogues": f"{len(corpus):,}, named {'by their ids' if ids else 'by their order'}",
        "labels": f"{labelled:,} ({origin})",
        "left out or joined": "; ".join(f"{what}: {n:,}" for what, n in notes.items()) or "nothing",
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
        names = {name for message in source.messages for name in message.cells}
        has_speaker = not {_key(name) for name in names}.isdisjoint(_COLUMNS["speaker"].split())
        if source.form == TABLE and (names >= {*COLUMNS} or not has_speaker):
            convert(path)
    except CorpusError:
        return None
    return source.form


def _key(name: object) -> str:
    """Folds the spelling of a name: case, width, spaces and hyphens, a colon at its end."""
    folded = unicodedata.normalize("NFKC", str(name)).casefold()
    return re.sub(r"[\s-]+", "_", folded.strip(" \t:"))


def _find_columns(source: Source, options: Mapping[str, str | None]) -> dict[str, str]:
    """Finds the columns with text, speaker, dialogue, labels and number of the turn."""
    cells = [message.cells for message in source.messages]
    keys = list(dict.fromkeys(key for own in cells for key in own))
    about = list(dict.fromkeys(key for own in source.dialogues for key in own))
    found: dict[str, str] = {}
    for kind, usual in _COLUMNS.items():
        option = options.get(kind)
        if (kind, option) in (("dialogue", _WHOLE_FILE), ("labels", _NO_LABELS)):
            continue
        inside = about if kind == "dialogue" and source.dialogues else keys
        names = [_key(option)] if option else usual.split() + ["id"] * (inside is about)
        fitting = [k for k in inside if k == option] or [k for k in inside if _key(k) in names]
        if len(fitting) > 1:
            hint = "Keep one of them." if kind == "turn" else f"Choose one: --{kind} COLUMN."
            problem = f"{fitting[0]} and {fitting[1]} could both be the {kind}"
            raise CorpusError(problem, hint=hint)
        if option and not fitting:
            raise CorpusError(f"no column {brief(option)}; found {', '.join(inside):.200}")
        if fitting:
            found[kind] = fitting[0]
    if "text" not in found:
        problem = f"no column is known as the text; found {', '.join(keys) or 'none':.200}"
        raise CorpusError(problem, hint="Name it: --text COLUMN.")
    lost = [key for key in about if _has_labels(key, source.dialogues)]
    if "labels" not in found:
        lost += [key for key in keys if key not in found.values() and _has_labels(key, cells)]
    if lost and options["labels"] != _NO_LABELS:
        raise CorpusError(
            f"{', '.join(lost):.200} looks like labels, which would be lost",
            hint="Labels belong to a message, in one column: --labels COLUMN. Or leave them out: "
            f"--labels {_NO_LABELS}.",
        )
    return found


def _has_labels(key: str, records: Iterable[Mapping[str, Any]]) -> bool:
    cells = (record.get(key) for record in records)
    parts = (part for cell in cells for part in (cell if isinstance(cell, list) else [cell]))
    return any(isinstance(each, str) and _LABEL.match(each) for each in (key, *parts))


def _number_dialogues(
    source: Source, columns: Mapping[str, str], whole_file: bool
) -> tuple[list[int], list[Any]]:
    """Numbers the dialogue of each message, and lists the ids of the dialogues if they have any."""
    column, turn = columns.get("dialogue"), columns.get("turn")
    if source.dialogues and not whole_file:
        own_ids = [own.get(column) for own in source.dialogues] if column else []
        return [message.dialogue for message in source.messages], own_ids
    if whole_file or (source.form == CHAT and column is None):
        return [0] * len(source.messages), []
    if column is None and turn is None:
        raise CorpusError(
            "no column says to which dialogue a row belongs",
            hint=f"Name it: --dialogue COLUMN; or --dialogue {_WHOLE_FILE}, if the file is one.",
        )
    numbers: list[int] = []
    ids: list[Any] = []
    before = -1
    for row, cells, _ in source.messages:
        own = cells.get(column) if column else None
        here = whole_number(cells.get(turn)) if turn else row
        if here is None:
            hint = "Correct it, or rename the column if it does not number the turns."
            problem = f"{turn} is {brief(cells.get(str(turn)))}, expected a number"
            raise CorpusError(problem, row=row, hint=hint)
        starts = not ids or own != ids[-1] if column else here in (0, 1) and here <= before
        if not ids or starts:
            ids.append(own)
        elif here <= before or (column is None and here != before + 1):
            hint = "A row is missing, doubled or out of order."
            raise CorpusError(f"turn {here} comes after turn {before}", row=row, hint=hint)
        if column is None and len(numbers) == 0 and here > 1:
            hint = "A dialogue starts with turn 0 or 1; is this the end of a longer file?"
            raise CorpusError(f"the first turn is {here}", row=row, hint=hint)
        numbers.append(len(ids) - 1)
        before = here
    return numbers, ids if column else []


def _read_utterances(
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
    for (row, cells, _), number in zip(source.messages, numbers, strict=True):
        name: Any = cells.get(columns.get("speaker", ""))
        text = _plain(cells.get(columns["text"]), row, notes)
        try:
            mask = read_mask(cells.get(columns["labels"])) if "labels" in columns else 0
        except CorpusError as error:
            raise CorpusError(error.problem, row=row, hint=_FIX_LABELS) from None
        if "speaker" in columns:
            if isinstance(name, bool) or not isinstance(name, str | int) or not _key(name):
                hint = "Fill it in, or name the right column: --speaker COLUMN."
                raise CorpusError(f"the speaker is {brief(name)}", row=row, hint=hint)
        elif (named := NAMED.fullmatch(text)) and (names is None or _key(named[1]) in names):
            name, text = named[1], named[2]
        elif said and said[-1].dialogue == number:
            said[-1] = said[-1].joined(text.strip(), mask)
            notes["lines without a speaker, joined to the line above"] += 1
            continue
        else:
            raise CorpusError(
                f"a dialogue starts with {brief(text)}, which names no speaker",
                row=row,
                hint="Name the column: --speaker COLUMN. A blank line of a transcript ends a "
                f"dialogue, unless --dialogue {_WHOLE_FILE} is given.",
            )
        said.append(_Utterance(row, number, str(name).strip(), text.strip(), mask))
    speakers = {_key(one.speaker) for one in said}
    if source.form == TRANSCRIPT and len({*numbers}) == len(said) and len(speakers) > 1:
        raise CorpusError(
            "each dialogue has one line",
            hint=f"If the file is one dialogue: --dialogue {_WHOLE_FILE}. Otherwise delete the "
            "blank lines within dialogues.",
        )
    return said


def _plain(value: Any, row: int, notes: Counter[str]) -> str:
    """Reads text, or a list of parts, of which only those with text are kept."""
    if isinstance(value, list) and all(isinstance(part, str | dict) for part in value):
        parts = [{"text": part} if isinstance(part, str) else part for part in value]
        notes.update(f"parts of type {brief(p.get('type'))}" for p in parts if "text" not in p)
        value = "\n".join(str(part["text"]) for part in parts if "text" in part)
    if value is not None and not isinstance(value, str):
        raise CorpusError(f"text is {brief(value)}, expected text", row=row)
    if value and valid_unicode(value) != value:
        raise CorpusError("the text has half a character", row=row, hint="Correct it there.")
    return value or ""


def _find_roles(
    said: Sequence[_Utterance], given: Mapping[str | None, Sequence[str]]
) -> dict[str, str | None]:
    """Decides who is the User and who the Listener; ``None`` for a speaker who is left out."""
    counts = Counter(_key(one.speaker) for one in said)
    first = {_key(one.speaker): one for one in reversed(said)}
    shown = ", ".join(f"{first[key].speaker} ({n:,})" for key, n in counts.most_common(8))
    roles: dict[str, str | None] = {}
    for role, names in given.items():
        for name in names:
            if _key(name) not in counts:
                raise CorpusError(f"no message is by {brief(name)}; found {shown}")
            if roles.setdefault(_key(name), role) != role:
                raise CorpusError(f"{brief(name)} has two roles, expected one")
    rest = [key for key in counts if key not in roles]
    free = {*_NAMES} - {*roles.values()}
    usual = {key: _ROLES[key] for key in rest if key in _ROLES and len(free) == len(_NAMES)}
    if len(rest) == len(free) == 1:
        # Of two speakers, the one who is not the User is the Listener.
        usual = {key: role for key in rest for role in free if _ROLES.get(key, role) == role}
    if len(usual) == len({*usual.values()}):
        roles |= usual
    rest = [key for key in rest if key not in roles]
    if rest or "User" not in roles.values():
        advice = "--user NAME, --listener NAME or --leave-out NAME; each may be given several times"
        if rest and all(key in _NOBODY for key in rest):
            advice = " ".join(f"--leave-out {first[key].speaker}" for key in rest)
        raise CorpusError(
            f"can't tell User and Listener: found {shown or 'no message'}",
            row=first[rest[0]].row if rest else None,
            hint=f"Say who is who: {advice}.",
        )
    return roles


def _merge(
    said: Iterable[_Utterance],
    roles: Mapping[str, str | None],
    notes: Counter[str],
    *,
    join: bool,
) -> list[_Utterance]:
    """Leaves out empty messages and speakers without a role; joins messages of one speaker."""
    kept: list[_Utterance] = []
    for one in said:
        if not one.text or roles[_key(one.speaker)] is None:
            why = f"messages by {one.speaker}" if one.text else "messages without text"
            if one.mask:
                problem = f"{why} are left out; this one has labels"
                raise CorpusError(problem, row=one.row, hint=_FIX_LABELS)
            notes[f"{why}, left out"] += 1
            continue
        above = kept[-1] if kept else None
        same = above and (above.dialogue, _key(above.speaker)) == (one.dialogue, _key(one.speaker))
        if above and same and join:
            kept[-1] = above.joined(one.text, one.mask)
        else:
            kept.append(one)
        if same:
            what = "joined to the one before" if join else "kept as turns"
            notes[f"consecutive messages of one speaker, {what}"] += 1
    return kept


def _build(
    rows: Sequence[_Utterance], roles: Mapping[str, str | None], ids: Sequence[Any], name: str
) -> Corpus:
    """Makes a corpus; an error names the row in the source."""
    turns: list[tuple[int, str, str]] = []
    for above, one in zip((None, *rows), rows, strict=False):
        turn = turns[-1][0] + 1 if above and above.dialogue == one.dialogue else 0
        turns.append((turn, f"{roles[_key(one.speaker)]}: {one.text}", format_mask(one.mask)))
    about = {"dialogue_id": [ids[one.dialogue] for one in rows]} if ids else {}
    try:
        return build_corpus(turns, name, about=about)
    except CorpusError as error:
        row = None if error.row is None else rows[error.row].row
        raise CorpusError(error.problem, row=row, hint=error.hint) from None


def _count_turns(rows: Iterable[_Utterance], roles: Mapping[str, str | None], role: str) -> str:
    counts = Counter(one.speaker for one in rows if roles[_key(one.speaker)] == role)
    return ", ".join(f"{count:,} by {name}" for name, count in counts.items()) or "none"
