"""Converts dialogues in usual forms into the release's format.

:mod:`.forms` reads chat messages, tables and transcripts. This module decides who speaks in which
dialogue, and which column has the text and the labels. It does not guess where a wrong guess would
swap speakers or lose a label: the error names the option that decides.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd

from cradle_lib.arguments import checked
from cradle_lib.corpus import forms
from cradle_lib.corpus.dialogue import Corpus, valid_unicode
from cradle_lib.corpus.release import (
    COLUMNS,
    build_corpus,
    is_given,
    read_mask,
    whole_number,
    write_release,
)
from cradle_lib.corpus.tables import brief
from cradle_lib.errors import CorpusError
from cradle_lib.labels import LABELS, format_mask

# Usual names of columns and speakers, as `_key` spells them.
_COLUMNS: Final = {
    "text": "text content value utterance message body",
    "speaker": "speaker role from author sender",
    "dialogue": "dialogue_id dialog_id conversation_id session_id chat_id dialogue conversation",
    "labels": "labels label gold gold_labels",
    "turn": "turn_id turn turn_number turn_index",
}
_SPEAKERS: Final = {
    "User": "user human patient client seeker help_seeker caller texter",
    "Listener": "listener assistant gpt bot chatbot model ai therapist counselor counsellor "
    "supporter helper volunteer",
}
_ROLES: Final = {name: role for role, names in _SPEAKERS.items() for name in names.split()}
# Values of options in place of a column: the file is one dialogue; labels are left out.
_NO_COLUMN: Final = {"dialogue": "file", "turn": "file", "labels": "none"}
_LABEL: Final = re.compile(rf"\b({'|'.join(LABELS)})\b", re.IGNORECASE)
_FIX_CELL: Final = (
    "Correct it, or choose another column with --text or --labels; --labels none leaves labels out."
)


class Conversion(NamedTuple):
    """A converted corpus, and how its file was understood.

    Attributes:
        corpus: The dialogues, as :func:`.load_corpus` reads them from the written file.
        understood: Form, encoding, separator, speakers, dialogues, labels, consecutive messages and
            what was left out, each as a phrase; no text of a dialogue.
    """

    corpus: Corpus
    understood: Mapping[str, str]


@checked
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
            utterances in a row. ``turns``: each message, or line of a transcript, is a turn.

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
    if target is not None and target.resolve() == path.resolve():
        raise CorpusError("is the file to convert", path=target, hint="Name another file.")
    source = forms.read_source(path, encoding)
    if source.messages.empty:
        raise CorpusError("there are no messages", path=path, hint="Export it again.")
    # In a table, the column with the number of the turn is found by its name.
    turn = None if source.form == forms.TABLE else forms.TURN
    if dialogue == "file":
        turn = "file"
    options = {"text": text, "speaker": speaker, "dialogue": dialogue, "labels": labels}
    given = {"User": user, "Listener": listener, None: leave_out}
    # If both are named, any other `Name:` at the start of a text is part of the text.
    names = {*user, *listener, *leave_out} if user and listener else None
    notes: Counter[str] = Counter()
    try:
        columns = _find_columns(source.messages, options | {"turn": turn})
        rows = _read_rows(source, columns, names, notes)
        several_speak = source.form == forms.TRANSCRIPT and rows["key"].nunique() > 1
        if several_speak and rows["dialogue"].is_unique:
            hint = "If the file is one dialogue: --dialogue file. Otherwise delete blank lines."
            raise CorpusError("each dialogue has one line", hint=hint)
        rows["role"] = rows["key"].map(_find_roles(rows, given))
        rows = _merge(rows, notes, join=consecutive == "joined")
        corpus = _build(rows, (target or path).stem)
    except CorpusError as error:
        raise error.located(path) from None
    if target is not None:
        write_release(corpus, target)
    understood = {"form": source.form, **source.details}
    for role in _SPEAKERS:
        counts = rows.loc[rows["role"] == role, "speaker"].value_counts(sort=False)
        spoken = ", ".join(f"{count:,} by {name}" for name, count in counts.items())
        understood[f"turns of the {role}"] = spoken or "none"
    named = "by their ids" if "id" in rows else "by their order"
    understood["dialogues"] = f"{len(corpus):,}, named {named}"
    origin = f"in column {columns['labels']}" if "labels" in columns else "no column of labels"
    number = sum(turn.mask.bit_count() for turn in corpus.turns)
    unlabelled = corpus.unlabelled if "labels" in columns else ()
    understood["labels"] = ". ".join([f"{number:,} ({origin})", *unlabelled]).rstrip(".")
    left = "; ".join(f"{what}: {count:,}" for what, count in notes.items())
    understood["left out or joined"] = left or "nothing"
    return Conversion(corpus, understood)


def other_form(path: Path) -> str | None:
    """Recognises a file that is not in the release's format, and that :func:`convert` is for.

    Returns:
        The form, such as ``chat messages``; ``None`` if it is another one, or in the release's
        format with a mistake.
    """
    try:
        source = forms.read_source(path)
        names = {*map(_key, source.messages)}
        has_speaker = not names.isdisjoint(_COLUMNS["speaker"].split())
        if source.form == forms.TABLE and (names >= {*COLUMNS} or not has_speaker):
            convert(path)
    except CorpusError:
        return None
    return source.form


def _key(name: object) -> str:
    """Folds the spelling of a name: case, width, spaces and hyphens, a colon at its end."""
    folded = unicodedata.normalize("NFKC", str(name)).casefold()
    return re.sub(r"[\s-]+", "_", folded.strip(" \t:"))


def _find_columns(messages: pd.DataFrame, options: Mapping[str, str | None]) -> dict[str, str]:
    """Finds the columns with text, speaker, dialogue, labels and number of the turn."""
    columns = [str(column) for column in messages]
    found: dict[str, str] = {}
    for kind, usual in _COLUMNS.items():
        option = options[kind]
        if option and option == _NO_COLUMN.get(kind):
            continue
        names = [_key(option)] if option else usual.split()
        if kind == "dialogue":
            names += [f"{forms.ABOUT}{name}" for name in (*names, "id")]
        fitting = [c for c in columns if c == option] or [c for c in columns if _key(c) in names]
        if len(fitting) > 1 or (not fitting and (option or kind == "text")):
            problem = f"{len(fitting)} columns could be the {kind}, expected one"
            hint = "Keep one." if kind == "turn" else f"Name it: --{kind} COLUMN."
            if not fitting and any(
                mark in column for column in columns for mark in forms.SEPARATORS
            ):
                hint += " Put quotes around a column name that contains a separator."
            raise CorpusError(f"{problem}; found {', '.join(fitting or columns):.200}", hint=hint)
        if fitting and fitting[0].startswith(forms.ABOUT) and kind != "dialogue":
            problem = f"{fitting[0]} is a field of the dialogue, and not of each message"
            hint = "Move it into the messages. To leave labels out: --labels none."
            raise CorpusError(problem, hint=hint)
        if fitting:
            found[kind] = fitting[0]
    if options["dialogue"] != "file" and found.keys().isdisjoint(("dialogue", "turn")):
        hint = "Name it: --dialogue COLUMN; or --dialogue file, if the file is one."
        raise CorpusError("no column names the dialogue of a row", hint=hint)
    unused = [] if options["labels"] else [c for c in columns if c not in found.values()]
    lost = [c for c in unused if _LABEL.search(" ".join([c, *map(repr, messages[c])]))]
    if lost:
        raise CorpusError(
            f"{', '.join(lost):.200} looks like labels, which would be lost",
            hint="Name the column with the labels of each message: --labels COLUMN. Or leave "
            "labels out: --labels none.",
        )
    return found


def _read_rows(
    source: forms.Source,
    columns: Mapping[str, str],
    names: set[str] | None,
    notes: Counter[str],
) -> pd.DataFrame:
    """Reads who says what in which dialogue, and with which labels.

    If the text names its speaker, and ``names`` are given, only these names start an utterance.

    Returns:
        One row per message with the columns ``row``, ``dialogue`` (its number), ``id`` if it has
        one, ``speaker``, ``key`` (the speaker as :func:`_key` spells it), ``text``, ``mask`` and
        ``given`` (whether the message says which labels it has).
    """
    messages, texts, masks, given = source.messages, [], [], []
    for row, message in zip(messages.index, messages.to_dict("records"), strict=True):
        try:
            texts.append(_read_text(message[columns["text"]], notes))
            cell = message.get(columns.get("labels"))
            masks.append(read_mask(cell))
            given.append(is_given(cell))
        except CorpusError as error:
            raise CorpusError(error.problem, row=row, hint=_FIX_CELL) from None
    rows = pd.DataFrame({"row": messages.index, "text": texts, "mask": masks, "given": given})
    rows["turn"] = rows.index
    if "turn" in columns:
        rows["turn"] = [whole_number(cell) for cell in messages[columns["turn"]]]
    if "dialogue" in columns:
        rows["id"] = messages[columns["dialogue"]].tolist()
    rows["dialogue"] = _number_dialogues(rows)
    if "speaker" in columns:
        cells = messages[columns["speaker"]].fillna("")
        rows["speaker"] = [valid_unicode(str(cell)).strip() for cell in cells]
    else:
        named = rows["text"].str.extract(forms.NAMED)
        if names is not None:
            named = named.where(named[0].map(_key).isin([*map(_key, names)]))
        rows["text"] = named[1].fillna(rows["text"])
        rows["speaker"] = named[0].groupby(rows["dialogue"]).ffill().fillna("").str.strip()
    rows["text"] = rows["text"].str.strip()
    rows["key"] = rows["speaker"].map(_key)
    problem, hint = "no speaker is named", "Fill it in."
    if source.form == forms.TRANSCRIPT:
        hint = "A blank line ends a dialogue. If the file is one dialogue: --dialogue file."
    elif "speaker" not in columns:
        problem = f"no column names the speaker; found {', '.join(map(str, messages)):.200}"
        hint = "Name it: --speaker COLUMN."
    _refuse(rows, rows["key"] == "", problem, hint)
    return rows


def _number_dialogues(rows: pd.DataFrame) -> pd.Series:
    """Numbers the dialogues: a new id starts one, or without ids turn 0 or 1.

    Turn 1 after turn 0 continues the dialogue.
    """
    turn = rows["turn"]
    # The first row starts a dialogue: no turn is after the maximum.
    before = turn.shift(fill_value=turn.max())
    if "id" in rows:
        starts = rows["id"] != rows["id"].shift()
        wrong = ~starts & ~(turn > before)
    else:
        starts = turn.isin((0, 1)) & (turn <= before)
        wrong = ~starts & (turn != before + 1)
    problem = "the number of the turn does not continue the dialogue"
    hint = "A row is missing, doubled or out of order. A dialogue starts with turn 0 or 1."
    _refuse(rows, wrong | turn.isna(), problem, hint)
    return starts.cumsum()


def _refuse(rows: pd.DataFrame, wrong: pd.Series, problem: str, hint: str) -> None:
    """Refuses the file if a row is wrong, and names the first."""
    if wrong.any():
        raise CorpusError(problem, row=rows.loc[wrong, "row"].iloc[0], hint=hint)


def _read_text(cell: Any, notes: Counter[str]) -> str:
    """Reads text, or a list of parts, of which only those with text are kept."""
    if isinstance(cell, list) and all(isinstance(part, str | dict) for part in cell):
        parts = [{"text": part} if isinstance(part, str) else part for part in cell]
        notes.update(f"parts of type {brief(p.get('type'))}" for p in parts if "text" not in p)
        cell = "\n".join(str(part["text"]) for part in parts if "text" in part)
    if cell is None or cell != cell:  # NaN
        return ""
    if not isinstance(cell, str) or valid_unicode(cell) != cell:
        raise CorpusError(f"the text is {brief(cell)}, expected valid text")
    return cell


def _find_roles(
    rows: pd.DataFrame, given: Mapping[str | None, Sequence[str]]
) -> dict[str, str | None]:
    """Decides who is the User and who the Listener; ``None`` for a speaker who is left out."""
    counts = Counter(rows["key"])
    first = rows.drop_duplicates("key").set_index("key")
    shown = ", ".join(f"{first['speaker'][key]} ({n:,})" for key, n in counts.most_common(8))
    roles: dict[str, str | None] = {}
    for role, names in given.items():
        for name in names:
            if _key(name) not in counts or roles.setdefault(_key(name), role) != role:
                problem = f"{brief(name)} is no speaker, or has two roles"
                raise CorpusError(f"{problem}; found {shown}")
    rest = [key for key in counts if key not in roles]
    free = {*_SPEAKERS} - {*roles.values()}
    # If one speaker and one role are left, the speaker has that role.
    other = next(iter(free)) if len(free) == len(rest) == 1 else None
    usual = {key: _ROLES.get(key, other) for key in rest}
    times = Counter(usual.values())
    unknown = [key for key, role in usual.items() if role not in free or times[role] > 1]
    if unknown or "User" not in (roles | usual).values():
        unclear = "nobody is the User"
        if unknown:
            unclear = f"can't tell if {' or '.join(first['speaker'][unknown])} is User or Listener"
        raise CorpusError(
            f"{unclear:.200}; found {shown or 'no message'}",
            row=first["row"][unknown[0]] if unknown else None,
            hint="Say who is who: --user NAME, --listener NAME or --leave-out NAME; each may be "
            "given several times.",
        )
    return roles | usual


def _merge(rows: pd.DataFrame, notes: Counter[str], *, join: bool) -> pd.DataFrame:
    """Leaves out empty messages and speakers without a role; joins messages of one speaker."""
    why = pd.Series("", rows.index).mask(rows["role"].isna(), "messages by " + rows["speaker"])
    why = why.mask(rows["text"] == "", "messages without text")
    lost = (why != "") & (rows["mask"] != 0)
    _refuse(rows, lost, "a message that would be left out has labels", _FIX_CELL)
    notes.update(why[why != ""] + ", left out")
    rows = rows[why == ""]
    place = rows[["dialogue", "key"]]
    same = (place == place.shift()).all(axis=1)
    if same.any():
        what = "joined to the one before" if join else "kept as turns"
        notes[f"consecutive messages of one speaker, {what}"] = same.sum()
    if join and same.any():
        starts = np.flatnonzero(~same)
        joined = ["\n".join(parts) for parts in np.split(rows["text"].to_numpy(), starts[1:])]
        masks, given = (
            np.bitwise_or.reduceat(rows[name].to_numpy(), starts) for name in ("mask", "given")
        )
        rows = rows.iloc[starts].assign(text=joined, mask=masks, given=given)
    return rows


def _build(rows: pd.DataFrame, name: str) -> Corpus:
    """Makes a corpus; an error names the row in the source."""
    numbers = rows.groupby("dialogue").cumcount()
    texts = rows["role"] + ": " + rows["text"]
    cells = rows["mask"].map(format_mask).where(rows["given"], "")
    turns = zip(numbers, texts, cells, strict=True)
    about = {"dialogue_id": rows["id"].tolist()} if "id" in rows else {}
    try:
        return build_corpus(turns, name, about=about)
    except CorpusError as error:
        row = None if error.row is None else rows["row"].iloc[error.row]
        raise CorpusError(error.problem, row=row, hint=error.hint) from None
