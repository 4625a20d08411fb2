"""Exports of messengers, folders, saved datasets, long texts and single texts."""

from __future__ import annotations

import csv
import json
import shutil
from pathlib import Path
from typing import Any

import datasets
import pandas as pd
import pytest

from cradle_lib.corpus import Corpus, convert, load_corpus
from cradle_lib.errors import CorpusError
from cradle_lib.labels import format_mask

Said = list[list[tuple[str, str]]]


def said(corpus: Corpus) -> Said:
    return [[(turn.speaker, turn.text) for turn in dialogue.turns] for dialogue in corpus]


# The start of each line in exports of messengers; Anna is the User.
STAMPS = {
    "Android": "12/03/24, 21:0{} - ",
    "Android, US": "3/12/24, 9:0{} PM - ",
    "Android, German": "12.03.24, 21:0{} - ",
    "Android, Swedish": "2024-03-12 21:0{} - ",
    "Android, Spanish": "12/3/24 9:0{} p. m. - ",
    "iOS": "[12.03.24, 21:0{}:05] ",
    "iOS, US": "[3/12/24, 9:0{}:05\u202fPM] ",
    "iOS, marked": "\u200e[12/03/2024, 21:0{}:05] ",
    "web": "[21:0{}, 12/03/2024] ",
    "hours": "[21:0{}] ",
}


@pytest.mark.parametrize("name", STAMPS)
@pytest.mark.parametrize("line_break", ["\n", "\r\n"])
def test_a_messengers_export_is_one_dialogue(name: str, line_break: str, tmp_path: Path) -> None:
    lines = [
        "Messages and calls are end-to-end encrypted.",
        "Anna: The bus was late: again.",
        "Ben B.: Oh no <This message was edited>",
        "Anna: Three things:",
        "~\u00a0Ben B.: \u200eimage omitted",
        "Anna: <Media omitted>",
        "Anna: You deleted this message",
        "Anna: IMG-20240312-WA0001.jpg (file attached)",
        "\u202aBen B.\u202c: https://example.org",
        "Anna left",
    ]
    text = [STAMPS[name].format(n) + line for n, line in enumerate(lines)]
    text[3:4] = [text[3], "- sleep", "", "10:30: work"]
    path = tmp_path / "chat.txt"
    path.write_bytes(line_break.join(text).encode())
    found = convert(path, user=["Anna"])
    assert said(found.corpus) == [
        [
            ("User", "The bus was late: again."),
            ("Listener", "Oh no"),
            ("User", "Three things:\n- sleep\n\n10:30: work"),
            ("Listener", "https://example.org"),
        ]
    ]
    assert found.understood["form"] == "a messenger's export"
    left = found.understood["left out or joined"]
    assert "lines without a sender, left out: 2" in left
    assert "messages without text, left out: 4" in left
    with pytest.raises(CorpusError, match=r"Anna or Ben B\. is User"):
        convert(path)
    # A message that arrived late stays in its place.
    path.write_text("\n".join([*text[:3], text[-2], *text[3:-2]]))
    assert len(convert(path, user=["Anna"]).corpus.turns) == 3
    path.write_text("\n".join([*text[2::-1], STAMPS[name].format(0) + "Anna: a"]))
    with pytest.raises(CorpusError, match=r"time falls within .*--order reversed"):
        convert(path, user=["Anna"])
    first = convert(path, user=["Anna"], order="reversed").corpus.turns[0]
    assert first.text == "a\nThe bus was late: again."


@pytest.mark.parametrize("name", STAMPS)
def test_a_time_within_a_message_does_not_end_it(name: str, tmp_path: Path) -> None:
    stamp = STAMPS[name]
    own = "[9:15] I was at home" if "- " in stamp or "," in stamp else "1/2/24, 9:15 I was at home"
    lines = [stamp.format(0) + "Anna: a", own, "and slept", stamp.format(1) + "Ben: <hug>"]
    lines += [stamp.format(1) + f"Ben: {text}" for text in ("<Medya dahil edilmedi>", "<省略>")]
    path = tmp_path / "chat.txt"
    path.write_text("\n".join(lines))
    assert said(convert(path, user=["Anna"]).corpus) == [
        [("User", f"a\n{own}\nand slept"), ("Listener", "<hug>")]
    ]
    lines[1] = stamp.format(0) + "I was at home"
    path.write_text("\n".join(lines))
    with pytest.raises(CorpusError, match="row 2: the line has no time, and the one above no send"):
        convert(path, user=["Anna"])


@pytest.mark.parametrize("first", ["[00:00:0{}] ", "[00:0{}] ", "[10:0{}] "])
def test_a_blank_line_before_a_time_without_a_date_ends_a_dialogue(
    first: str, tmp_path: Path
) -> None:
    lines = [first.format(n) + text for n, text in enumerate(("Anna: a", "Ben: b", "Anna: c"))]
    expected = [("User", "a"), ("Listener", "b"), ("User", "c")]
    path = tmp_path / "sessions.txt"
    path.write_text("\n".join(["", *lines, "", " ", *lines[1:]]))
    assert said(convert(path, user=["Anna"]).corpus) == [expected, expected[1:]]
    path.write_text("\n\n".join(lines))
    with pytest.raises(CorpusError, match="each dialogue has one line"):
        convert(path, user=["Anna"])
    assert said(convert(path, user=["Anna"], dialogue="file").corpus) == [expected]


@pytest.mark.parametrize("name", STAMPS)
def test_times_that_start_again_within_a_dialogue_are_refused(name: str, tmp_path: Path) -> None:
    one = [STAMPS[name].format(n) + text for n, text in enumerate(("Anna: a", "Ben: b", "Anna: c"))]
    path = tmp_path / "two.txt"
    path.write_text("\n".join([*one, *one]))
    with pytest.raises(CorpusError, match=r"row 3: the times start again .*convert the folder"):
        convert(path, user=["Anna"])
    assert len(convert(path, user=["Anna"], order="file").corpus.turns) == 5


@pytest.mark.parametrize(
    "placeholder",
    [
        *("<Media omitted>", "<Video note omitted>", "<attached: 0001.jpg>", "<Archivo omitido>"),
        *("<Medien ausgeschlossen>", "<Médias omis>", "<Multimedia omitido>"),
    ],
)
def test_a_placeholder_is_left_out(placeholder: str, tmp_path: Path) -> None:
    path = tmp_path / "chat.txt"
    path.write_text(f"12/3/24, 21:00 - Anna: a\n12/3/24, 21:01 - Anna: {placeholder}\n")
    assert said(convert(path, user=["Anna"]).corpus) == [[("User", "a")]]


def test_a_json_export_with_service_messages_and_marked_words(tmp_path: Path) -> None:
    bold = {"type": "bold", "text": "you"}
    chat = {
        "name": "Ben",
        "messages": [
            {"id": 1, "type": "service", "date": "2024-03-12T21:00:00", "actor": "A", "text": ""},
            {"id": 2, "date": "2024-03-12T21:01:00", "from": "Anna", "text": ["Hi ", bold, "!"]},
            {"id": 3, "date": "2024-03-12T21:02:00", "from": "Ben", "text": "Hello"},
        ],
    }
    (tmp_path / "result.json").write_text(json.dumps(chat))
    found = convert(tmp_path / "result.json", user=["Anna"])
    assert said(found.corpus) == [[("User", "Hi you!"), ("Listener", "Hello")]]
    assert found.understood["left out or joined"] == "messages without text, left out: 1"


def test_each_text_file_of_a_folder_is_a_dialogue(tmp_path: Path) -> None:
    folder = tmp_path / "interviews"
    folder.mkdir()
    (folder / "b 2.txt").write_text("Patient: Hi\n\nTherapist: Hello\nand so on\n")
    (folder / "a1.txt").write_text("Patient: Caf\u00e9\nTherapist: Yes\n", encoding="cp1252")
    (folder / ".hidden.txt").write_text("x")
    (folder / "notes.docx").write_bytes(b"PK\x03\x04")
    found = convert(folder, tmp_path / "out.csv")
    expected = [
        [("User", "Caf\u00e9"), ("Listener", "Yes")],
        [("User", "Hi"), ("Listener", "Hello\nand so on")],
    ]
    assert said(found.corpus) == said(load_corpus(tmp_path / "out.csv")) == expected
    assert [dialogue.id for dialogue in found.corpus] == ["a1", "b 2"]
    assert found.understood["encoding"] == "utf-8, windows-1252"
    assert "without the ending .txt, left out: 1" in found.understood["left out or joined"]
    assert len(convert(folder, single=True).corpus) == 2
    (folder / "c.txt").write_bytes(b"Patient: don\xe2\x80t")
    with pytest.raises(CorpusError, match=r"c\.txt: line 1, byte 13"):
        convert(folder)
    (folder / "c.txt").write_text("12/03/24, 21:00 - Anna: Hi")
    with pytest.raises(CorpusError, match=r"c\.txt: not a transcript of the same form"):
        convert(folder)
    shutil.rmtree(folder)
    folder.mkdir()
    with pytest.raises(CorpusError, match="interviews: the folder has no text file"):
        convert(folder)


CHATS = [
    {"messages": [{"role": "user", "content": f"a {n}"}, {"role": "assistant", "content": "b"}]}
    for n in range(9)
]


@pytest.mark.parametrize("shards", [1, 4])
def test_a_saved_dataset_is_read(shards: int, tmp_path: Path) -> None:
    saved = datasets.Dataset.from_list(CHATS)
    saved.save_to_disk(tmp_path / "one", num_shards=shards)
    expected = [[("User", f"a {n}"), ("Listener", "b")] for n in range(9)]
    assert said(convert(tmp_path / "one").corpus) == expected
    with pytest.raises(CorpusError, match="looks like chat messages: run `cradle data convert"):
        load_corpus(tmp_path / "one")
    last = sorted((tmp_path / "one").glob("*.arrow"))[-1]
    assert len(convert(last).corpus) == (9 if shards == 1 else 2)
    content = last.read_bytes()
    last.write_bytes(content[: len(content) // 2])
    with pytest.raises(CorpusError, match="not a complete Arrow file"):
        convert(tmp_path / "one")
    last.unlink()
    with pytest.raises(CorpusError, match="can't be read"):
        convert(tmp_path / "one")
    datasets.DatasetDict(train=saved, test=saved).save_to_disk(tmp_path / "two")
    with pytest.raises(CorpusError, match=r"has the splits test, train. Name one.*two/test"):
        convert(tmp_path / "two")
    (tmp_path / "two/test/state.json").write_text('{"_data_files": [{}]}')
    with pytest.raises(CorpusError, match=r"state\.json does not name the data files"):
        convert(tmp_path / "two/test")


def test_long_texts_are_written_and_read_again(tmp_path: Path) -> None:
    limit = csv.field_size_limit(131_072)
    try:
        long = [{"role": "user", "content": "word " * 27_000}] * 2
        (tmp_path / "x.json").write_text(json.dumps(long))
        written = convert(tmp_path / "x.json", tmp_path / "out.csv").corpus
        assert load_corpus(tmp_path / "out.csv").fingerprint == written.fingerprint
        (tmp_path / "x.tsv").write_text(f"session\tspeaker\ttext\nd\tuser\t{'w' * 140_000}\n")
        assert len(convert(tmp_path / "x.tsv").corpus.turns[0].text) == 140_000
    finally:
        csv.field_size_limit(limit)


POSTS = [("p1", "User: a quote", "alert_past"), ("p2", "Hello.\n\nAgain", "none")]
SINGLE: dict[str, tuple[str, dict[str, Any]]] = {
    "posts.jsonl": (
        "\n".join(json.dumps({"id": i, "title": "t", "text": t, "label": m}) for i, t, m in POSTS),
        {},
    ),
    "names.csv": (
        pd.DataFrame(POSTS, columns=["Nr", "Post", "Code"]).to_csv(index=False),
        {"text": "Post", "dialogue": "nr", "labels": "code"},
    ),
}


@pytest.mark.parametrize("name", SINGLE)
def test_each_row_is_a_dialogue_of_one_turn(name: str, tmp_path: Path) -> None:
    content, options = SINGLE[name]
    path = tmp_path / name
    path.write_text(content, newline="")
    corpus = convert(path, single=True, **options).corpus
    found = [(d.id, t.text, format_mask(t.mask)) for d in corpus for t in d.turns]
    assert found == POSTS
    assert {turn.speaker for turn in corpus.turns} == {"User"}


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("posts.txt", "One,\nline: two\n \nTwo\n", ["One,\nline: two", "Two"]),
        ("posts.json", '["One", "Two"]', ["One", "Two"]),
    ],
)
def test_texts_without_anything_else(
    name: str, content: str, expected: list[str], tmp_path: Path
) -> None:
    (tmp_path / name).write_text(content)
    found = convert(tmp_path / name, single=True).corpus
    assert [dialogue.turns[0].text for dialogue in found] == expected


def test_chats_are_not_single_texts(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, CHATS)))
    with pytest.raises(CorpusError, match="Leave out --single"):
        convert(tmp_path / "x.jsonl", single=True)


def test_the_messages_are_found_beside_other_lists(tmp_path: Path) -> None:
    prompt = [{"role": "user", "content": [{"type": "text", "text": "a"}]}]
    item = {"prompt": prompt, "rubrics": [{"criterion": "x", "points": 1}]}
    (tmp_path / "x.jsonl").write_text(json.dumps(item))
    found = convert(tmp_path / "x.jsonl")
    assert said(found.corpus) == [[("User", "a")]]
    assert found.understood["other columns"] == "dialogue.rubrics"
    with pytest.raises(CorpusError, match=r"no column is named like a text; found .*criterion"):
        convert(tmp_path / "x.jsonl", messages="rubrics")
    with pytest.raises(CorpusError, match="chats is no list of objects here; found prompt"):
        convert(tmp_path / "x.jsonl", messages="chats")
