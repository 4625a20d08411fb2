"""Converts dialogues in usual forms into the release's format.

:mod:`.forms` reads a file, and :mod:`.messages` finds out who says what, in which order, dialogue
and with which labels. Nothing is guessed where a wrong guess would swap speakers, lose a label or
move a turn: the error names the option that decides. This module joins what belongs to one
utterance, and writes the corpus.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

from cradle_lib.arguments import checked
from cradle_lib.corpus import columns, forms
from cradle_lib.corpus.dialogue import Corpus
from cradle_lib.corpus.messages import FIX_CELL, Options, read_messages, refuse_row
from cradle_lib.corpus.release import COLUMNS, build_corpus, write_release
from cradle_lib.corpus.speakers import key
from cradle_lib.corpus.tables import brief
from cradle_lib.errors import CorpusError
from cradle_lib.labels import format_mask


class Conversion(NamedTuple):
    """A converted corpus, and how its file was understood.

    Attributes:
        corpus: The dialogues, as :func:`.load_corpus` reads them from the written file.
        understood: Form, encoding, separator, speakers, dialogues, order, labels, columns without
            use, consecutive messages and what was left out, each as a phrase; no text of a
            dialogue.
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
    labels: str | Sequence[str] | None = None,
    messages: str | None = None,
    order: str | None = None,
    single: bool = False,
    cumulative: bool | None = None,
    encoding: str | None = None,
    consecutive: str = "joined",
) -> Conversion:
    """Converts a file of dialogues into the release's format.

    Args:
        path: Chat messages (JSON, JSON lines or parquet), a table (CSV with any separator, JSON,
            JSON lines or parquet), a messenger's export, a transcript: lines ``Name: text``, with a
            blank line between dialogues; a folder of transcripts or exports, one for each dialogue;
            or a folder that ``datasets`` saved.
        out: The file to write, ``.csv`` or ``.parquet``; by default none is written.
        user: Names of the User in the file. Usual names, such as ``patient``, need no option.
        listener: Names of the Listener.
        leave_out: Names of speakers whose messages are left out, such as ``system``.
        speaker: Column that says who speaks.
        text: Column with the text.
        dialogue: Column with the id of the dialogue; ``file``: the file is one dialogue.
        labels: Column with labels, or several whose labels are joined; ``none``: leave labels out.
        messages: Field of a dialogue with the list of its messages, if there are several lists.
        order: Column that orders the messages of a dialogue; ``file``: their order in the file;
            ``reversed``: that order, reversed.
        single: Each row, paragraph or file of a folder is a dialogue with one turn of the User.
        cumulative: Whether each row repeats the turns before it, so that only what is new counts.
            By default, such a file is refused.
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
    source = forms.read_source(path, encoding, messages, single=single)
    if source.messages.empty:
        raise CorpusError("there are no messages", path=path, hint="Export it again.")
    options = Options(
        {"User": user, "Listener": listener, None: leave_out},
        {"text": text, "speaker": speaker, "dialogue": dialogue},
        [labels] if isinstance(labels, str) else labels or (),
        order,
        single,
        cumulative,
    )
    try:
        rows, understood = read_messages(source, options)
        rows = _merge(rows, source.notes, join=consecutive == "joined" and not single)
        corpus = _build(rows, (target or path).stem)
    except CorpusError as error:
        raise error.located(path) from None
    if target is not None:
        write_release(corpus, target)
    about = {"form": source.form, **source.details}
    for role in ("User", "Listener"):
        counts = rows.loc[rows["role"] == role, "speaker"].value_counts(sort=False)
        spoken = ", ".join(f"{count:,} by {name}" for name, count in counts.items())
        about[f"turns of the {role}"] = spoken or "none"
    named = "by their ids" if "id" in rows else "by their order"
    about["dialogues"] = f"{len(corpus):,}, named {named}"
    without = [dialogue.id for dialogue in corpus if not dialogue.labelled]
    about["with gold labels"] = f"{len(corpus.labelled):,} of {len(corpus):,}"
    if without and len(corpus.labelled):
        about["with gold labels"] += f"; without: {', '.join(without):.200}"
    total = sum(turn.mask.bit_count() for turn in corpus.turns)
    understood["labels"] = f"{total:,} ({understood['labels']})"
    left = "; ".join(f"{what}: {count:,}" for what, count in source.notes.items())
    return Conversion(corpus, about | understood | {"left out or joined": left or "nothing"})


def other_form(path: Path) -> str | None:
    """Recognises a file that is not in the release's format, and that :func:`convert` is for.

    Returns:
        The form, such as ``chat messages``; ``None`` if it is another one, or in the release's
        format with a mistake.
    """
    try:
        source = forms.read_source(path)
        names = {*map(key, source.messages)}
        has_speaker = not names.isdisjoint(columns.SPEAKER_NAMES)
        if source.form == forms.TABLE and (names >= {*COLUMNS} or not has_speaker):
            convert(path)
    except CorpusError:
        return None
    return source.form


def _merge(rows: pd.DataFrame, notes: Counter[str], *, join: bool) -> pd.DataFrame:
    """Leaves out empty messages and speakers without a role; joins messages of one speaker."""
    why = pd.Series("", rows.index).mask(rows["role"].isna(), "messages by " + rows["speaker"])
    why = why.mask(rows["text"] == "", "messages without text")
    lost = (why != "") & (rows["mask"] != 0)
    refuse_row(rows, lost, "a message that would be left out has labels", FIX_CELL)
    notes.update(why[why != ""] + ", left out")
    rows = rows[why == ""]
    place = rows[["dialogue", "key"]]
    same = (place == place.shift()).all(axis=1)
    if same.any():
        what = "joined to the one before" if join else "kept as turns"
        notes[f"consecutive messages of one speaker, {what}"] = same.sum()
        if copies := (same & (rows["text"] == rows["text"].shift())).sum():
            notes["of these, with the text of the one before"] = copies
    if join and same.any():
        starts = np.flatnonzero(~same)
        texts, masks = rows["text"].to_numpy(), rows["mask"].to_numpy()
        joined = ["\n".join(parts) for parts in np.split(texts, starts[1:])]
        rows = rows.iloc[starts].assign(text=joined, mask=np.bitwise_or.reduceat(masks, starts))
    return rows


def _build(rows: pd.DataFrame, name: str) -> Corpus:
    """Makes a corpus; an error names the row in the source."""
    numbers = rows.groupby("dialogue").cumcount()
    texts = rows["role"] + ": " + rows["text"]
    cells = rows["mask"].map(format_mask).where(rows["labelled"], "")
    turns = zip(numbers, texts, cells, strict=True)
    about = {"dialogue_id": rows["id"].tolist()} if "id" in rows else {}
    try:
        return build_corpus(turns, name, about=about)
    except CorpusError as error:
        row = None if error.row is None else rows["row"].iloc[error.row]
        raise CorpusError(error.problem, row=row, hint=error.hint) from None
