"""Truncated and damaged files are refused; missing values are never filled in silently."""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus, read_release
from cradle_lib.corpus.release import build_corpus
from cradle_lib.errors import CorpusError

COLUMNS = ("turn_id", "text", "labels")
ROWS: list[tuple[int, str, str]] = [
    (0, 'User: I said "well", and\nleft, é, twice.', "alert_ongoing"),
    (1, "- once more,\r\nand again", "alert_ongoing; confirm_SH_ongoing"),
    (0, "User: None", "confirm_DV_past"),
    (1, "User: Hm.", "alert_past; confirm_DV_ongoing; confirm_DV_past"),
]
ABOUT = [("a-1", "S2", "early")] * 2 + [("b 2", "S1", "late")] * 2
HEAD = b"turn_id,text,labels\n"


def as_csv(order: tuple[str, ...], end: str) -> bytes:
    records = [
        dict(zip((*COLUMNS, "dialogue_id", "scenario", "timing"), (*row, *about), strict=True))
        for row, about in zip(ROWS, ABOUT, strict=True)
    ]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, order, extrasaction="ignore", lineterminator=end)
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def in_all_formats() -> dict[str, bytes]:
    records = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    parquet = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), parquet)
    return {
        "windows.csv": b"\xef\xbb\xbf" + as_csv(("labels", "turn_id", "text"), "\r\n"),
        "about.csv": as_csv(("dialogue_id", *COLUMNS, "scenario", "timing"), "\n"),
        "records.json": json.dumps(records).encode(),
        "lines.jsonl": "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode(),
        "table.parquet": parquet.getvalue(),
    }


def read_by_csv(content: bytes) -> Corpus:
    """Builds a corpus from the rows that the csv module reads."""
    table = csv.DictReader(io.StringIO(content.decode("utf-8-sig"), newline=""))
    return build_corpus(((row["turn_id"], row["text"], row["labels"]) for row in table), "x")


def cells(corpus: Corpus) -> list[tuple[int, str, int]]:
    return [(turn.turn_id, turn.text, turn.mask) for turn in corpus.turns]


@pytest.mark.parametrize("name", in_all_formats())
def test_a_truncated_file_is_refused_or_gives_complete_rows_only(tmp_path: Path, name: str) -> None:
    content = in_all_formats()[name]
    path = tmp_path / name
    path.write_bytes(content)
    expected_corpus = read_release(path)
    assert cells(expected_corpus) == cells(build_corpus(ROWS, "x"))
    loaded = 0
    # The footer of a parquet file is at its end.
    for end in range(0, len(content), 9 if name.endswith("parquet") else 1):
        path.write_bytes(content[:end])
        try:
            part = read_release(path)
        except CorpusError:
            continue
        loaded += 1
        complete = len(part.turns)
        if name.endswith(".csv"):
            # Without a final line break, the last field may be truncated.
            assert cells(part) == cells(read_by_csv(content[:end])), content[:end]
            complete -= 1
        assert part.turns[:complete] == expected_corpus.turns[:complete], content[:end]
        for column, values in part.meta.items():
            assert values[:-1] == expected_corpus.meta[column][: len(values) - 1]
    # A file of lines that is cut after a line is a valid shorter file.
    assert (loaded > 0) is name.endswith((".csv", "jsonl"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # An unquoted comma in the text would shift the fields and lose a label.
        (b"0,User: a,b,confirm_SH_ongoing\n", "row 0: the row has 4 fields, expected 3"),
        (b'0,"User: a\nb",none\n\n1,User: b\n', "row 1: the row has 2 fields, expected 3"),
        (b'0,User: a,none\n1,"User: b,none\n', "unexpected end of data.* in line 3"),
        (b'0,"User: a" b,none\n', "expected after.* in line 2"),
        (b"0,User: a,none\r1", "row 1: the row has 1 fields.*cut off"),
    ],
)
def test_a_row_needs_the_headers_number_of_fields(
    tmp_path: Path, rows: bytes, expected: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(HEAD + rows)
    with pytest.raises(CorpusError, match=rf"x\.csv.*{expected}"):
        read_release(path)


def test_a_duplicate_column_is_refused(tmp_path: Path) -> None:
    twice = '"labels": "alert_past", "labels": "none"'
    table = pa.table([["none"], [0], ["User: a"], ["none"]], ["labels", *COLUMNS])
    pq.write_table(table, tmp_path / "x.parquet")
    files = {
        "x.csv": "labels,turn_id,text,labels\nalert_past,0,User: a,none\n",
        "x.json": f'[{{"turn_id": 0, "text": "User: a", {twice}}}]',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    for name in ("x.parquet", *files):
        with pytest.raises(CorpusError, match=r"labels'? appears twice"):
            read_release(tmp_path / name)


def test_a_json_row_without_labels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    first = {"turn_id": 0, "text": "User: a", "labels": "none"}
    path.write_text(json.dumps([first, {"turn_id": 1, "text": "User: b"}]), encoding="utf-8")
    with pytest.raises(CorpusError, match="row 1: column labels is missing"):
        read_release(path)
    path.write_text(json.dumps([first, first | {"turn_id": 1, "timing": "x"}]), encoding="utf-8")
    with pytest.raises(CorpusError, match="row 0: timing is None, expected a name"):
        read_release(path)


def test_parquet_files_may_use_other_types_for_texts_and_labels(tmp_path: Path) -> None:
    texts = pa.array(["User: Hi.", "User: Well."], pa.large_string()).dictionary_encode()
    cells = pa.array([[], ["alert_past"]], pa.list_(pa.string()))
    columns = {"turn_id": pa.array([0, 1]), "text": texts, "labels": cells}
    pq.write_table(pa.table(columns), tmp_path / "c.parquet")
    corpus = read_release(tmp_path / "c.parquet")
    assert [(t.text, t.mask) for t in corpus.turns] == [("Hi.", 0), ("Well.", 2)]


def test_damaged_files_are_refused_in_one_line(tmp_path: Path) -> None:
    text = pa.array([b"User: n\xe9"], pa.binary()).view(pa.string())
    columns = {"turn_id": pa.array([0]), "text": text, "labels": pa.array(["none"])}
    pq.write_table(pa.table(columns), tmp_path / "bytes.parquet")
    expected_corpus = in_all_formats()["table.parquet"]
    line = b'{"turn_id":0,"text":"User: a","labels":"none"}\n'
    cases: dict[str, tuple[str, bytes | None]] = {
        "absent.csv": ("no such file", None),
        "x.xlsx": ("unknown ending", b"x"),
        "head.csv": ("there are no rows", HEAD),
        "latin.csv": (r"line 2, byte 10 \(e9\) is", HEAD + "0,User: né,none\n".encode("latin-1")),
        "bytes.parquet": ("byte .* is not UTF-8", None),
        "cut.parquet": ("not a complete parquet", expected_corpus[: len(expected_corpus) // 2]),
        "columns.csv": ("column labels is missing; found turn_id, text", b"turn_id,text\n0,a\n"),
        "x.json": ("not JSON .* line 1 column 4", b"[1,"),
        "x.jsonl": (r"row 1: not JSON .*\(Expecting ':'.*cut off", line + b'{"turn_id"\n'),
        "list.jsonl": ("expected an object", b"[1]\n"),
        "deep.json": (r"not JSON that can be read \(nested", b"[" * 200_000),
        "digits.csv": ("row 0: turn_id is '9999", HEAD + b"9" * 400 + b",User: a,none\n"),
        "....csv": ("can't be a corpus' name", HEAD + b"0,User: a,none\n"),
    }
    for name, (expected, content) in cases.items():
        if content is not None:
            (tmp_path / name).write_bytes(content)
        with pytest.raises(CorpusError, match=expected) as caught:
            read_release(tmp_path / name)
        assert name in str(caught.value)
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("name", ["test.parquet", "meta.parquet"])
def test_a_changed_bit_is_detected(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("test.parquet", "meta.parquet", "SHA256SUMS"):
        shutil.copy(paths.SURROGATE / file, tmp_path)
    monkeypatch.setattr(paths, "SURROGATE", tmp_path)
    content = bytearray((tmp_path / name).read_bytes())
    content[len(content) // 2] ^= 1
    (tmp_path / name).write_bytes(content)
    with pytest.raises(CorpusError, match="its checksum is not the one in SHA256SUMS"):
        load_corpus("surrogate")
