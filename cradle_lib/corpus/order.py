"""Puts the messages of each dialogue in order, or refuses to guess it.

The order of the file is kept if no column contradicts it. A file with the newest message first, or
with mixed pages, is sorted by the column that orders it, such as ``created_at`` or ``turn``. The
user decides if columns disagree, if equal times leave the order open, or if a message has two
answers.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, Final

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from cradle_lib.corpus.columns import ABOUT
from cradle_lib.corpus.speakers import key, names
from cradle_lib.corpus.tables import brief
from cradle_lib.corpus.times import Reading, cell_text, read_times
from cradle_lib.errors import CorpusError

Positions = NDArray[np.int64]
#: Usual names of a column with the number of a message in its dialogue.
TURN_NAMES: Final = names(
    "turn_id turn turn_number turn_index turn_no message_index message_number utterance_index "
    "utterance_id"
)
_ORDER_NAMES: Final = TURN_NAMES | names(
    "index idx position seq sequence time timestamp timestamp_ms time_stamp ts date datetime "
    "date_time date_unixtime created_at created create_time created_time created_utc sent_at sent "
    "message_time"
)
_PARENT_NAMES: Final = names(
    "parent_id parent parent_message_id parent_uuid reply_to reply_to_id reply_to_message_id "
    "in_reply_to"
)
#: Usual names of a column with the id of a message.
MESSAGE_IDS: Final = ("message_id", "msg_id", "uuid")
_ID_NAMES: Final = (*MESSAGE_IDS, "id")
_SHARED_ID: Final = "If two dialogues have the same id, give each its own."
_SECOND: Final = (
    "If another dialogue starts there, put each into a text file, and convert the folder; or put a "
    "blank line between them, if the times have no dates. --order file keeps one dialogue."
)
_DECIDE: Final = (
    "--order COLUMN sorts by a column, --order file keeps the order of the file, and --order "
    "reversed reverses it."
)


def order_messages(
    messages: pd.DataFrame,
    dialogues: Positions,
    used: Collection[str | None],
    option: str | None,
    *,
    as_written: bool = False,
) -> tuple[Positions, str]:
    """Finds the order of the messages, dialogue by dialogue.

    Args:
        messages: The messages in the order of the file.
        dialogues: For each message, the number of its dialogue.
        used: Columns with text, speaker and other content.
        option: The user's choice: ``file``, ``reversed``, or a column.
        as_written: The file was written message by message, so that a time that falls once is that
            of a message that arrived late.

    Returns:
        The positions of the messages in order, and how they were ordered.

    Raises:
        CorpusError: If the order is not clear.
    """
    places: Positions = np.arange(len(messages))
    kept = np.lexsort((places, dialogues))
    if option == "file":
        return kept, "as in the file"
    if option == "reversed":
        return np.lexsort((-places, dialogues)), "the file's, reversed"
    columns = {
        str(name): messages[name].tolist()
        for name in messages
        if name not in used and not str(name).startswith(ABOUT)
    }
    if option is not None:
        return _sorted_by(option, columns, dialogues, messages.index), f"by {option}"
    named = {} if as_written else _named(columns)
    readings = {name: read_times(cells) for name, cells in (named or columns).items()}
    for name, found in readings.items():
        _refuse_restart(name, found, kept, dialogues, messages.index)
    known = {
        name: readings[name]
        for name, cells in named.items()
        if len({*zip(dialogues, map(cell_text, cells), strict=True)}) > len({*dialogues})
    }
    readable = {name: found for name, found in known.items() if found}
    # Times without a date can't decide between days.
    dated = {name: found for name, found in readable.items() if found[0].dated}
    readable = dated or readable
    orders: dict[bytes, tuple[str, Positions]] = {}
    for name, found in readable.items():
        for reading in found:
            if (order := _order_by(reading, kept, dialogues)) is not None:
                orders.setdefault(order.tobytes(), (name, order))
    fitting = [
        (name, order)
        for name, order in orders.values()
        if all(any(_rises(r, order, dialogues) for r in found) for found in readable.values())
    ]
    if known and len(fitting) != 1:
        names = ", ".join(known)
        problem = f"the order of the messages is not clear from {names:.200}"
        raise CorpusError(f"{problem}: {_reason(readable, orders)}", hint=_DECIDE)
    name, order = fitting[0] if fitting else ("", kept)
    complete = any(_is_complete(r, dialogues) for found in readable.values() for r in found)
    if not complete and not np.array_equal(kept, places):
        row = messages.index[int(np.argmax(np.diff(dialogues) < 0)) + 1]
        problem = "the messages of this dialogue are not together"
        raise CorpusError(problem, row=row, hint=f"{_SHARED_ID} Or sort the file. {_DECIDE}")
    if not known:
        _refuse_reversed(columns, kept, dialogues, everywhere=as_written)
    if as_written:
        _refuse_second_start(read_times(columns["time"]), dialogues, messages.index)
    _check_replies(columns, order, dialogues, messages.index)
    moved = int((order != places).sum())
    return order, f"by {name}, {moved:,} messages moved" if moved else "as in the file"


def _refuse_restart(
    name: str, readings: list[Reading], kept: Positions, dialogues: Positions, rows: pd.Index
) -> None:
    """Refuses numbers that count the messages and start again within a dialogue."""
    for reading in readings:
        if not reading.number:
            continue
        values, numbers = reading.values[kept], dialogues[kept]
        within = np.diff(numbers) == 0
        steps = np.diff(values)[within]
        seen = pd.DataFrame({"dialogue": numbers, "value": values}).duplicated().to_numpy()
        again = (np.isin(values, (0, 1)) & seen)[1:][within] & (steps < 0)
        if again.any() and np.all((steps == 1) | again):
            row = rows[kept[1:][within][np.argmax(again)]]
            problem = f"{name} starts again within a dialogue"
            raise CorpusError(problem, row=row, hint=f"{_SHARED_ID} {_DECIDE}")


def _refuse_second_start(readings: list[Reading], dialogues: Positions, rows: pd.Index) -> None:
    """Refuses an export with a time that falls to the first time of its dialogue, or before it."""
    found = []
    for reading in readings:
        values = pd.Series(reading.values).groupby(dialogues)
        found.append((values.diff() < 0) & (reading.values <= values.transform("first")))
    if found and (again := np.all(found, axis=0)).any():
        problem = "the times start again within a dialogue"
        raise CorpusError(problem, row=rows[int(np.argmax(again))], hint=_SECOND)


def _named(columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
    """Selects the columns with a usual name; joins a date and a time of day in two columns."""
    found = {name: cells for name, cells in columns.items() if key(name) in _ORDER_NAMES}
    names = {key(name): name for name in found}
    if {"date", "time"} <= names.keys():
        date, time = (map(cell_text, found.pop(names[part])) for part in ("date", "time"))
        found["date and time"] = [" ".join(cell) for cell in zip(date, time, strict=True)]
    return found


def _rises(reading: Reading, order: Positions, dialogues: Positions) -> bool:
    """Whether the values never fall within a dialogue."""
    values, numbers = reading.values[order], dialogues[order]
    known = ~np.isnan(values)
    return bool(np.all((np.diff(values[known]) >= 0) | (np.diff(numbers[known]) != 0)))


def _is_complete(reading: Reading, dialogues: Positions) -> bool:
    """Whether the values alone order the messages: none is missing or occurs twice."""
    pairs = {*zip(dialogues.tolist(), reading.values.tolist(), strict=True)}
    return reading.dated and not np.isnan(reading.values).any() and len(pairs) == len(dialogues)


def _order_by(reading: Reading, kept: Positions, dialogues: Positions) -> Positions | None:
    """Gives the file's order if the values agree with it, or else theirs, if they are complete."""
    if _rises(reading, kept, dialogues):
        return kept
    order: Positions = np.lexsort((reading.values, dialogues))
    return order if _is_complete(reading, dialogues) else None


def _reason(readable: Mapping[str, list[Reading]], orders: Mapping[bytes, Any]) -> str:
    if not readable:
        return "its values are not numbers or times"
    if not all(reading.dated for found in readable.values() for reading in found):
        return "times of a day do not order several days"
    if not orders:
        return "messages have the same value or none, and the file is not sorted by it"
    return "its dates can be read in two ways" if len(readable) == 1 else "they disagree"


def _sorted_by(
    option: str, columns: Mapping[str, list[Any]], dialogues: Positions, rows: pd.Index
) -> Positions:
    names = [n for n in columns if n == option] or [n for n in columns if key(n) == key(option)]
    if len(names) != 1:
        problem = f"{len(names)} columns could be the order; found {', '.join(columns):.200}"
        raise CorpusError(problem, hint=_DECIDE)
    found = [r for r in read_times(columns[names[0]]) if not np.isnan(r.values).any()]
    orders: list[Positions] = [np.lexsort((r.values, dialogues)) for r in found]
    if not orders or any(not np.array_equal(order, orders[0]) for order in orders):
        problem = "can be read in two ways" if orders else "has values that are no numbers or times"
        hint = "Write times as 2024-05-31 18:05, and fill in empty cells."
        raise CorpusError(f"the column {names[0]} {problem}", hint=hint)
    _refuse_shared_id(names[0], found[0], orders[0], dialogues, rows)
    return orders[0]


def _refuse_shared_id(
    name: str, reading: Reading, order: Positions, dialogues: Positions, rows: pd.Index
) -> None:
    """Refuses messages with the same place in a dialogue if they are not together in the file.

    Two dialogues with one id would be mixed.
    """
    values, numbers = reading.values[order], dialogues[order]
    same = (np.diff(values) == 0) & (np.diff(numbers) == 0) & (np.abs(np.diff(order)) > 1)
    if same.any():
        row = rows[max(order[np.argmax(same)], order[np.argmax(same) + 1])]
        problem = f"a second message of this dialogue has the same {name}"
        raise CorpusError(problem, row=row, hint=_SHARED_ID)


def _check_replies(
    columns: Mapping[str, list[Any]], order: Positions, dialogues: Positions, rows: pd.Index
) -> None:
    """Refuses two replies to one message, and a reply before its message."""
    parent = next((name for name in columns if key(name) in _PARENT_NAMES), None)
    if parent is None:
        return
    own = next((name for wanted in _ID_NAMES for name in columns if key(name) == wanted), parent)
    numbers = dialogues.tolist()
    ids = [*zip(numbers, map(cell_text, columns[own]), strict=True)]
    parents = [*zip(numbers, map(cell_text, columns[parent]), strict=True)]
    places = dict(zip((ids[at] for at in order), range(len(ids)), strict=True))
    replied = set()
    for place, at in enumerate(order):
        message = parents[at]
        if not message[1]:
            continue
        if message in replied:
            problem = f"two messages reply to {brief(message[1])}, according to {parent}"
            hint = "Keep one branch in the file, or keep all messages: --order file."
            raise CorpusError(problem, row=rows[at], hint=hint)
        if own != parent and places.get(message, -1) >= place:
            problem = f"a message replies to a later one, according to {parent}"
            raise CorpusError(problem, row=rows[at], hint=_DECIDE)
        replied.add(message)


def _refuse_reversed(
    columns: Mapping[str, list[Any]],
    kept: Positions,
    dialogues: Positions,
    *,
    everywhere: bool,
) -> None:
    """Refuses a file if a column with an unknown name says that it is not in order.

    That is a column of times that fall, or of numbers that fall everywhere or are the numbers of
    the messages.
    """
    pairs = np.diff(dialogues[kept]) == 0
    for name, cells in columns.items():
        found = read_times(cells)
        falls = np.array([np.diff(reading.values[kept])[pairs] < 0 for reading in found])
        if not falls.size or not falls.any(axis=1).all():
            continue
        sorted_values = found[0].values[np.lexsort((found[0].values, dialogues))]
        counted = (np.diff(sorted_values)[pairs] == 1).all()
        chance = falls.shape[1] < 2 or not (falls.all() or (counted and not everywhere))
        if not (chance and (everywhere or found[0].number)):
            problem = f"the file seems to be in another order: {name} falls within a dialogue"
            raise CorpusError(problem, hint=_DECIDE)
