"""Files whose rows repeat the turns before them, and rows with several turns."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.corpus import convert
from cradle_lib.errors import CorpusError
from cradle_lib.labels import format_mask

# Two dialogues: speaker, text and label of each turn.
Turn = tuple[str, str, str]
DIALOGUES: list[list[Turn]] = [
    [
        ("User", "I can't sleep.", "none"),
        ("Listener", "Since when?", "none"),
        ("User", "Since my uncle moved in.", "alert_ongoing"),
        ("Listener", "Tell me.", "none"),
        ("User", "He hits us.", "confirm_CA_ongoing"),
    ],
    [("User", "Hello", "none"), ("Listener", "Hi", "none"), ("User", "The bus?", "none")],
]
# One row for each user turn, with the turns until then.
ROWS = [turns[:n] for turns in DIALOGUES for n in range(1, len(turns) + 1, 2)]
NAMES = {"User": "Human", "Listener": "AI"}


def lists(rows: list[list[Turn]], **about: Any) -> str:
    items = [
        {
            "messages": [{"role": NAMES[who], "content": text} for who, text, _ in turns],
            "label": turns[-1][2],
        }
        | about
        for turns in rows
    ]
    return "\n".join(map(json.dumps, items))


def texts(rows: list[list[Turn]], head: str, first: list[str], *, named: bool = True) -> str:
    """A table with the conversation so far in one cell, with or without names."""
    out = io.StringIO(newline="")
    writer = csv.writer(out)
    writer.writerow([*head.split(","), "text", "label"])
    for cells, turns in zip(first, rows, strict=True):
        said = [f"{NAMES[who]}: {text}" if named else text for who, text, _ in turns]
        writer.writerow([*cells.split(","), "\n".join(said), turns[-1][2]])
    return out.getvalue()


def read(content: str, folder: Path, **options: Any) -> list[list[Turn]]:
    path = folder / ("x.jsonl" if content.startswith("{") else "x.csv")
    path.write_text(content, newline="")
    corpus = convert(path, **options).corpus
    return [[(t.speaker, t.text, format_mask(t.mask)) for t in d.turns] for d in corpus]


IDS = ["c0", "c0", "c0", "c1", "c1"]
FORMS = {
    "lists": lists(ROWS),
    "lists, longest first": lists(ROWS[::-1]),
    "lists of one conversation id": lists(ROWS[:3], conversation_id="c"),
    "texts": texts(ROWS, "conversation_id", IDS),
    "texts with an id for each row": texts(ROWS, "conversation_id", [*"abcde"]),
    "texts without an id": texts(ROWS, "number", [*"12345"]),
    "texts with a speaker": texts(ROWS, "session,role", [f"{name},Human" for name in IDS]),
}


@pytest.mark.parametrize("name", FORMS)
def test_repeated_turns_are_refused_or_read_once(name: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError, match=r"--cumulative .*--no-cumulative"):
        read(FORMS[name], tmp_path, labels="none")
    found = read(FORMS[name], tmp_path, cumulative=True)
    expected = DIALOGUES[:1] if "one" in name else DIALOGUES
    assert found == (expected[::-1] if "first" in name else expected)


def test_rows_without_names_keep_only_new_text(tmp_path: Path) -> None:
    said = [[turn for turn in turns if turn[0] == "User"] for turns in DIALOGUES]
    rows = [turns[:n] for turns in said for n in range(1, len(turns) + 1)]
    content = texts(rows, "session,role", [f"{name},Human" for name in IDS], named=False)
    with pytest.raises(CorpusError, match="3 of 3 rows repeat the text"):
        read(content, tmp_path)
    assert read(content, tmp_path, cumulative=True, consecutive="turns") == said
    unsorted = texts(rows[::-1], "session,role", [f"{n},Human" for n in IDS[::-1]], named=False)
    for options in ({}, {"cumulative": True}):
        with pytest.raises(CorpusError, match="the row before"):
            read(unsorted, tmp_path, **options)


def test_a_conversation_in_each_cell_is_split(tmp_path: Path) -> None:
    content = texts(DIALOGUES, "conversation_id", ["a", "b"])
    with pytest.raises(
        CorpusError, match="2 of 2 texts have lines of several speakers, here ai, human"
    ):
        read(content, tmp_path)
    assert [len(turns) for turns in read(content, tmp_path, cumulative=True)] == [5, 3]


# With a column for the speaker, a few texts may be quotations.
CELLS = {
    "usual names": ("id,text", "Human: ", "AI: ", {}),
    "one name given": ("id,text", "Anna: ", "Ben: ", {"user": ["Anna"]}),
    "both given": ("id,text", "Anna: ", "Ben: ", {"user": ["Anna"], "listener": ["Ben"]}),
    "a speaker": ("id,speaker,text", "Anna: ", "Ben: ", {"user": ["Anna"]}),
}


@pytest.mark.parametrize("name", CELLS)
@pytest.mark.parametrize("first", [0, 1])
def test_names_of_any_kind_begin_turns_in_a_cell(name: str, first: int, tmp_path: Path) -> None:
    head, one, two, options = CELLS[name]
    said = [f"{one}The bus was late.", f"{two}That is annoying.", f"{one}I am tired."]
    who = ",Anna" if "speaker" in head else ""
    content = head + "".join(
        f'\n{n}{who},"{chr(10).join(said[first:][: n + 2])}"' for n in range(2)
    )
    with pytest.raises(CorpusError, match=r"row 0: 2 of 2 texts .* --cumulative"):
        read(content, tmp_path, **options)
    found = read(content, tmp_path, **options, cumulative=True)
    speakers = ["User", "Listener", "User"][first:]
    assert [who for who, _, _ in found[-1]] == speakers
    assert "Ben:" not in str(found)


def test_one_cell_with_two_turns_is_refused_unless_a_column_names_the_speaker(
    tmp_path: Path,
) -> None:
    rows = ["a,Human: Hello", "a,AI: Hi", *(f"a,Human: {n}\na,AI: {n}" for n in range(4))]
    several = 'a,"Human: a\nAI: b"'
    with pytest.raises(CorpusError, match=r"row 10: 1 of 11 texts .*, here ai, human\."):
        read("\n".join(["id,text", *rows, several]), tmp_path)
    note = "\n".join(["id,text", *rows, several.replace("AI", "Note")])
    assert read(note, tmp_path)[0][-1][1] == "a\nNote: b"
    with pytest.raises(CorpusError, match="here human, note"):
        read("\n".join([note, several.replace("AI", "Note")]), tmp_path)
    with pytest.raises(CorpusError, match="here ben, human"):
        read("\n".join(["id,text", *rows, 'a,"Human: a\nBen: b\nHuman: c"']), tmp_path)
    fine = "\n".join(["id,text", *rows, "a,Human: ok: fine"])
    assert read(fine, tmp_path)[0][-1][1] == "ok: fine"
    columns = "\n".join(["id,speaker,text", *rows]).replace(": ", ",") + "\na,Human" + several[1:]
    assert read(columns, tmp_path)[0][-1][1] == "Human: a\nAI: b"


COLD, OH, BYE = ("Client", "My flat is cold."), ("Counsellor", "Oh."), ("Client", "Bye")
# The number of each message, if any, and the row that is refused.
COPIES = {
    "one message": ("turn", [(1, *COLD), (1, *COLD), (2, *OH)], 1),
    "one message, by its id": ("message_id", [("x", *COLD), ("y", *OH), ("x", *COLD)], 2),
    "the dialogue": ("note", [(n, *one) for n, one in enumerate((COLD, OH, BYE) * 2)], 0),
    "the dialogue, twice": ("turn", [("", *one) for one in (COLD, OH, BYE) * 3], 0),
    "each message": ("note", [("", *one) for one in (COLD, COLD, OH, OH, BYE, BYE)], 0),
}


@pytest.mark.parametrize("name", COPIES)
def test_copies_are_refused(name: str, tmp_path: Path) -> None:
    head, rows, wrong = COPIES[name]
    content = f"{head},session,speaker,text\n" + "".join(f"{n},s,{w},{t}\n" for n, w, t in rows)
    with pytest.raises(CorpusError, match=rf"row {wrong}: the dialogue has .*--no-cumulative"):
        read(content, tmp_path, order="file")
    found = read(content, tmp_path, order="file", cumulative=False, consecutive="turns")
    assert [text for _, text, _ in found[0]] == [text for *_, text in rows]


@pytest.mark.parametrize(
    "said",
    [
        [("Client", "hello"), ("Client", "hello")],
        [("Client", "hi"), ("Counsellor", "hi")] * 2,
        [COLD, COLD, OH],
        [COLD, OH, COLD],
        [COLD, OH, COLD, OH],
    ],
)
@pytest.mark.parametrize("numbered", [True, False])
def test_people_repeat_themselves(
    said: list[tuple[str, str]], numbered: bool, tmp_path: Path
) -> None:
    rows = "".join(f"{n if numbered else ''},s,{w},{t}\n" for n, (w, t) in enumerate(said))
    (tmp_path / "x.csv").write_text(f"turn,session,speaker,text\n{rows}")
    found = convert(tmp_path / "x.csv", order="file")
    assert sum(t.text.count("\n") + 1 for t in found.corpus.turns) == len(said)
    told = "of these, with the text of the one before: 1" in found.understood["left out or joined"]
    assert told == (said[0] == said[1])


def test_a_common_greeting_is_no_repetition(tmp_path: Path) -> None:
    hello = ("User", "Hello", "none")
    rows = [[hello], *([hello, ("Listener", f"Hi {n}", "none")] for n in range(4))]
    content = lists(rows)
    assert read(content, tmp_path, labels="none") == rows
    assert read(content, tmp_path, cumulative=True) == rows[1:]
    assert len(read(lists(ROWS), tmp_path, cumulative=False, labels="none")) == len(ROWS)


def test_a_speaker_within_a_row_who_is_not_named_is_refused(tmp_path: Path) -> None:
    content = 'id,text\na,Human: a\na,"Human: a\nMia: I want to go.\nAI: b\nHuman: c"\n'
    speakers = {"user": ["Human"], "listener": ["AI"], "cumulative": True}
    with pytest.raises(CorpusError, match=r"row 1: lines start like .*: Mia \(1\)"):
        read(content, tmp_path, **speakers)
    found = read(content, tmp_path, **speakers, leave_out=["Mia"])
    assert [text for turns in found for _, text, _ in turns] == ["a", "b", "c"]
