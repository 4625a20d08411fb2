"""Finds the columns of a user's file with text, speaker, dialogue and labels.

A column is found by a usual name or named by an option. Labels are also recognised by their values:
a column that looks like labels is never left out without a decision.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any, Final

import pandas as pd

from cradle_lib.corpus import spellings
from cradle_lib.corpus.release import read_mask
from cradle_lib.corpus.speakers import key, names
from cradle_lib.errors import CorpusError

#: Start of the name of a column with a field of the dialogue, not of the message.
ABOUT: Final = "dialogue."
TEXT_NAMES: Final = names("text content value utterance message body msg")
SPEAKER_NAMES: Final = names("speaker role from author sender sender_name username who")
# The first group with a column is used. `id` is often the id of the message.
_DIALOGUE: Final = tuple(
    names(group)
    for group in (
        "dialogue_id dialog_id conversation_id session_id chat_id thread_id",
        "dialogue dialog conversation session chat thread",
        "id",
    )
)
_LABELS: Final = names("labels label gold gold_labels")
# Names of columns that may have labels, even if their values don't look like any.
_PERHAPS_LABELS: Final = _LABELS | names(
    "annotation annotations category categories class classes tag tags target"
)
#: Usual names of columns, as :func:`~.speakers.key` spells them.
USUAL: Final = TEXT_NAMES | SPEAKER_NAMES | frozenset().union(*_DIALOGUE) | _LABELS
_NAME_TEXT: Final = "If a column has the text, name it: --text COLUMN."
_TRUE: Final = frozenset(("1", "1.0", "true", "yes", "y", "x"))
_FALSE: Final = frozenset(("0", "0.0", "false", "no", "n", "none", "nan", ""))


def find_column(
    messages: pd.DataFrame,
    kind: str,
    usual: frozenset[str],
    option: str | None,
    *,
    of_dialogue: bool = False,
) -> str | None:
    """Finds the column with a kind of content, by the name in an option or a usual name.

    Raises:
        CorpusError: If several columns fit, the one named does not exist, or it is a field of the
            dialogue.
    """
    columns = [str(column) for column in messages]
    if of_dialogue and option and key(f"{ABOUT}{option}") in map(key, columns):
        option = f"{ABOUT}{option}"
    wanted = {key(option)} if option else usual
    found = [c for c in columns if c == option] or [c for c in columns if key(c) in wanted]
    if len(found) > 1 or (option and not found):
        problem = f"{len(found)} columns could be the {kind}, expected one"
        hint = f"Name it: --{kind} COLUMN."
        raise CorpusError(f"{problem}; found {', '.join(found or columns):.200}", hint=hint)
    if found and found[0].startswith(ABOUT) and not of_dialogue:
        problem = f"{found[0]} is a field of the dialogue, and not of each message"
        raise CorpusError(
            problem, hint="Move it into the messages. To leave labels out: --no-labels."
        )
    return found[0] if found else None


def find_text(messages: pd.DataFrame, option: str | None) -> str:
    """Finds the column with the text."""
    if found := find_column(messages, "text", TEXT_NAMES, option):
        return found
    problem = f"no column is named like a text; found {', '.join(map(str, messages)):.200}"
    raise CorpusError(problem, hint=_NAME_TEXT)


def refuse_other_tables(messages: pd.DataFrame, option: str | None) -> None:
    """Refuses a table with a line above its header, or with all messages of a dialogue in a cell.

    Nothing else about such a table can be decided.

    Raises:
        CorpusError: If it is such a table; the message says what to do.
    """
    columns = [str(column) for column in messages]
    if option or not TEXT_NAMES.isdisjoint(map(key, columns)):
        return
    for name in columns:
        if messages[name].map(lambda cell: str(cell).lstrip().startswith("[{")).all():
            problem = f"{name} has all messages of a dialogue in each cell"
            hint = f"Save it as JSON lines, with lists instead of text in this field. {_NAME_TEXT}"
            raise CorpusError(problem, hint=hint)
    # Columns without a name are named by their position.
    if columns[1:] == [f"column {place}" for place in range(2, len(columns) + 1)]:
        problem = f"the first line names no column of the text; found {columns[0]:.200}"
        raise CorpusError(problem, hint=f"Delete lines above the header. {_NAME_TEXT}")


def find_dialogue(
    messages: pd.DataFrame, option: str | None, *, rows_are_texts: bool
) -> str | None:
    """Finds the column with the id of the dialogue.

    If each dialogue has a list of messages, only a field of the dialogue has its id, unless the
    user says otherwise. An ``id`` in a table that never repeats is that of the message, unless each
    row is a dialogue.
    """
    if option == "file":
        return None
    nested = any(str(name).startswith(ABOUT) for name in messages)
    for group in _DIALOGUE:
        wanted = frozenset(f"{ABOUT}{name}" for name in group) if nested else group
        found = find_column(messages, "dialogue", wanted, option, of_dialogue=True)
        weak = not (option or nested or rows_are_texts or len(messages) == 1) and group == {"id"}
        if found and not (weak and messages[found].map(str).is_unique):
            return found
    return None


def refuse_inner_messages(messages: pd.DataFrame, used: Collection[str | None]) -> None:
    """Refuses messages that have a list of further messages, such as replies, in a field."""
    for name in map(str, messages):
        if name in used or name.startswith(ABOUT):
            continue
        row: Any
        for row, cell in messages[name].items():
            first = cell[0] if isinstance(cell, list) and cell else None
            fields = {*map(key, first)} if isinstance(first, dict) else set()
            if fields & TEXT_NAMES and fields & SPEAKER_NAMES:
                problem = f"{name} has further messages, which would be lost"
                hint = "Write each branch as a dialogue of its own, or delete the field."
                raise CorpusError(problem, row=row, hint=hint)


def find_labels(
    messages: pd.DataFrame,
    options: Sequence[str],
    used: Collection[str | None],
    *,
    of_rows: bool = False,
) -> tuple[dict[str, int | None], list[str]]:
    """Finds the columns with labels.

    Args:
        messages: The messages.
        options: The user's choice: columns, or only ``none`` to leave labels out.
        used: Columns with other content.
        of_rows: A field of the dialogue may have labels, which are those of its last message.

    Returns:
        The columns with labels, with ``None``; or a column for each label, with the label's bit;
        empty if there are no labels. Then the columns that may have labels, but were not chosen.

    Raises:
        CorpusError: If several columns fit, or a column that is not found may have labels.
    """
    if [*options] == ["none"]:
        return {}, []
    found: dict[str, int | None] = {}
    usual = _LABELS | {f"{ABOUT}{name}" for name in _LABELS} if of_rows else _LABELS
    names = [c for c in map(str, messages) if c not in used]
    bits = {c: spellings.bit(c.rpartition(".")[2]) for c in names if not c.startswith(ABOUT)}
    flags = {c: bit for c, bit in bits.items() if bit and _are_flags(messages[c])}
    for option in options or (None,):
        if column := find_column(messages, "labels", usual, option, of_dialogue=of_rows):
            found[column] = flags.get(column)
    found = found or {**flags}
    known = any(_flag(cell) is not False for c in found for cell in messages[c])
    rest = [c for c in names if c not in found]
    lost = [c for c in rest if _may_have_labels(c, messages[c], known=known)]
    if lost and not options:
        hint = "Name the columns with the labels of each message: --labels COLUMN, once for each. "
        if all(c.startswith(ABOUT) for c in lost):
            hint = "A field of the dialogue does not say which turn is meant: label the messages. "
        raise CorpusError(
            f"{', '.join(lost):.200} looks like labels, which would be lost",
            hint=f"{hint}Or leave labels out: --no-labels.",
        )
    return found, lost


def read_labels(cells: Sequence[Any], bits: Sequence[int | None]) -> int:
    """Reads the labels of a message.

    Args:
        cells: The cells in the columns that :func:`find_labels` gives.
        bits: The bits that it gives.

    Raises:
        CorpusError: If a label is unknown.
    """
    mask = 0
    for cell, bit in zip(cells, bits, strict=True):
        mask |= read_mask(cell) if bit is None else bit * bool(_flag(cell))
    return mask


def _flag(cell: Any) -> bool | None:
    """Reads whether a cell is marked; ``None`` if it is neither yes nor no."""
    text = "" if cell is None else str(cell).strip().casefold()
    return True if text in _TRUE else False if text in _FALSE else None


def _are_flags(cells: pd.Series) -> bool:
    return all(_flag(cell) is not None for cell in cells)


def _may_have_labels(name: str, cells: pd.Series, *, known: bool) -> bool:
    """Whether a column may have labels, by its name or its values.

    Args:
        name: Its name.
        cells: Its values.
        known: Another column has the labels: only complete labels are a reason.
    """
    own = name.removeprefix(ABOUT)
    texts = {text for cell in cells for text in _texts(cell) if text.strip()}
    parts = {text: spellings.split(text) for text in texts if len(text) <= 200}
    similar = sum(any(map(spellings.resembles, each)) for each in parts.values())
    written = any(spellings.WRITTEN_OUT.search(text) for text in texts)
    spelled = any(spellings.spelled(part) for each in parts.values() for part in each)
    if written or spelled or (not known and 10 * similar > len(texts)):
        return True
    last = own.rpartition(".")[2]
    named = spellings.spelled(last) is not None
    if not known or name != own:
        named |= spellings.resembles(last) or key(own) in _PERHAPS_LABELS
    return named and any(_flag(cell) is not False for cell in cells)


def _texts(value: Any) -> list[str]:
    """Lists the texts in a cell, which may be an object or list with texts in it."""
    if isinstance(value, dict):
        value = [*value, *value.values()]
    if isinstance(value, list):
        return [text for item in value for text in _texts(item)]
    return [value] if isinstance(value, str) else []
