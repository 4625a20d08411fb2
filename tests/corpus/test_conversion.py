"""Dialogues in usual forms: converted as meant, or refused with the option that decides."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.corpus import Corpus, convert, load_corpus
from cradle_lib.corpus.forms import SEPARATORS
from cradle_lib.errors import CorpusError
from cradle_lib.labels import format_mask

# Turns are (speaker, text) or (speaker, text, labels).
Dialogues = list[list[tuple[str, ...]]]
# Two dialogues with the same content in every form.
TURNS: Dialogues = [
    [("User", "Hello, é."), ("Listener", "Hi; what, then?"), ("User", "I am tired")],
    [("User", "Again"), ("Listener", "Yes")],
]
SYSTEM = {"role": "system", "content": "Be kind."}
TOOL = [
    {"role": "assistant", "content": None, "tool_calls": [{}]},
    {"role": "tool", "content": "7"},
]


def said(corpus: Corpus) -> Dialogues:
    return [[(turn.speaker, turn.text) for turn in dialogue.turns] for dialogue in corpus]


def chats(
    user: str = "user",
    listener: str = "assistant",
    who: str = "role",
    what: str = "content",
    name: str = "messages",
    more: Sequence[Any] = (),
    dialogues: Dialogues = TURNS,
) -> list[dict[str, Any]]:
    """Dialogues as objects with messages; a turn without labels has no such field."""
    names = {"User": user, "Listener": listener}
    chats = []
    for number, dialogue in enumerate(dialogues):
        messages = [
            {who: names[speaker], what: text} | ({"labels": labels[0]} if labels else {})
            for speaker, text, *labels in dialogue
        ]
        chats.append({name: [*messages, *more], "conversation_id": f"c{number}"})
    return chats


def lines(items: list[Any]) -> str:
    return "".join(json.dumps(item, ensure_ascii=False) + "\n" for item in items)


def table(
    separator: str = ",",
    head: str = "dialogue_id speaker text",
    user: str = "Patient",
    listener: str = "Therapist",
    first: int | None = None,
    dialogues: Dialogues = TURNS,
) -> str:
    text = io.StringIO(newline="")
    writer = csv.writer(text, delimiter=separator, lineterminator="\n")
    print(*head.split(), sep=separator, file=text)
    for number, dialogue in enumerate(dialogues):
        for turn, (speaker, *words) in enumerate(dialogue):
            place = f"c{number}" if first is None else turn + first
            writer.writerow((place, user if speaker == "User" else listener, *words))
    return text.getvalue()


def release(head: str, first: int, end: str) -> str:
    rows = [(n + first, f"{s}: {t}") for turns in TURNS for n, (s, t) in enumerate(turns)]
    return head + "".join(f'{n}{head[7]}"{text}"{end}\n' for n, text in rows)


def transcript(
    user: str = "Patient",
    listener: str = "Therapist",
    colon: str = ": ",
    dialogues: Dialogues = TURNS,
) -> str:
    names = {"User": user, "Listener": listener}
    return "\n".join(
        "".join(f"{names[s]}{colon}{text}\n" for s, text, *_ in dialogue) for dialogue in dialogues
    )


# name of the file: content, options.
CONVERTED: dict[str, tuple[str | bytes, dict[str, Any]]] = {
    "chat.jsonl": (lines(chats()), {}),
    "chat-without-an-ending": (lines(chats()), {}),
    "esconv.json": (json.dumps(chats("seeker", "supporter", "speaker", "content", "dialog")), {}),
    "lists.jsonl": (lines([item["messages"] for item in chats()]), {}),
    "around.json": (json.dumps({"version": 1, "data": chats()}), {}),
    "tool-calls.jsonl": (lines(chats(more=TOOL)), {"leave_out": ["tool"]}),
    "swapped.jsonl": (
        lines(chats("assistant", "user")),
        {"user": ["assistant"], "listener": ["user"]},
    ),
    "semicolon.csv": (table(";"), {}),
    "comma-unquoted.csv": (table(";", "dialogue_id speaker a,b"), {"text": "a,b"}),
    "separator-line.csv": ("\ufeffsep=;\r\n" + table(";"), {}),
    "line-break-in-a-name.csv": (
        table(";", '"Session\\nID" Speaker Text').replace("\\n", "\n"),
        {},
    ),
    "ends-with-a-separator.csv": (table(";").replace("\n", ";\n").replace("text;", "text"), {}),
    "empty-rows.csv": (table(";") + ";;\n;;\n", {}),
    "colons.csv": (table(user="Patient:", listener="Therapist:"), {}),
    "agent.csv": (table(head="Session Who Msg", user="Customer", listener="Agent"), {}),
    "id.csv": (table(head="id sender_name message"), {}),
    "own-names.csv": (
        table(head="Gespräch Wer Was"),
        {"dialogue": "Gespräch", "speaker": "wer", "text": "Was"},
    ),
    "from-1.csv": (table(head="Turn_ID Speaker Text", first=1), {}),
    "release-from-1.csv": (release("turn_id,text,labels\n", 1, ",none"), {}),
    "release-unlabelled.csv": (release("turn_id;text\n", 0, ""), {}),
    "transcript.txt": (transcript(), {}),
    "transcript-wide.txt": (transcript(colon="\uff1a"), {}),
    "transcript-names.txt": (transcript("Anna M.", "Dr. B"), {"user": ["Anna M."]}),
    **{
        f"transcript-times-{number}.txt": (transcript(colon=colon), {})
        for number, colon in enumerate(
            (" [00:05]: ", " (0:00:05.2): ", " 00:05:10 : ", ": [00:05] ", ":(00:05)")
        )
    },
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
    written = load_corpus(out)
    assert said(found.corpus) == said(written) == TURNS
    assert written.fingerprint == found.corpus.fingerprint
    assert not written.gold.any()
    assert found.understood["turns of the User"].startswith("3 by ")
    left = "times beside names, left out: 5" if "-times-" in name else "nothing"
    assert found.understood["left out or joined"] == left or "tool" in name


def test_parquet_files_are_converted(tmp_path: Path) -> None:
    path = tmp_path / "chat.parquet"
    pd.DataFrame(chats()).to_parquet(path)
    assert said(convert(path).corpus) == TURNS


def test_one_list_of_messages_with_parts_is_one_dialogue(tmp_path: Path) -> None:
    parts = [{"type": "text", "text": "Hm."}, {"type": "image_url", "url": ""}]
    messages = [{"role": "user", "content": parts}, {"role": "assistant", "content": "Yes"}]
    found = convert(write(tmp_path, "x.json", json.dumps(messages)))
    assert said(found.corpus) == [[("User", "Hm."), ("Listener", "Yes")]]
    assert found.understood["left out or joined"] == "parts of type 'image_url': 1"


ROLES, HEAD = "speaker,text\n", "dialogue_id,speaker,text\n"
LABELLED = "dialogue_id,speaker,text,labels\n1,user,a,none\n"
USR = {"messages": [{"role": "usr", "content": "a"}]}
NO_LABELS = {"labels": "none"}
FILE = {"dialogue": "file"}
# name of the file: content, part of the message, options that decide (if any can).
REFUSED: dict[str, tuple[str | bytes, str, dict[str, Any] | None]] = {
    "three.csv": (
        HEAD + "1,Anna,a\n1,Ben,b\n1,Cleo,c\n",
        r"row 0: .*Anna or Ben or Cleo is .*Anna \(1\), Ben \(1\), Cleo \(1\).*--leave-out NAME",
        {"user": ["Anna"], "listener": ["Ben"], "leave_out": ["Cleo"]},
    ),
    "two-users.csv": (
        HEAD + "1,user,a\n1,patient,b\n1,bot,c\n",
        "row 0: .*--user NAME",
        {"user": ["user", "patient"]},
    ),
    "system.jsonl": (
        lines(chats(more=[SYSTEM])),
        "row 0: can't tell if system is .*--leave-out",
        {"leave_out": ["system"]},
    ),
    "assistant-alone.jsonl": (
        lines([{"messages": [{"role": "assistant", "content": "a"}]}]),
        r"nobody is the User; found assistant \(1\)",
        {"user": ["assistant"]},
    ),
    "remark.txt": (
        "User: a\nWhat I mean: it is late\nListener: b\n",
        r"row 1: .*What I mean \(1\).*--listener NAME",
        {"user": ["User"], "listener": ["Listener"]},
    ),
    "range.txt": (
        "User [00:01 - 00:05]: a\nListener [00:06 - 00:10]: b\n",
        r"row 0: a time follows the name. Write it before the name",
        None,
    ),
    "time-in-a-text.txt": (
        "User: a\nTomorrow 10:30 is fine.\nListener: b\n",
        "row 1: a time follows the name.*If it is text, put a dash",
        None,
    ),
    "two-texts.csv": (
        "dialogue_id,speaker,text,message\n1,user,a,b\n",
        "found text, message.*--text",
        {"text": "message"},
    ),
    "no-speaker.csv": (
        "dialogue_id,text,a\n1,b,user\n",
        "names the speaker; found dialogue_id, text, a.*--speaker",
        {"speaker": "a"},
    ),
    "empty-speaker.csv": (HEAD + "1,user,a\n1,,b\n", "row 1: no speaker is named.*Fill", None),
    "no-dialogue.csv": (ROLES + "user,a\n", "names the dialogue.*--dialogue file", FILE),
    "everything.csv": (
        "a,b,c\n1,x,alert\n",
        "4 things .*--text COLUMN.*--labels COLUMN.*--dialogue COLUMN.*--speaker COLUMN",
        {"text": "a", "speaker": "b", "dialogue": "file", "labels": "none", "user": ["x"]},
    ),
    "two-lists.jsonl": (
        lines([{"chosen": USR["messages"], "rejected": USR["messages"]}]),
        "chosen and rejected could each be the messages.*--messages FIELD",
        {"messages": "chosen", "user": ["usr"]},
    ),
    "labels-unknown.csv": (LABELLED + "1,user,b,joy\n", "row 1: .*'joy'.*--no-labels", NO_LABELS),
    "labels-on-nothing.csv": (LABELLED + "1,user,,alert_past\n", "row 1: .*left out", NO_LABELS),
    "interleaved.csv": (
        HEAD + "1,user,a\n2,user,b\n1,bot,c\n",
        "row 2: the messages of this dialogue are not together.*--order file",
        {"order": "file"},
    ),
    **{
        f"ids-{number}.csv": (
            "turn," + HEAD + f"1,{one},user,a\n2,{other},bot,b\n3,{one},user,c\n",
            f"row 1: the dialogue is '{other}', and '{one}' above.*Spell the id",
            None,
        )
        for number, (one, other) in enumerate((("1", "1.0"), ("A1", "a1"), ("b 2", "b_2 ")))
    },
    "missing-row.csv": ("turn,speaker,text\n1,user,a\n3,user,b\n", "row 1: .*is missing", None),
    "turn-is-text.csv": (
        "turn," + HEAD + "a,1,user,a\nb,1,bot,b\n",
        "not clear from turn: its values are not numbers",
        {"order": "file"},
    ),
    "title-wide.csv": (
        "Our export;;\n" + HEAD.replace(",", ";") + "1;user;a\n",
        r"csv: the first line names no .* Our export\. Delete lines above the header",
        None,
    ),
    "messages-in-cells.csv": (
        "id;messages\na;" + '"[{""role"": ""user"", ""content"": ""Hi""}]"\n',
        "csv: messages has all messages of a dialogue in each cell. Save .* JSON lines",
        None,
    ),
    "messages-of-python.csv": (
        "id,turns\na," + "\"[{'role': 'user', 'content': 'Hi'}]\"\n",
        "csv: turns has all messages of a dialogue in each cell",
        None,
    ),
    "title.csv": ("Our export\n" + HEAD + "1,user,a\n", "Delete lines above the header", None),
    "half-a-text.json": ('[{"role": "user", "content": "\\ud800"}]', "row 0: .*valid text", None),
    "nul.json": ('[{"role": "user", "content": "a\\u0000b"}]', "row 0: .*valid text", None),
    "half-a-name.json": ('[{"a\\ud800": 1}]', "a column has half a character", None),
    "russian.csv": (
        (HEAD + "1,user,Привет как дела сегодня\n").encode("cp1251"),
        r"line 2, byte 8 \(cf\) is not UTF-8.*--encoding",
        {"encoding": "cp1251"},
    ),
    "head.csv": (HEAD, "there are no messages", None),
    "dated.txt": ("12 March 2024\nUser: a\nListener: b\n", "row 0: .*names no speaker", None),
    "nothing.txt": ("User: \n", "there are no rows", None),
    "blank.txt": ("User: a\nand\n\nb\nListener: c\n", "row 3: no speaker.*--dialogue file", FILE),
    "spread.txt": ("User: a\n\nListener: b\n", "each dialogue has one line.*--dialogue file", FILE),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_ambiguous_or_damaged_is_refused_with_the_option_that_decides(
    name: str, tmp_path: Path
) -> None:
    content, message, decided = REFUSED[name]
    path, out = write(tmp_path, name, content), tmp_path / "out.csv"
    with pytest.raises(CorpusError, match=message) as caught:
        convert(path, out)
    assert str(path) in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1
    assert not out.exists()
    if decided is not None:
        assert len(convert(path, out, **decided).corpus)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"user": ["Ann"]}, r"'Ann' is no speaker.*found Patient \(3\), Therapist \(2\)"),
        ({"user": ["Patient"], "listener": ["patient"]}, "'patient' is .*has two roles"),
        ({"speaker": "wer"}, "found dialogue_id, speaker, text. .*--speaker"),
        ({"consecutive": "both"}, "expected joined or turns"),
        ({"out": "x.csv"}, "is the file to convert"),
        ({"out": "x.txt"}, "unknown ending"),
    ],
)
def test_a_wrong_option_is_refused_and_the_file_is_kept(
    options: dict[str, Any], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    path = write(tmp_path, "x.csv", table())
    with pytest.raises(CorpusError, match=message):
        convert("x.csv", **options)
    assert path.read_text() == table()


def test_a_field_of_a_dialogue_is_not_repeated_on_its_messages(tmp_path: Path) -> None:
    path = write(tmp_path, "x.jsonl", lines([chats()[0] | {"about": "alert_past"}]))
    with pytest.raises(CorpusError, match=r"dialogue\.about is a field of the dialogue"):
        convert(path, labels="dialogue.about")


@pytest.mark.parametrize("mark", [",", ";", "\t", "|"])
@pytest.mark.parametrize("name", ['"a, b"', '"a; b"', '"a\t b"', '"a | b, c"'])
def test_a_quoted_column_name_may_contain_a_separator(mark: str, name: str, tmp_path: Path) -> None:
    rows = [(name, "speaker", "text"), ("x", "client", '"Hi, you;"'), ("x", "bot", "Hello")]
    path = write(tmp_path, "x.csv", "\n".join(map(mark.join, rows)))
    found = convert(path, dialogue="file")
    assert said(found.corpus) == [[("User", "Hi, you;"), ("Listener", "Hello")]]
    assert found.understood["separator"] == SEPARATORS[mark]


def test_a_dialogue_without_messages_is_counted(tmp_path: Path) -> None:
    empty = {"conversation_id": "x", "messages": []}
    found = convert(write(tmp_path, "x.jsonl", lines([empty, *chats(), empty])))
    assert found.understood["left out or joined"] == "dialogues without messages, left out: 2"
    assert [dialogue.id for dialogue in found.corpus] == ["c0", "c1"]


def test_messages_in_a_row_are_one_utterance_or_several_turns(tmp_path: Path) -> None:
    rows = [("user", "a", "alert_past"), ("user", "b", "confirm_SH_past"), ("bot", "c", "none")]
    content = "id,session_id,role,text,labels\n" + "".join(
        f"{n},s,{who},{text},{labels}\n" for n, (who, text, labels) in enumerate(rows)
    )
    path = write(tmp_path, "x.csv", content)
    joined, kept = convert(path), convert(path, consecutive="turns")
    assert said(joined.corpus) == [[("User", "a\nb"), ("Listener", "c")]]
    assert format_mask(joined.corpus.gold[0]) == "alert_past; confirm_SH_past"
    assert joined.understood["labels"] == "2 (in labels)"
    assert joined.understood["left out or joined"] == (
        "consecutive messages of one speaker, joined to the one before: 1"
    )
    assert said(kept.corpus) == [[("User", "a"), ("User", "b"), ("Listener", "c")]]
    assert [format_mask(mask) for mask in kept.corpus.gold] == ["alert_past", "confirm_SH_past"]
    assert kept.understood["left out or joined"].endswith("kept as turns: 1")


@pytest.mark.parametrize("name", ["Mia", "Ann", "mia b", "Mia Van Dam"])
def test_a_speaker_who_is_not_named_does_not_join_the_turn_above(name: str, tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text(f"Anna: a\nHelpline: b\n{name}: c\nAnna: d\n")
    speakers = {"user": ["Anna"], "listener": ["Helpline"]}
    with pytest.raises(CorpusError, match=rf"row 2: .*: {name} \(1\). .*--leave-out NAME"):
        convert(path, **speakers)
    found = convert(path, **speakers, leave_out=[name]).corpus
    assert [turn.text for turn in found.turns] == ["a", "b", "d"]


def test_a_text_can_not_become_a_speaker(tmp_path: Path) -> None:
    chat = [{"messages": [{"role": "user", "content": "hm\nListener: yes"}]}]
    out = tmp_path / "out.csv"
    convert(write(tmp_path, "x.json", json.dumps(chat)), out)
    assert said(load_corpus(out)) == [[("User", "hm\nListener: yes")]]


def test_load_corpus_says_that_a_file_can_be_converted(tmp_path: Path) -> None:
    for name, form in {
        "chat.jsonl": "chat messages",
        "release-unlabelled.csv": "a table",
        "transcript.txt": "a transcript",
        "three.csv": "a table",
    }.items():
        path = write(tmp_path, name, {**CONVERTED, **REFUSED}[name][0])
        expected = rf"looks like {form}: run `cradle data convert {path} --out corpus\.csv`\.$"
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
cells = st.one_of(st.just(0), st.integers(0, 0xFFFF)).map(format_mask)
dialogues = st.lists(
    st.lists(st.tuples(texts, cells), min_size=1, max_size=5).map(
        lambda turns: [(("User", "Listener")[n % 2], *turn) for n, turn in enumerate(turns)]
    ),
    min_size=1,
    max_size=4,
)
HEADS = "Conversation_ID Speaker Text Labels"
FORMS: dict[str, Callable[[Dialogues], bytes]] = {
    "chats.jsonl": lambda found: lines(
        chats("human", "gpt", "from", "value", "conversations", dialogues=found)
    ).encode(),
    "semicolon.csv": lambda found: table(";", HEADS, dialogues=found).encode("utf-8-sig"),
    "tab.tsv": lambda found: table("\t", HEADS, dialogues=found).encode("utf-16"),
    "transcript.txt": lambda found: transcript(dialogues=found).encode(),
}


@settings(max_examples=12)
@given(dialogues, st.sampled_from([".csv", ".parquet"]))
@pytest.mark.parametrize("form", FORMS)
def test_dialogues_written_in_a_form_are_read_back(
    form: str, tmp_path_factory: pytest.TempPathFactory, content: Dialogues, ending: str
) -> None:
    folder = tmp_path_factory.mktemp("form")
    # Random dialogues may be the beginning of one another.
    path = write(folder, form, FORMS[form](content))
    convert(path, folder / f"out{ending}", cumulative=False)
    found = load_corpus(folder / f"out{ending}")
    assert said(found) == [[turn[:2] for turn in turns] for turns in content]
    if form != "transcript.txt":
        assert [d.id for d in found] == [f"c{number}" for number in range(len(content))]
        labels = [[format_mask(t.mask) for t in d.turns] for d in found]
        assert labels == [[turn[2] for turn in turns] for turns in content]


def test_chats_without_labels_stay_unlabelled(tmp_path: Path) -> None:
    # Messages without the field say nothing, whatever labels the other dialogues have.
    content: Dialogues = [
        [("User", "Hi", "alert_ongoing"), ("Listener", "Hello")],
        [("User", "How are you?"), ("Listener", "Fine")],
        [("User", "Bye", "none")],
    ]
    path = write(tmp_path, "chat.jsonl", lines(chats(dialogues=content)))
    found = convert(path, tmp_path / "chat.csv").corpus
    assert [d.labelled for d in found] == [True, False, True]
    assert load_corpus(tmp_path / "chat.csv").fingerprint == found.fingerprint
    assert not any(d.labelled for d in convert(path, labels="none").corpus)


@pytest.mark.parametrize(
    ("cells", "labelled"),
    [
        (["none", "alert_ongoing", "", ""], [True, False]),
        (["", "alert_ongoing", "", ""], [True, True]),
        (["", "", "", ""], [False, False]),
    ],
)
def test_empty_cells_of_a_table_mean_none_unless_it_says_none(
    tmp_path: Path, cells: list[str], labelled: list[bool]
) -> None:
    rows = zip("aabb", ("Therapist", "Patient") * 2, cells, strict=True)
    content = "id,speaker,text,label\n" + "".join(f"{i},{who},hi,{c}\n" for i, who, c in rows)
    found = convert(write(tmp_path, "x.csv", content), tmp_path / "y.csv").corpus
    assert [d.labelled for d in found] == labelled
    assert load_corpus(tmp_path / "y.csv").fingerprint == found.fingerprint


@pytest.mark.parametrize("field", [{"labels": ""}, {"labels": []}, {"labels": None}, {}])
@pytest.mark.parametrize("more", ["", "none"])
def test_an_empty_field_of_chats_is_an_empty_cell_and_a_missing_one_is_not(
    field: dict[str, Any], more: str, tmp_path: Path
) -> None:
    user, bot = {"role": "user", "content": "a"}, {"role": "assistant", "content": "b"}
    first = [user | {"labels": "alert_past"}, bot | {"labels": more}]
    content = lines([{"messages": first}, {"messages": [user | field, bot | field]}])
    found = convert(write(tmp_path, "x.jsonl", content), labels="labels")
    labelled = field == {"labels": []} or (field == {"labels": ""} and not more)
    assert [d.labelled for d in found.corpus] == [True, labelled]
    told = "2 of 2" if labelled else "1 of 2; without: d0001"
    assert found.understood["with gold labels"] == told


def test_a_file_that_could_not_tell_unlabelled_dialogues_is_refused(tmp_path: Path) -> None:
    content: Dialogues = [[("User", "Hi", "alert_past")], [("User", "Hello")]]
    path = write(tmp_path, "x.jsonl", lines(chats(dialogues=content)))
    with pytest.raises(CorpusError, match="the others have a label on every row"):
        convert(path, tmp_path / "y.csv")
    assert not (tmp_path / "y.csv").exists()


def test_signs_in_the_names_of_label_columns_do_not_lose_labels(tmp_path: Path) -> None:
    path = tmp_path / "flags.csv"
    for name in ("SH past *", "SH past (?)", "+SH past", "SH_past!", "<SH_past>", "**SH_past**"):
        head = f"dialogue_id,speaker,text,alert ongoing,{name}\n"
        rows = f"{head}a,Client,one,x,\na,Client,two,,yes\n"
        path.write_text(rows)
        found = convert(path, consecutive="turns").corpus
        expected = ["alert_ongoing", "confirm_SH_past"]
        assert [format_mask(turn.mask) for turn in found.turns] == expected


def test_a_time_in_a_few_texts_is_what_was_said(tmp_path: Path) -> None:
    path = tmp_path / "said.txt"
    path.write_text("Client: hello\nCounselor: When?\nClient: (10:30) or so, on good days.\n")
    assert convert(path).corpus.turns[2].text == "(10:30) or so, on good days."


@pytest.mark.parametrize(
    ("ids", "refused"), [("ab3 aB3", False), ("s-1 s_1", False), ("A1 a1 A1", True)]
)
def test_ids_that_differ_in_spelling_are_refused_if_their_rows_are_mixed(
    ids: str, refused: bool, tmp_path: Path
) -> None:
    path = tmp_path / "ids.csv"
    rows = "".join(f"{own},{n},Client,text {n}\n" for n, own in enumerate(ids.split()))
    path.write_text(f"session,turn,speaker,text\n{rows}")
    if refused:
        with pytest.raises(CorpusError, match="the dialogue is 'a1', and 'A1' above"):
            convert(path)
    else:
        assert len(convert(path).corpus) == 2
