"""Reading the release's format, in every form and with every quirk that is known."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cradle_lib import labels
from cradle_lib.corpus import Corpus, is_test_split, load_corpus, read_release
from cradle_lib.corpus.collect import read_folder
from cradle_lib.corpus.release import build_corpus
from cradle_lib.corpus.statistics import dialogue_frame, label_frame
from cradle_lib.detection import sample_dialogues
from cradle_lib.errors import CorpusError

ROWS: list[tuple[int, str, str]] = [
    (0, "Listener: Hi, what brings you here?", "none"),
    (1, "User: Three things this week:", "none"),
    (2, "- sleep", "none"),
    (3, "- work, and the fear of it", "alert_past"),
    (4, "Listener: None of that sounds easy.", "none"),
    (5, "User: None", "alert_ongoing; confirm_SH_past"),
    (0, 'User: He said: "User: me"', "none"),
    (1, "Listener: null", "confirm_DV_past"),
]


def write(path: Path, rows: list[tuple[Any, Any, Any]] = ROWS) -> Path:
    records = [dict(zip(("turn_id", "text", "labels"), row, strict=True)) for row in rows]
    if path.suffix == ".parquet":
        pq.write_table(pa.Table.from_pylist(records), path)
    elif path.suffix == ".csv":
        with path.open("w", newline="", encoding="utf-8") as handle:
            writer = csv.DictWriter(handle, ("turn_id", "text", "labels"))
            writer.writeheader()
            writer.writerows(records)
    elif path.suffix == ".json":
        path.write_text(json.dumps(records), encoding="utf-8")
    else:
        path.write_text("".join(json.dumps(r) + "\n" for r in records), encoding="utf-8")
    return path


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl"])
def test_all_four_formats_give_the_same_turns(tmp_path: Path, ending: str) -> None:
    corpus = read_release(write(tmp_path / f"x.{ending}"))
    assert [len(d.turns) for d in corpus] == [6, 2]
    assert [t.row for t in corpus.turns] == list(range(8))
    first = corpus.dialogues[0]
    assert [t.speaker for t in first.turns] == [
        "Listener",
        "User",
        "User",
        "User",
        "Listener",
        "User",
    ]
    assert [t.continues for t in first.turns] == [False, False, True, True, False, False]
    assert [t.turn_id for t in first.user_turns] == [1, 5]
    assert first.utterance(first.turns[1]) == (
        "Three things this week:\n- sleep\n- work, and the fear of it"
    )
    assert first.utterance(first.turns[5]) == "None"
    assert corpus.dialogues[1].turns[1].text == "null"
    assert labels.format_mask(first.turns[5].mask) == "alert_ongoing; confirm_SH_past"
    assert labels.format_mask(first.mask) == "alert_ongoing; alert_past; confirm_SH_past"
    assert corpus.gold.tolist() == [0, first.turns[5].mask, 0]
    assert corpus.dialogue_of.tolist() == [0, 0, 1]
    assert corpus.dialogues[1].turns[0].text == 'He said: "User: me"'


def test_the_fingerprint_changes_with_a_letter_a_label_or_a_boundary() -> None:
    seen = {build_corpus(ROWS, "x").fingerprint}
    for row, change in (
        (0, (0, "Listener: Hi, what brings you here.", "none")),
        (3, (3, "- work, and the fear of it", "alert_ongoing")),
        (6, (6, 'User: He said: "User: me"', "none")),
        (2, (2, "User: - sleep", "none")),
    ):
        rows = list(ROWS)
        rows[row] = change
        if row == 6:
            rows[7] = (7, *ROWS[7][1:])
        seen.add(build_corpus(rows, "x").fingerprint)
    assert len(seen) == 5


def test_a_subset_keeps_rows_and_ids() -> None:
    corpus = build_corpus(ROWS, "x")
    part = corpus.subset([1], "part")
    assert [d.id for d in part] == ["d0001"]
    assert [t.row for t in part.turns] == [6, 7]
    assert part.dialogue_of.tolist() == [0]


def bad(tmp_path: Path, name: str, content: bytes) -> Path:
    path = tmp_path / name
    path.write_bytes(content)
    return path


def bad_strings(path: Path) -> Path:
    """A parquet file whose text column claims to be UTF-8 and is not."""
    text = pa.array([b"User: n\xe9"], pa.binary()).view(pa.string())
    columns = {"turn_id": pa.array([0]), "text": text, "labels": pa.array(["none"])}
    pq.write_table(pa.table(columns), path)
    return path


def test_damaged_files_give_one_clear_line(tmp_path: Path) -> None:
    whole = write(tmp_path / "whole.parquet").read_bytes()
    head = b"turn_id,text,labels\n"
    cases = {
        "no such file": tmp_path / "absent.csv",
        "unknown ending": bad(tmp_path, "x.xlsx", b"x"),
        "is empty": bad(tmp_path, "empty.csv", b""),
        "there are no rows": bad(tmp_path, "head.csv", head),
        "not UTF-8": bad(tmp_path, "latin.csv", head + "0,User: né,none\n".encode("latin-1")),
        "byte .* is not UTF-8": bad(tmp_path, "latin.json", b'["\xe9"]'),
        "not a complete parquet": bad(tmp_path, "cut.parquet", whole[: len(whole) // 2]),
        "column labels is missing; found turn_id, text": bad(
            tmp_path, "columns.csv", b"turn_id,text\n0,User: a\n"
        ),
        "not JSON .* line 1 column 4": bad(tmp_path, "x.json", b"[1,"),
        r"row 1: not JSON that can be read \(Expecting ':' delimiter: column 11 ": bad(
            tmp_path, "x.jsonl", b'{"turn_id":0,"text":"User: a","labels":"none"}\n{"turn_id"\n'
        ),
        "Extra data: line 2 .* needs the ending .jsonl": bad(tmp_path, "two.json", b"{}\n{}\n"),
        "'a' appears twice in an object.$": bad(tmp_path, "twice.json", b'[{"a": 1, "a": 2}]'),
        "expected an object": bad(tmp_path, "list.jsonl", b"[1]\n"),
        "expected a list of objects": bad(tmp_path, "n.json", b'{"turn_id":[0]}'),
        "bytes.parquet: byte .* is not UTF-8": bad_strings(tmp_path / "bytes.parquet"),
        r"deep\.json: not JSON that can be read \(nested": bad(
            tmp_path, "deep.json", b"[" * 200_000
        ),
        r"row 0: not JSON that can be read \(.*digits": bad(
            tmp_path, "big.jsonl", b'{"turn_id":' + b"9" * 5000 + b',"text":"","labels":""}'
        ),
        "row 0: turn_id is '9999": bad(
            tmp_path, "digits.csv", head + b"9" * 400 + b",User: a,none\n"
        ),
        "not a readable CSV": bad(tmp_path, "quote.csv", head + b'0,"User: a\n'),
    }
    for expected, path in cases.items():
        with pytest.raises(CorpusError, match=expected) as caught:
            read_release(path)
        assert path.name in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("row", "change", "expected"),
    [
        (0, (3, "User: a", "none"), "row 0: the first turn_id is 3, expected 0"),
        (2, (4, "- sleep", "none"), "row 2: turn_id is 4, expected 2"),
        (2, (1, "- sleep", "none"), "row 2: turn_id is 1, expected 2"),
        (2, (-1, "- sleep", "none"), "row 2: turn_id is -1"),
        (2, ("two", "- sleep", "none"), "row 2: turn_id is 'two'"),
        (2, (True, "- sleep", "none"), "row 2: turn_id is True"),
        (2, (2, None, "none"), "row 2: text is None"),
        (2, (2, 7, "none"), "row 2: text is 7"),
        (2, (2, "x" * 10_000_000, "none"), "row 2: the text has 10,000,000 characters"),
        (2, (2, "a", "confirm_SH_oning"), "row 2: unknown label .*confirm_SH_ongoing"),
        (2, (2, "a", 5), "row 2: labels is 5"),
        (6, (0, "no speaker", "none"), "row 6: a dialogue starts with 'no speaker'"),
    ],
)
def test_a_row_that_can_not_be_a_turn_is_named(
    row: int, change: tuple[Any, Any, Any], expected: str
) -> None:
    rows: list[tuple[Any, Any, Any]] = list(ROWS)
    rows[row] = change
    with pytest.raises(CorpusError, match=expected):
        build_corpus(rows, "x")


def test_missing_labels_are_no_labels() -> None:
    corpus = build_corpus([(0, "User: a", None), (1, "Listener: b", float("nan"))], "x")
    assert [t.mask for t in corpus.turns] == [0, 0]


def test_labels_may_come_as_a_list() -> None:
    corpus = build_corpus([(0, "User: a", ["alert_past", "confirm_CA_past"])], "x")
    assert labels.format_mask(corpus.turns[0].mask) == "alert_past; confirm_CA_past"


@pytest.mark.parametrize(
    "start",
    [
        "user:",
        "User :",
        "  LISTENER:",
        "User\uff1a",
        "\uff35\uff53\uff45\uff52:",
        "\u200bUser:",
        "\ufeffUser:",
        "\u200eListener:",
        "\u2067User\u2069:",
        "Us\u00ader:",
        "User\u200b:",
        "User\u00a0:",
        "Lis\u2060tener\u3000\ufe55",
    ],
)
@pytest.mark.parametrize("place", ["first", "later"])
def test_what_reads_as_a_speaker_and_is_spelt_otherwise_is_refused_by_all_readers(
    tmp_path: Path, start: str, place: str
) -> None:
    above = [] if place == "first" else ["User: Hm."]
    said = [*above, f"{start} I hurt myself.", "Listener: Thank you."]
    rows = [(i, text, "confirm_SH_ongoing") for i, text in enumerate(said)]
    row = len(above)
    for ending in ("csv", "json", "jsonl", "parquet"):
        with pytest.raises(CorpusError, match=f"row {row}: found .*expected 'User:'") as caught:
            read_release(write(tmp_path / f"x.{ending}", rows))
        # What can't be seen is shown by its number.
        assert str(caught.value).isprintable()
        assert "hurt" not in str(caught.value)
    folder = tmp_path / "talks"
    folder.mkdir()
    (folder / "a.txt").write_text("\n".join(said), encoding="utf-8")
    if (place, start) == ("first", "\ufeffUser:"):
        # At the very start of a text file it marks the encoding.
        assert len(read_folder(folder).gold) == 1
        return
    with pytest.raises(CorpusError, match=rf"a\.txt:{row + 1}: found .*expected 'User:'"):
        read_folder(folder)


@pytest.mark.parametrize(
    ("text", "asked"),
    [
        ("\n \u00a0User: Hm.", True),
        ("User:\u200bHm.", True),
        ("Users: five of them", False),
        ("user interfaces: I hate them", False),
        ("User", False),
        ("- user: my name there", False),
        ("He typed user: me", False),
        ("us", False),
        ("\u200b", False),
    ],
)
def test_other_texts_start_or_continue_an_utterance_as_before(text: str, asked: bool) -> None:
    corpus = build_corpus([(0, "User: a", "none"), (1, text, "alert_past")], "x")
    assert corpus.turns[1].asked is asked
    assert corpus.turns[1].continues is not asked


ABOUT = {
    "dialogue_id": ["a", "a", " b-2", "c"],
    "scenario": ["S1", "S1", "S2", "Peer conflict & worry"],
    "timing": ["late", "late", "early", "late"],
}
FOUR = [
    (0, "User: a", "alert_past"),
    (1, "Listener: b", "none"),
    (0, "User: c", "none"),
    (0, "User: d", "none"),
]


def test_columns_of_ones_own_name_and_describe_the_dialogues() -> None:
    corpus = build_corpus(FOUR, "x", about=ABOUT)
    assert [d.id for d in corpus] == ["a", "b-2", "c"]
    assert corpus.meta == {
        "scenario": ["S1", "S2", "Peer conflict & worry"],
        "timing": ["late", "early", "late"],
    }
    part = corpus.subset([2], "part")
    assert ([d.id for d in part], part.meta["timing"]) == (["c"], ["late"])
    # Names are about a corpus and not what is said in it.
    assert corpus.fingerprint == build_corpus(FOUR, "x").fingerprint
    each = dialogue_frame(corpus)
    assert each["timing"].value_counts().to_dict() == {"early": 1, "mid": 0, "late": 2}
    scenarios = each["scenario"].cat.categories
    assert [*scenarios] == [*(f"S{n}" for n in range(1, 8)), "Peer conflict & worry"]
    assert [*each["scenario"]] == ["S1", "S2", "Peer conflict & worry"]
    told = label_frame(corpus)[["label", "scenario"]]
    assert told.to_numpy().tolist() == [["alert_past", "S1"]]
    assert len(sample_dialogues(corpus, 2)) == 2


@pytest.mark.parametrize("ending", ["parquet", "csv", "json", "jsonl"])
def test_they_come_from_each_format_and_numbers_are_names(tmp_path: Path, ending: str) -> None:
    records: list[dict[str, Any]] = [
        dict(zip(("turn_id", "text", "labels"), row, strict=True))
        | {"dialogue_id": number, "timing": "mid", "annotator": None}
        for row, number in zip(FOUR, (10, 10, 7, 8), strict=True)
    ]
    frame = pd.DataFrame(records)
    path = tmp_path / f"x.{ending}"
    if ending == "parquet":
        frame.to_parquet(path)
    elif ending == "csv":
        frame.to_csv(path, index=False)
    else:
        frame.to_json(path, orient="records", lines=ending == "jsonl")
    corpus = load_corpus(path)
    assert [d.id for d in corpus] == ["10", "7", "8"]
    assert corpus.meta == {"timing": ["mid"] * 3}


@pytest.mark.parametrize(
    ("column", "row", "value", "expected"),
    [
        ("dialogue_id", 1, "b-2", "row 1: dialogue_id is 'b-2', and 'a' in row 0 of the same"),
        ("dialogue_id", 2, "a", "row 2: dialogue_id 'a' is that of the dialogue from row 0 on"),
        ("dialogue_id", 3, "b-2 ", "row 3: dialogue_id 'b-2' is that of the dialogue from row 2"),
        ("dialogue_id", 3, None, "row 3: dialogue_id is None, expected a name"),
        ("dialogue_id", 3, "  ", "row 3: dialogue_id is '  ', expected a name"),
        ("dialogue_id", 3, 1.5, "row 3: dialogue_id is 1.5, expected a name"),
        ("dialogue_id", 3, True, "row 3: dialogue_id is True, expected a name"),
        ("dialogue_id", 3, "<img src=x onerror=alert(1)>", "row 3: .*letter or digit"),
        ("dialogue_id", 3, "a<b>", "row 3: .*a name without < >"),
        ("dialogue_id", 3, "x" * 65, "row 3: .*up to 64"),
        ("dialogue_id", 3, "a\nb", "row 3: .*printable"),
        ("dialogue_id", 3, "=1+1", "row 3: .*letter or digit"),
        ("dialogue_id", 3, "../a", "row 3: .*letter or digit"),
        ("scenario", 1, "S2", "row 1: scenario is 'S2', and 'S1' in row 0"),
        ("scenario", 2, float("nan"), "row 2: scenario is nan, expected a name"),
        ("timing", 1, "", "row 1: timing is '', expected a name.*leave out the column timing"),
        ("timing", 2, "$x$", "row 2: timing"),
    ],
)
def test_what_is_no_name_or_changes_within_a_dialogue_is_refused(
    column: str, row: int, value: object, expected: str
) -> None:
    cells: list[object] = list(ABOUT[column])
    cells[row] = value
    with pytest.raises(CorpusError, match=expected) as caught:
        build_corpus(FOUR, "x", about={**ABOUT, column: cells})
    assert "\n" not in str(caught.value)


words = st.text(st.characters(codec="utf-8", exclude_characters="\r\x00"), max_size=30)
dialogues = st.lists(
    st.lists(
        st.tuples(st.sampled_from(["User", "Listener", None]), words, st.integers(0, 0xFFFF)),
        min_size=1,
        max_size=5,
    ),
    min_size=1,
    max_size=4,
)


@given(dialogues)
def test_whatever_was_written_is_read_back_row_by_row(
    content: list[list[tuple[str | None, str, int]]],
) -> None:
    rows = [
        (i, f"{s or ('User' if i == 0 else '>')}: {w}", labels.format_mask(m))
        for turns in content
        for i, (s, w, m) in enumerate(turns)
    ]
    corpus = build_corpus(rows, "x")
    expected = [t for turns in content for t in turns]
    assert [len(d.turns) for d in corpus] == [len(turns) for turns in content]
    assert [t.mask for t in corpus.turns] == [m for _, _, m in expected]
    for turn, (speaker, said, _) in zip(corpus.turns, expected, strict=True):
        assert turn.continues == (speaker is None and turn.turn_id > 0)
        assert said.strip() in turn.text


@given(st.binary(max_size=200), st.sampled_from(["csv", "json", "jsonl", "parquet"]))
def test_random_bytes_are_read_or_refused_but_never_crash(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, ending: str
) -> None:
    path = tmp_path_factory.mktemp("bytes") / f"x.{ending}"
    path.write_bytes(content)
    try:
        corpus = read_release(path)
    except CorpusError:
        return
    assert isinstance(corpus, Corpus)


@pytest.mark.parametrize(
    ("name", "claims"),
    [("test", True), ("hub-test", True), ("test_v2", True), ("latest", False), ("contest", False)],
)
def test_only_the_word_test_claims_to_be_the_test_split(name: str, claims: bool) -> None:
    assert is_test_split(build_corpus(ROWS, name)) is claims
