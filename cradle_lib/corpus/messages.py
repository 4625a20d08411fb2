"""Reads the messages of a source: who says what in which dialogue, and with which labels.

All steps run, as far as the user's file lets them, and their errors are raised together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.corpus import columns, forms, repeats
from cradle_lib.corpus.dialogue import valid_unicode
from cradle_lib.corpus.order import MESSAGE_IDS, TURN_NAMES, order_messages
from cradle_lib.corpus.release import is_given, whole_number
from cradle_lib.corpus.roles import find_roles
from cradle_lib.corpus.speakers import ROLES, key
from cradle_lib.corpus.tables import brief
from cradle_lib.corpus.times import cell_text
from cradle_lib.corpus.transcripts import FIX_LINE, NAMED, lines_of, looks_like_name
from cradle_lib.errors import CorpusError

#: What to do about a cell that can't be used.
FIX_CELL: Final = (
    "Correct it, or choose another column with --text or --labels; --no-labels leaves labels out."
)
_FIX_TIME: Final = "Write it before the name: `[00:05] Client: ...`."
# A name and a text that a time such as `[00:05 - 00:09]` was split into.
_HOUR: Final = r"[\s\[(]\d{1,2}$"
_MINUTES: Final = r"^\d\d\b"
_FIX_NUMBER: Final = (
    "A row is missing, doubled or out of order. A dialogue starts with turn 0 or 1. If the newest "
    "messages are first, add a column with the dialogue's id."
)


@dataclass(frozen=True)
class Options:
    """What the user says about the file.

    Attributes:
        speakers: Names for each role, and for no role.
        columns: Column of each other kind.
        labels: Columns with labels, or only ``none``.
        order: Column that orders the messages, ``file`` or ``reversed``.
        single: Each row is a dialogue.
        cumulative: Whether each row repeats the turns before it.
    """

    speakers: Mapping[str | None, Sequence[str]]
    columns: Mapping[str, str | None]
    labels: Sequence[str]
    order: str | None
    single: bool
    cumulative: bool | None

    @cached_property
    def names(self) -> set[str]:
        """All names that the user gave."""
        return {key(name) for names in self.speakers.values() for name in names}

    def is_name(self, name: object) -> bool:
        """Whether ``Name:`` at the start of a text names a speaker.

        If the User and the Listener are named, no other name does.
        """
        all_named = self.speakers["User"] and self.speakers["Listener"]
        return not all_named or key(name) in self.names

    def is_forgotten(self, name: object) -> bool:
        """Whether ``Name:`` looks like a speaker whom the user did not name."""
        return not self.is_name(name) and looks_like_name(name)


class _Problems(list[CorpusError]):
    """The errors of several steps, which are raised together."""

    @contextmanager
    def collected(self) -> Iterator[None]:
        try:
            yield
        except CorpusError as error:
            self.append(error)

    def raise_all(self) -> None:
        if len(self) == 1:
            raise self[0]
        if self:
            told = " ".join(f"({number}) {error}" for number, error in enumerate(self, 1))
            raise CorpusError(f"{len(self)} things must be decided or corrected. {told}")


def read_messages(source: forms.Source, options: Options) -> tuple[pd.DataFrame, dict[str, str]]:
    """Reads who says what in which dialogue and order, and with which labels.

    Returns:
        One row per message with the columns ``row``, ``dialogue`` (its number), ``id`` if it has
        one, ``speaker``, ``key`` (the speaker as :func:`.key` spells it), ``role``, ``text``,
        ``mask`` and ``labelled`` (whether its dialogue has gold labels); and what was understood.
    """
    if options.single and source.form not in (forms.TABLE, forms.TEXTS):
        raise CorpusError(f"the file has {source.form}", hint="Leave out --single.")
    frame, problems = source.messages, _Problems()
    if source.form == forms.TABLE:
        columns.refuse_other_tables(frame, options.columns["text"])
    found, labels, unread = _find_columns(frame, options, problems)
    rows = pd.DataFrame({"row": frame.index, "dialogue": 0, "mask": 0, "labelled": False})
    used, ordered = {*found.values(), *labels}, "as in the file"
    if text := found.get("text"):
        with problems.collected():
            rows["text"] = _read_cells(frame[[text]], lambda cell: _read_text(cell, source.notes))
    if labels:
        bits = [*labels.values()]
        with problems.collected():
            rows["mask"] = _read_cells(
                frame[[*labels]], lambda *cells: columns.read_labels(cells, bits)
            )
        rows["labelled"] = frame[[*labels]].map(is_given).any(axis=1).tolist()
        told = rows.loc[rows["labelled"], "mask"]
        if len(told) and told.all():
            # No cell says `none`, so that empty cells do. A message may also have no such field.
            empty = frame[[*labels]].map(lambda cell: isinstance(cell, str)).any(axis=1).to_numpy()
            rows["labelled"] |= empty | (source.form == forms.TABLE)
    if "text" not in rows:
        rows["text"] = ""
    if dialogue := found.get("dialogue"):
        rows["id"] = frame[dialogue].tolist()
    if "dialogue" in found:
        with problems.collected():
            numbers = _number_dialogues(source, dialogue, options, rows["text"].tolist())
            rows["dialogue"] = numbers
            positions, ordered = order_messages(
                frame, numbers, used, options.order, as_written=source.form == forms.EXPORT
            )
            rows = rows.iloc[positions]
    if options.single:
        rows = rows.assign(speaker="a row", key="", role="User")
    elif "text" not in found and "speaker" in found and not found["speaker"]:
        hint = "Name it: --speaker COLUMN."
        problems.append(CorpusError("no column is named like a speaker", hint=hint))
    elif "speaker" in found:
        with problems.collected():
            rows = _read_speakers(rows, source, found["speaker"], options)
            with problems.collected():
                rows = _handle_repeats(rows, source, found["speaker"], labels, options)
            roles = find_roles(rows[rows["key"] != ""], options.speakers)
            rows["role"] = rows["key"].map(roles)
    problems.raise_all()
    rows["labelled"] |= rows["mask"].astype(bool)
    rows["labelled"] = rows["labelled"].groupby(rows["dialogue"]).transform("any")
    others = ", ".join(name for name in map(str, frame) if name not in used)
    origin = " and ".join(labels) if len(labels) < 3 else f"{len(labels)} columns"
    origin += f"; left out: {', '.join(unread):.200}" if unread else ""
    left_out = "left out" if options.labels else "no column of labels"
    return rows, {
        "order": ordered,
        "labels": f"in {origin}" if labels else left_out,
        "other columns": f"{others:.200}" or "none",
    }


def _find_columns(
    frame: pd.DataFrame, options: Options, problems: _Problems
) -> tuple[dict[str, str | None], dict[str, int | None], list[str]]:
    """Finds the columns, as :func:`.find_labels` does; those that are not clear are missing."""
    found: dict[str, str | None] = {}
    with problems.collected():
        found["text"] = columns.find_text(frame, options.columns["text"])
    if not options.single:
        with problems.collected():
            # Without such a column the texts may name their speakers.
            found["speaker"] = columns.find_column(
                frame, "speaker", columns.SPEAKER_NAMES, options.columns["speaker"]
            )
    with problems.collected():
        found["dialogue"] = columns.find_dialogue(
            frame, options.columns["dialogue"], rows_are_texts=options.single
        )
    with problems.collected():
        columns.refuse_inner_messages(frame, {*found.values()})
    labels: dict[str, int | None] = {}
    unread: list[str] = []
    with problems.collected():
        labels, unread = columns.find_labels(
            frame, options.labels, {*found.values()}, of_rows=bool(options.cumulative)
        )
    return found, labels, unread


def _read_cells(frame: pd.DataFrame, read: Callable[..., Any]) -> list[Any]:
    """Applies a function to the cells of each row."""
    found = []
    cells = zip(*(frame[name].tolist() for name in frame), strict=True)
    for row, values in zip(frame.index, cells, strict=True):
        try:
            found.append(read(*values))
        except CorpusError as error:
            raise CorpusError(error.problem, row=row, hint=FIX_CELL) from None
    return found


def _number_dialogues(
    source: forms.Source, dialogue: str | None, options: Options, texts: Sequence[str]
) -> NDArray[np.int64]:
    """Numbers the dialogues: by the form, by their ids, or from each turn 0 or 1.

    Turn 1 after turn 0 continues the dialogue.
    """
    frame = source.messages
    if options.single:
        return np.arange(len(frame))
    if options.columns["dialogue"] == "file" and not source.is_folder:
        return np.zeros(len(frame), np.int64)
    if source.dialogues is not None and (not dialogue or dialogue.startswith(columns.ABOUT)):
        return pd.factorize(np.array(source.dialogues))[0]
    if dialogue:
        ids = frame[dialogue].map(str)
        _refuse_spellings(ids)
        return pd.factorize(ids)[0]
    if options.cumulative:
        return np.cumsum(repeats.starts_of_dialogues(texts), dtype=np.int64)
    turns = [name for name in map(str, frame) if key(name) in TURN_NAMES]
    if not turns:
        hint = "Name it: --dialogue COLUMN; --dialogue file, if the file is one; or --single, if "
        raise CorpusError("no column names the dialogue of a row", hint=f"{hint}each row is one.")
    if len(turns) > 1:
        problem = f"{len(turns)} columns could be the number of the turn: {', '.join(turns):.200}"
        raise CorpusError(problem, hint="Keep one, or name a column: --dialogue COLUMN.")
    turn = pd.Series([whole_number(cell) for cell in frame[turns[0]]], dtype=float)
    # The first row starts a dialogue: no turn is after the maximum.
    before = turn.shift(fill_value=turn.max())
    starts = turn.isin((0, 1)) & (turn <= before)
    wrong = (~starts & (turn != before + 1)) | turn.isna()
    rows = pd.DataFrame({"row": frame.index})
    refuse_row(rows, wrong, "the number of the turn does not continue the dialogue", _FIX_NUMBER)
    return np.cumsum(starts.to_numpy(), dtype=np.int64)


def _refuse_spellings(ids: pd.Series) -> None:
    """Refuses ids that differ only in spelling, such as ``1`` and ``1.0``, if their rows are mixed.

    Ids whose rows are together may differ in case on purpose.
    """
    same = ids.map(lambda own: key(re.sub(r"^(\d+)\.0$", r"\1", own.strip())))
    first = ids.groupby(same).transform("first")
    mixed = ids.groupby(same).transform(lambda own: (own != own.shift()).sum() > own.nunique())
    differs = ((ids != first) & mixed.astype(bool)).to_numpy()
    if differs.any():
        at = int(np.argmax(differs))
        problem = f"the dialogue is {brief(ids.iloc[at])}, and {brief(first.iloc[at])} above"
        hint = (
            "Spell the id of a dialogue in one way. Ids of two dialogues need another difference."
        )
        raise CorpusError(problem, row=ids.index[at], hint=hint)


def _read_speakers(
    rows: pd.DataFrame, source: forms.Source, speaker: str | None, options: Options
) -> pd.DataFrame:
    """Reads who speaks, from the column or from the start of the texts."""
    problem, hint = "no speaker is named", "Fill it in."
    if speaker is not None:
        cells = source.messages[speaker].fillna("").iloc[rows.index]
        rows = rows.assign(speaker=[" ".join(valid_unicode(str(cell)).split()) for cell in cells])
    else:
        named = rows["text"].str.extract(NAMED)
        _refuse_forgotten(rows, named["name"], options)
        named = named.where(named["name"].map(options.is_name))
        within = named["name"].str.contains(_HOUR) & named["text"].str.contains(_MINUTES)
        refuse_row(rows, within, "a time follows the name", f"{_FIX_TIME} {FIX_LINE}")
        if 2 * named["after"].count() < named["name"].count():
            # In a few texts, it is what was said: `Client: (10:30) suits me`.
            named["text"] = named["after"].fillna("") + named["text"]
            named["after"] = None
        if times := int(named[["before", "after"]].notna().any(axis=1).sum()):
            source.notes["times beside names, left out"] += times
        names = named["name"].groupby(rows["dialogue"]).ffill().fillna("").str.strip()
        rows = rows.assign(text=named["text"].fillna(rows["text"]).str.strip(), speaker=names)
        if source.form == forms.TRANSCRIPT:
            hint = "A blank line ends a dialogue. If the file is one dialogue: --dialogue file."
        else:
            problem = "no column names the speaker; found "
            problem += f"{', '.join(map(str, source.messages)):.200}"
            hint = "Name it: --speaker COLUMN."
    rows = rows.assign(key=rows["speaker"].map(key))
    refuse_row(rows, (rows["key"] == "") & (rows["text"] != ""), problem, hint)
    separated = source.form in (forms.TRANSCRIPT, forms.EXPORT) and not source.is_folder
    if separated and rows["key"].nunique() > 1 and rows["dialogue"].is_unique:
        hint = "If the file is one dialogue: --dialogue file. Otherwise delete blank lines."
        raise CorpusError("each dialogue has one line", hint=hint)
    return rows


def _refuse_forgotten(rows: pd.DataFrame, starts: pd.Series, options: Options) -> None:
    """Refuses lines of a speaker whom the user did not name: they would join the line above."""
    forgotten = starts.notna() & starts.map(options.is_forgotten)
    counts = Counter(starts[forgotten].str.strip())
    shown = ", ".join(f"{name} ({number:,})" for name, number in counts.most_common(8))
    hint = (
        "Name all speakers: --user NAME, --listener NAME or --leave-out NAME; each may be given "
        f"several times. {FIX_LINE}"
    )
    refuse_row(rows, forgotten, f"lines start like those of other speakers: {shown}", hint)


def _handle_repeats(
    rows: pd.DataFrame,
    source: forms.Source,
    speaker: str | None,
    labels: Mapping[str, Any],
    options: Options,
) -> pd.DataFrame:
    """Refuses repeated turns, or keeps what is new in each row, as the user says."""
    known = {*ROLES, *options.names, *rows["key"]}
    if options.cumulative is None:
        cells_name_speakers = source.form == forms.TABLE and not speaker
        numbers = [n for n in source.messages if key(n) in (*TURN_NAMES, *MESSAGE_IDS)]
        repeats.refuse_copies(rows, source.messages[numbers].iloc[rows.index].map(cell_text))
        repeats.refuse_repeats(rows, known, cells_name_speakers=cells_name_speakers)
    if not options.cumulative:
        return rows
    if source.form == forms.CHAT:
        if any(name.startswith(columns.ABOUT) for name in labels):
            last = rows["dialogue"] != rows["dialogue"].shift(-1)
            rows = rows.assign(mask=rows["mask"].where(last, 0))
        return repeats.longest_dialogues(rows)
    if not speaker:
        lines = rows.assign(text=rows["text"].map(lines_of)).explode("text", ignore_index=True)
        _refuse_forgotten(lines, lines["text"].str.extract(NAMED)["name"], options)
    known = known.union(*(repeats.speakers_in(text, known) for text in rows["text"]))

    def split(name: str, text: str) -> list[tuple[str, str]]:
        parts = [(name, "")]
        for line in lines_of(text):
            named = NAMED.match(line)
            if named and options.is_name(named[1]) and (not speaker or key(named[1]) in known):
                parts.append((named["name"].strip(), named["text"].strip()))
            else:
                parts[-1] = parts[-1][0], f"{parts[-1][1]}\n{line}".strip()
        return parts[1:] if len(parts) > 1 and not parts[0][1] else parts

    rows = repeats.new_parts(rows, split)
    return repeats.longest_dialogues(rows.assign(key=rows["speaker"].map(key)))


def refuse_row(rows: pd.DataFrame, wrong: pd.Series, problem: str, hint: str) -> None:
    """Refuses the file if a row is wrong, and names the first."""
    if wrong.any():
        raise CorpusError(problem, row=rows.loc[wrong, "row"].iloc[0], hint=hint)


def _read_text(cell: Any, notes: Counter[str]) -> str:
    """Reads text, or a list of parts, of which only those with text are kept."""
    if isinstance(cell, list) and all(isinstance(part, str | dict) for part in cell):
        parts = [{"text": part} if isinstance(part, str) else part for part in cell]
        notes.update(f"parts of type {brief(p.get('type'))}" for p in parts if "text" not in p)
        # A text with marked words is a list of texts and objects.
        between = "" if {*map(type, cell)} == {str, dict} else "\n"
        cell = between.join(str(part["text"]) for part in parts if "text" in part)
    if cell is None or cell != cell:  # NaN
        return ""
    if not isinstance(cell, str) or valid_unicode(cell) != cell or "\0" in cell:
        raise CorpusError(f"the text is {brief(cell)}, expected valid text")
    return cell.strip()
