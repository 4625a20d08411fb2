"""Dialogues in usual forms: converted as meant, or refused with the option that decides."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus, convert, load_corpus
from cradle_lib.errors import CorpusError, CradleError
from cradle_lib.labels import format_mask

# Two dialogues with the same content in every form.
TURNS = [
    [("User", "Hello, é."), ("Listener", "Hi; what, then?"), ("User", "I am tired")],
    [("User", "Again"), ("Listener", "Yes")],
]
PLAIN = [[*dialogue] for dialogue in TURNS]


def said(corpus: Corpus) -> list[list[tuple[str, str]]]:
    return [[(turn.speaker, turn.text) for turn in dialogue.turns] for dialogue in corpus]


def chats(
    user: str = "user",
    listener: str = "assistant",
    who: str = "role",
    what: str = "content",
    name: str = "messages",
) -> list[dict[str, Any]]:
    names = {"User": user, "Listener": listener}
    return [{name: [{who: names[s], what: t} for s, t in dialogue]} for dialogue in TURNS]


def lines(items: list[Any]) -> str:
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def table(
    separator: str = ",",
    head: tuple[str, ...] = ("dialogue_id", "speaker", "text"),
    user: str = "Patient",
    listener: str = "Therapist",
    first: int | None = None,
) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    writer.writerow(head)
    for number, dialogue in enumerate(TURNS):
        for turn, (speaker, words) in enumerate(dialogue):
            place = f"c{number}" if first is None else turn + first
            writer.writerow((place, user if speaker == "User" else listener, words))
    return text.getvalue()


def transcript(user: str = "Patient", listener: str = "Therapist") -> str:
    names = {"User": user, "Listener": listener}
    return "\n".join(
        "".join(f"{names[speaker]}: {text}\n" for speaker, text in dialogue) for dialogue in TURNS
    )


SYSTEM = {"role": "system", "content": "Be kind."}
FLAT = [
    {"chat_id": d, "author": s.upper(), "body": t}
    for d, turns in enumerate(TURNS)
    for s, t in turns
]
RELEASE = [(n, f"{s}: {t}") for turns in TURNS for n, (s, t) in enumerate(turns)]

# name of the file: content, options.
CONVERTED: dict[str, tuple[str | bytes, dict[str, Any]]] = {
    "chat.jsonl": (lines(chats()), {}),
    "chat.json": (json.dumps(chats(), indent=1), {}),
    "chat-without-an-ending": (lines(chats()), {}),
    "sharegpt.json": (json.dumps(chats("human", "gpt", "from", "value", "conversations")), {}),
    "esconv.json": (json.dumps(chats("seeker", "supporter", "speaker", "content", "dialog")), {}),
    "lists.jsonl": (lines([item["messages"] for item in chats()]), {}),
    "around.json": (json.dumps({"version": 1, "data": chats()}), {}),
    "system.jsonl": (
        lines([{"messages": [SYSTEM, *item["messages"]]} for item in chats()]),
        {"leave_out": ["system"]},
    ),
    "tool-calls.jsonl": (
        lines(
            [
                {
                    "messages": [
                        *item["messages"],
                        {"role": "assistant", "content": None, "tool_calls": [{"id": "1"}]},
                        {"role": "tool", "content": "7"},
                    ]
                }
                for item in chats()
            ]
        ),
        {"leave_out": ["tool"]},
    ),
    "parts.jsonl": (
        lines(chats()).replace(
            '"content": "Again"',
            '"content": [{"type": "text", "text": "Again"}, {"type": "image_url", "url": ""}]',
        ),
        {},
    ),
    "empty-message.jsonl": (
        lines([{"messages": [*i["messages"], {"role": "user", "content": " "}]} for i in chats()]),
        {},
    ),
    "empty-chat.jsonl": (lines([*chats(), {"messages": []}]), {}),
    "names.jsonl": (lines(chats("Anna", "Ben")), {"user": ["Anna"]}),
    "swapped.jsonl": (
        lines(chats("assistant", "user")),
        {"user": ["assistant"], "listener": ["user"]},
    ),
    "records.json": (json.dumps(FLAT), {}),
    "comma.csv": (table(), {}),
    "semicolon.csv": (table(";"), {}),
    "tab.csv": (table("\t"), {}),
    "tab.txt": (table("\t"), {}),
    "bar.csv": (table("|"), {}),
    "utf16.csv": (table("\t").encode("utf-16"), {}),
    "windows.csv": (table(";").encode("cp1252"), {}),
    "no-mark.csv": (table().encode("utf-16-le"), {"encoding": "utf-16-le"}),
    "capitals.csv": (table(head=("DIALOGUE ID", "SPEAKER", "TEXT")), {}),
    "crlf.csv": (table().replace("\n", "\r\n"), {}),
    "roles.csv": (
        table(head=("conversation_id", "role", "content"), user="user", listener="bot"),
        {},
    ),
    "colons.csv": (table(user="Patient:", listener="Therapist:"), {}),
    "numbers.csv": (table(user="0", listener="1"), {"user": ["0"], "listener": ["1"]}),
    "own-names.csv": (
        table(head=("Gespräch", "Wer", "Was")),
        {"dialogue": "Gespräch", "speaker": "wer", "text": "Was"},
    ),
    "from-1.csv": (table(head=("Turn ID", "Speaker", "Text"), first=1), {}),
    "release-from-1.csv": (
        "turn_id,text,labels\n" + "".join(f'{n + 1},"{text}",none\n' for n, text in RELEASE),
        {},
    ),
    "release-unlabelled.csv": (
        "turn_id;text\n" + "".join(f'{n};"{text}"\n' for n, text in RELEASE),
        {},
    ),
    "transcript.txt": (transcript(), {}),
    "transcript-wide.txt": (transcript().replace(": ", "\uff1a"), {}),
    "transcript-names.txt": (transcript("Anna M.", "Dr. B"), {"user": ["Anna M."]}),
}


def write(folder: Path, name: str, content: str | bytes) -> Path:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


@pytest.mark.parametrize("name", CONVERTED)
def test_a_usual_form_is_converted(name: str, tmp_path: Path) -> None:
    content, options = CONVERTED[name]
    out = tmp_path / "out.csv"
    found = convert(write(tmp_path, name, content), out, **options)
    assert said(found.corpus) == PLAIN
    written = load_corpus(out)
    assert said(written) == PLAIN
    assert written.fingerprint == found.corpus.fingerprint
    assert not written.gold.any()
    assert found.understood["turns of the User"].startswith("3 by ")
    assert found.understood["labels"] == (
        "0 (in column labels)" if name == "release-from-1.csv" else "0 (no column of labels)"
    )


@pytest.mark.parametrize("nested", [True, False])
def test_parquet_files_are_converted(nested: bool, tmp_path: Path) -> None:
    path = tmp_path / "chat.parquet"
    pd.DataFrame(chats() if nested else FLAT).to_parquet(path)
    assert said(convert(path).corpus) == PLAIN


# name of the file: content, part of the message, options that decide.
HEAD = "dialogue_id,speaker,text\n"
REFUSED: dict[str, tuple[str | bytes, str, dict[str, Any] | None]] = {
    "three.csv": (
        HEAD + "1,Anna,a\n1,Ben,b\n1,Cleo,c\n",
        r"found Anna \(1\), Ben \(1\), Cleo \(1\).*--leave-out NAME",
        {"user": ["Anna"], "listener": ["Ben"], "leave_out": ["Cleo"]},
    ),
    "once.jsonl": (
        lines([*chats(), {"messages": [{"role": "usr", "content": "a"}]}]),
        r"row 2: can't tell.*user \(3\), assistant \(2\), usr \(1\).*--user NAME",
        {"user": ["user", "usr"], "listener": ["assistant"]},
    ),
    "system.jsonl": (
        lines([{"messages": [SYSTEM, *chats()[0]["messages"]]}]),
        "row 0.*Say who is who: --leave-out system",
        {"leave_out": ["system"]},
    ),
    "two-texts.csv": (
        "dialogue_id,speaker,text,message\n1,user,a,b\n",
        "text and message could both be the text. Choose one: --text",
        {"text": "message"},
    ),
    "no-text.csv": (
        "dialogue_id,speaker,said\n1,user,a\n",
        "no column is known as the text; found dialogue_id, speaker, said.*--text",
        {"text": "said"},
    ),
    "no-speaker.csv": (
        "dialogue_id,text,who\n1,hi,user\n",
        "'hi', which names no speaker.*--speaker",
        {"speaker": "who"},
    ),
    "no-dialogue.csv": (
        "speaker,text\nuser,a\n",
        "to which dialogue.*--dialogue file",
        {"dialogue": "file"},
    ),
    "absent.csv": (
        HEAD + "1,user,a\n",
        "no column 'wer'; found dialogue_id, speaker, text",
        {"speaker": "speaker"},
    ),
    "no-such-name.csv": (
        HEAD + "1,user,a\n",
        r"no message is by 'Ann'; found user \(1\)",
        {"user": ["user"]},
    ),
    "labels-elsewhere.csv": (
        "dialogue_id,speaker,text,annotator1\n1,user,a,alert_past\n",
        "annotator1 looks like labels.*--labels COLUMN",
        {"labels": "annotator1"},
    ),
    "labels-of-a-dialogue.jsonl": (
        lines([chats()[0] | {"labels": ["alert_past"]}]),
        "labels looks like labels.*--labels none",
        {"labels": "none"},
    ),
    "labels-unknown.csv": (
        "dialogue_id,speaker,text,label\n1,user,a,none\n1,user,b,joy\n",
        "row 1: unknown label 'joy'.*--labels none",
        {"labels": "none"},
    ),
    "labels-on-nothing.csv": (
        "dialogue_id,speaker,text,labels\n1,user,a,none\n1,user,,alert_past\n",
        "row 1: messages without text are left out; this one has labels.*--labels none",
        {"labels": "none"},
    ),
    "interleaved.csv": (
        HEAD + "1,user,a\n2,user,b\n1,bot,c\n",
        "dialogue_id '1' is also the id of an earlier dialogue",
        None,
    ),
    "missing-row.csv": (
        "turn,speaker,text\n1,user,a\n3,user,b\n",
        "row 1: turn 3 comes after turn 1",
        None,
    ),
    "comma-in-text.csv": (
        HEAD + "1,user,well, then\n",
        "row 0: line 2 has 4 fields, expected 3",
        None,
    ),
    "mixed.jsonl": (
        lines([chats()[0], chats("human", "gpt", "from", "value", "conversations")[1]]),
        "messages and conversations could both be the messages",
        None,
    ),
    "mixed-flat.jsonl": (
        lines([chats()[0], {"role": "user", "content": "a"}]),
        "row 1: messages is no list of objects here; found role, content",
        None,
    ),
    "half-a-character.jsonl": (
        '{"messages": [{"role": "user", "content": "a\\ud800"}]}\n',
        "row 0: the text has half a character",
        None,
    ),
    "russian.csv": (
        (HEAD + "1,user,Привет как дела сегодня\n").encode("cp1251"),
        "empty or no text in utf-8 or windows-1252.*--encoding",
        {"encoding": "cp1251"},
    ),
    "book.xlsx": (b"PK\x03\x04\x00\x00\x00", "Save a spreadsheet as CSV", None),
    "blank-lines.txt": (
        "User: a\nand\n\nbefore noon\nListener: b\n",
        r"blank-lines\.txt:4: a dialogue starts with 'before noon'.*--dialogue file",
        {"dialogue": "file"},
    ),
    "spread.txt": (
        "User: a\n\nListener: b\n\nUser: c\n",
        "each dialogue has one line.*--dialogue file",
        {"dialogue": "file"},
    ),
    "remark.txt": (
        "User: a\nPlease note: it is late\nListener: b\n",
        r"remark\.txt:2: can't tell.*Please note \(1\).*--listener",
        {"user": ["User"], "listener": ["Listener"]},
    ),
}
WRONG_OPTIONS: dict[str, dict[str, Any]] = {
    "absent.csv": {"speaker": "wer"},
    "no-such-name.csv": {"user": ["Ann"]},
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_ambiguous_or_damaged_is_refused_with_the_option_that_decides(
    name: str, tmp_path: Path
) -> None:
    content, message, decided = REFUSED[name]
    path, out = write(tmp_path, name, content), tmp_path / "out.csv"
    with pytest.raises(CorpusError, match=message) as caught:
        convert(path, out, **WRONG_OPTIONS.get(name, {}))
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert not out.exists()
    if decided is not None:
        assert len(convert(path, out, **decided).corpus)


def test_it_says_what_it_understood(tmp_path: Path) -> None:
    content = table(";") + 'c1;Patient;"more; and more"\nc1;Patient;\n'
    found = convert(write(tmp_path, "x.csv", content.encode("cp1252"))).understood
    assert dict(found) == {
        "form": "a table",
        "encoding": "windows-1252",
        "separator": "semicolon",
        "turns of the User": "4 by Patient",
        "turns of the Listener": "2 by Therapist",
        "dialogues": "2, named by their ids",
        "labels": "0 (no column of labels)",
        "left out or joined": "messages without text, left out: 1",
    }


def test_messages_in_a_row_are_one_utterance_or_several_turns(tmp_path: Path) -> None:
    rows = [("user", "a", "alert_past"), ("user", "b", "confirm_SH_past"), ("bot", "c", "none")]
    content = "id,session_id,role,text,labels\n" + "".join(
        f"{n},s,{who},{text},{labels}\n" for n, (who, text, labels) in enumerate(rows)
    )
    path = write(tmp_path, "x.csv", content)
    joined, kept = convert(path), convert(path, consecutive="turns")
    assert said(joined.corpus) == [[("User", "a\nb"), ("Listener", "c")]]
    assert format_mask(joined.corpus.gold[0]) == "alert_past; confirm_SH_past"
    assert joined.understood["left out or joined"] == (
        "consecutive messages of one speaker, joined to the one before: 1"
    )
    assert said(kept.corpus) == [[("User", "a"), ("User", "b"), ("Listener", "c")]]
    assert [format_mask(mask) for mask in kept.corpus.gold] == ["alert_past", "confirm_SH_past"]
    assert kept.understood["left out or joined"].endswith("kept as turns: 1")


def test_a_text_can_not_become_a_speaker(tmp_path: Path) -> None:
    chat = [{"messages": [{"role": "user", "content": "hm\nListener: yes"}]}]
    out = tmp_path / "out.csv"
    convert(write(tmp_path, "x.json", json.dumps(chat)), out)
    assert said(load_corpus(out)) == [[("User", "hm\nListener: yes")]]


def test_the_file_itself_is_never_overwritten(tmp_path: Path) -> None:
    path = write(tmp_path, "x.csv", table())
    with pytest.raises(CorpusError, match="is the file to convert"):
        convert(path, path)
    with pytest.raises(CradleError, match="unknown ending"):
        convert(path, tmp_path / "x.txt")
    with pytest.raises(CorpusError, match="expected joined or turns"):
        convert(path, consecutive="both")
    assert path.read_text() == table()


@pytest.mark.parametrize(
    ("name", "form"),
    [
        ("chat.jsonl", "chat messages"),
        ("semicolon.csv", "a table"),
        ("release-unlabelled.csv", "a table"),
        ("transcript.txt", "a transcript"),
        ("three.csv", "a table"),
    ],
)
def test_load_corpus_says_that_a_file_can_be_converted(
    name: str, form: str, tmp_path: Path
) -> None:
    path = write(tmp_path, name, (CONVERTED.get(name) or REFUSED[name])[0])
    expected = rf"This looks like {form}: run `cradle data convert {path} --out corpus\.csv`\.$"
    with pytest.raises(CorpusError, match=expected):
        load_corpus(path)


@pytest.mark.parametrize("content", ["turn_id,text,labels\n0,User: a,alert_pas\n", "a,b\n1,2\n"])
def test_load_corpus_keeps_the_message_about_its_own_format(content: str, tmp_path: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        load_corpus(write(tmp_path, "x.csv", content))
    assert "convert" not in str(caught.value)


# What no form can tell apart: texts that are empty, or begin or end with white space.
texts = st.text(
    st.characters(
        codec="utf-8", categories=("L", "N", "P", "S", "Zs"), exclude_characters="\ufeff"
    ),
    min_size=1,
    max_size=12,
).map(lambda text: f"-{text}-")
masks = st.one_of(st.just(0), st.integers(0, 0xFFFF))
dialogues = st.lists(
    st.lists(st.tuples(texts, masks), min_size=1, max_size=5), min_size=1, max_size=4
)
Content = list[list[tuple[str, int]]]


def as_chat(name: str, who: str, what: str, names: tuple[str, str]) -> Callable[[Content], bytes]:
    def write_it(content: Content) -> bytes:
        items = [
            {
                "conversation_id": f"c{number}",
                name: [
                    {who: names[turn % 2], what: text, "labels": format_mask(mask)}
                    for turn, (text, mask) in enumerate(turns)
                ],
            }
            for number, turns in enumerate(content)
        ]
        return lines(items).encode()

    return write_it


def as_table(separator: str, encoding: str) -> Callable[[Content], bytes]:
    def write_it(content: Content) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=separator)
        writer.writerow(("Conversation ID", "Turn", "Speaker", "Text", "Labels"))
        for number, turns in enumerate(content):
            for turn, (said_here, mask) in enumerate(turns):
                who = ("Client", "Counselor")[turn % 2]
                writer.writerow((f"c{number}", turn + 1, who, said_here, format_mask(mask)))
        return text.getvalue().encode(encoding)

    return write_it


def as_transcript(content: Content) -> bytes:
    return "\n\n".join(
        "\n".join(f"{('Patient', 'Therapist')[n % 2]}: {text}" for n, (text, _) in enumerate(turns))
        for turns in content
    ).encode()


FORMS = {
    "messages.jsonl": as_chat("messages", "role", "content", ("user", "assistant")),
    "conversations.jsonl": as_chat("conversations", "from", "value", ("human", "gpt")),
    "semicolon.csv": as_table(";", "utf-8-sig"),
    "tab.tsv": as_table("\t", "utf-16"),
    "transcript.txt": as_transcript,
}


@settings(max_examples=30)
@given(dialogues, st.sampled_from([".csv", ".parquet"]))
@pytest.mark.parametrize("form", FORMS)
def test_dialogues_written_in_a_form_are_read_back(
    form: str, tmp_path_factory: pytest.TempPathFactory, content: Content, ending: str
) -> None:
    folder = tmp_path_factory.mktemp("form")
    convert(write(folder, form, FORMS[form](content)), folder / f"out{ending}")
    found = load_corpus(folder / f"out{ending}")
    assert said(found) == [
        [(("User", "Listener")[n % 2], text) for n, (text, _) in enumerate(turns)]
        for turns in content
    ]
    if form != "transcript.txt":
        assert [d.id for d in found] == [f"c{number}" for number in range(len(content))]
        assert [[t.mask for t in d.turns] for d in found] == [
            [mask for _, mask in turns] for turns in content
        ]
