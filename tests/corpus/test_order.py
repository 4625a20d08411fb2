"""The order of messages: kept, restored by a column, or refused with the option that decides.

In each case the texts of the messages are their numbers in the right order.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.corpus import convert
from cradle_lib.errors import CorpusError

HEAD = "dialogue_id,speaker,text,"


def table(column: str, *cells: tuple[int, str]) -> str:
    """A table of one dialogue: the number of each message, and its cell in the column."""
    rows = "".join(f"d,{'bot' if n % 2 == 0 else 'user'},{n},{cell}\n" for n, cell in cells)
    return f"{HEAD}{column}\n{rows}"


def texts(content: str, folder: Path, **options: Any) -> list[str]:
    path = folder / ("x.jsonl" if content.startswith("{") else "x.csv")
    path.write_text(content)
    options = {"user": ["user"], "consecutive": "turns"} | options
    return [turn.text for turn in convert(path, **options).corpus.turns]


ORDERED = {
    "iso": table("created_at", (3, "2024-01-01T10:03"), (2, "2024-01-01T10:02"), (1, "2023-12-31")),
    "zones": table("timestamp", (2, "2024-01-01T10:30+02:00"), (1, "2024-01-01T08:29Z")),
    "seconds": table("ts", (3, "1704105003"), (1, "1704105001"), (2, "1704105002.5")),
    "milliseconds too": table("timestamp_ms", (2, "1704105002000"), (1, "1704105001")),
    "index": table("message_index", (3, "2"), (2, "1"), (1, "0")),
    "pages": table("time", (3, "10.5.24"), (4, "11.5.24"), (1, "28.4.24"), (2, "29.4.24")),
    "words": table("date", (2, "13 March 2024 10:00"), (1, "2 March 2024 11:00")),
    "day first": table("date", (2, "03.04.2024 10:00"), (1, "25.03.2024 10:00")),
    "month first": table("date", (2, "4/3/24 1:00 PM"), (1, "3/25/24 2:00 AM")),
    "two columns": table("date,time", (2, "2024-03-02,00:05"), (1, "2024-03-01,23:50")),
    "a day and a number": table("date,turn", (2, "2024-03-01,2"), (1, "2024-03-01,1")),
    "equal times": table("time", (1, "10:23"), (2, "10:23"), (3, "10:24")),
    "equal days": table("date", (1, "May"), (2, "May")),
    "a missing time": table("time", (1, "2024-01-01"), (2, ""), (3, "2024-01-02")),
    "unknown name": table("wave", (1, "3"), (2, "7"), (3, "1")),
    "replies": table("id,parent_id", (1, "a,"), (2, "b,a"), (3, "c,b")),
    "replies and times": table("id,reply_to,ts", (2, "b,a,2"), (1, "a,,1"), (3, "c,,3")),
    "interleaved": f"{HEAD}turn\n1,user,1,0\n2,user,3,0\n1,bot,2,1\n2,bot,4,1\n",
}  # fmt: skip


@pytest.mark.parametrize("name", ORDERED)
def test_messages_are_ordered_by_a_column_or_as_in_the_file(name: str, tmp_path: Path) -> None:
    found = texts(ORDERED[name], tmp_path)
    assert found == sorted(found)


def test_fields_of_messages_order_them(tmp_path: Path) -> None:
    said = [{"role": "user", "content": str(n), "create_time": n} for n in (3, 2, 1)]
    content = json.dumps({"create_time": 5, "messages": said})
    assert texts(content, tmp_path) == ["1", "2", "3"]


FALLING = ((3, "3"), (2, "2"), (1, "1"))
# The content, a part of the message, and options that decide.
UNCLEAR: dict[str, tuple[str, str, dict[str, Any]]] = {
    "pages with equal times": (
        table("time", (3, "2024-01-02"), (1, "2024-01-01"), (2, "2024-01-01")),
        "not clear from time: messages have the same value",
        {"order": "time"},
    ),
    "a missing time": (
        table("time", (3, "2024-01-02"), (2, ""), (1, "2024-01-01")),
        "not clear from time",
        {"order": "reversed"},
    ),
    "midnight": (
        table("time", (1, "23:50"), (2, "0:10")),
        "times of a day do not order several days",
        {"order": "file"},
    ),
    "day or month": (
        table("date", (1, "05/03/2024"), (2, "04/05/2024")),
        "its dates can be read in two ways",
        {"order": "file"},
    ),
    "zones and none": (
        table("time", (2, "2024-01-01T10:03Z"), (1, "2024-01-01T10:04")),
        "not numbers or times",
        {"order": "reversed"},
    ),
    "two orders": (
        table("turn,created_at", (1, "0,2024-01-02"), (2, "1,2024-01-01")),
        "not clear from turn, created_at: they disagree",
        {"order": "turn"},
    ),
    "numbers with another name": (table("nr", *FALLING), "nr falls within", {"order": "nr"}),
    "pages with another name": (
        table("Nr.", (3, "3"), (4, "4"), (1, "1"), (2, "2")),
        "Nr. falls within",
        {"order": "Nr."},
    ),
    "times with another name": (
        table("Uhrzeit", (2, "2024-01-01 10:05"), (1, "2024-01-01 10:01")),
        "Uhrzeit falls within",
        {"order": "uhrzeit"},
    ),
    "two dialogues with an id": (
        table("turn", (1, "1"), (2, "2"), (3, "1"), (4, "2"), (5, "3")),
        "row 2: turn starts again within a dialogue. If two dialogues have the same id",
        {"order": "file"},
    ),
    "two dialogues with an id and another name": (
        table("nr", (1, "0"), (2, "1"), (3, "2"), (4, "0")),
        "row 3: nr starts again",
        {"order": "file"},
    ),
    "two replies": (
        table("id,parent_id", (1, "a,"), (2, "b,a"), (3, "c,a")),
        "row 2: two messages reply to 'a'.*--order file",
        {"order": "file"},
    ),
    "a reply before its message": (
        table("message_id,parent_id", (3, "x,y"), (2, "y,z"), (1, "z,")),
        "row 0: a message replies to a later one",
        {"order": "reversed"},
    ),
    "replies within a message": (
        '{"messages": [{"role": "user", "content": "1", "replies": [{"from": "a", "text": "b"}]}]}',
        "replies has further messages",
        {},
    ),
}


@pytest.mark.parametrize("name", UNCLEAR)
def test_an_unclear_order_is_refused_with_the_option_that_decides(
    name: str, tmp_path: Path
) -> None:
    content, message, decided = UNCLEAR[name]
    with pytest.raises(CorpusError, match=message) as caught:
        texts(content, tmp_path)
    if decided:
        assert "--order" in str(caught.value)
        found = texts(content, tmp_path, **decided)
        assert found == sorted(found)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("when", "0 columns could be the order; found a, date, n"),
        ("a", "the column a has values that are no numbers or times"),
        ("date", "the column date can be read in two ways"),
        ("n", "row 2: a second message of this dialogue has the same n. If two dialogues have"),
    ],
)
def test_an_option_that_does_not_decide_is_refused(
    option: str, message: str, tmp_path: Path
) -> None:
    content = table("a,date,n", (1, "x,05/03/2024,1"), (2, "y,04/05/2024,2"), (3, "z,01/05/2024,1"))
    with pytest.raises(CorpusError, match=message):
        texts(content, tmp_path, order=option)


def test_it_says_how_the_messages_were_ordered(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_text(table("turn,note", (3, "3,a"), (2, "2,b"), (1, "1,c")))
    found = convert(path).understood
    assert (found["order"], found["other columns"]) == ("by turn, 2 messages moved", "turn, note")
