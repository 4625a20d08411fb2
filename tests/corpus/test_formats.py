"""A file that lost something is refused, wherever it was cut; nothing is filled up in silence."""

from __future__ import annotations

import csv
import io
import json
import resource
import shutil
from pathlib import Path

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus, read_release
from cradle_lib.corpus.collect import write_release
from cradle_lib.corpus.release import build_corpus
from cradle_lib.errors import CorpusError
from cradle_lib.labels import parse

COLUMNS = ("turn_id", "text", "labels")
ROWS: list[tuple[int, str, str]] = [
    (0, 'User: I said "well", and\nleft, é, twice.', "alert_ongoing"),
    (1, "- once more,\r\nand again", "alert_ongoing; confirm_SH_ongoing"),
    (2, "Listener: Thank you.", "none"),
    (0, "User: None", "confirm_DV_past"),
    (1, "User: Hm.", "alert_past; confirm_DV_ongoing; confirm_DV_past"),
]
ABOUT = [("a-1", "S2", "early")] * 3 + [("b 2", "S1", "late")] * 2
HEAD = b"turn_id,text,labels\n"


def as_csv(order: tuple[str, ...], end: str = "\n", quoting: int = csv.QUOTE_MINIMAL) -> bytes:
    records = [
        dict(zip((*COLUMNS, "dialogue_id", "scenario", "timing"), (*row, *about), strict=True))
        for row, about in zip(ROWS, ABOUT, strict=True)
    ]
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, order, extrasaction="ignore", lineterminator=end, quoting=quoting)
    writer.writeheader()
    writer.writerows(records)
    return text.getvalue().encode()


def in_all_formats() -> dict[str, bytes]:
    records = [dict(zip(COLUMNS, row, strict=True)) for row in ROWS]
    parquet = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(records), parquet)
    return {
        "lines.csv": as_csv(COLUMNS),
        "windows.csv": as_csv(COLUMNS, "\r\n"),
        "quoted.csv": as_csv(COLUMNS, quoting=csv.QUOTE_ALL),
        "text-last.csv": as_csv(("labels", "turn_id", "text")),
        "about.csv": as_csv(("dialogue_id", *COLUMNS, "scenario", "timing")),
        "bom.csv": b"\xef\xbb\xbf" + as_csv(COLUMNS),
        "records.json": json.dumps(records).encode(),
        "lines.jsonl": "".join(json.dumps(r, ensure_ascii=False) + "\n" for r in records).encode(),
        "open.ndjson": "\n".join(map(json.dumps, records)).encode(),
        "table.parquet": parquet.getvalue(),
    }


def read_by_pandas(content: bytes) -> Corpus:
    """Builds a corpus from the rows that pandas finds in a CSV file."""
    table = pd.read_csv(io.BytesIO(content), dtype=str, keep_default_na=False)
    rows = zip(table["turn_id"], table["text"], table["labels"], strict=True)
    return build_corpus([(int(turn), text, labels) for turn, text, labels in rows], "x")


def cells(corpus: Corpus) -> list[tuple[int, str, int]]:
    return [(turn.turn_id, turn.text, turn.mask) for turn in corpus.turns]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize(
    ("order", "last", "labels"),
    [
        (COLUMNS, ("1", "User: b", "alert_past"), ["alert_ongoing", "alert_past"]),
        (COLUMNS, ("1", "User: b", ""), ["alert_ongoing", "none"]),
        (COLUMNS, ("1", "User: b", '"alert_past"'), ["alert_ongoing", "alert_past"]),
        (
            ("labels", "turn_id", "text"),
            ("none", "1", '"User: b{end}c"'),
            ["alert_ongoing", "none"],
        ),
    ],
)
def test_the_last_line_needs_no_line_break(
    tmp_path: Path,
    end: str,
    mark: bytes,
    order: tuple[str, ...],
    last: tuple[str, ...],
    labels: list[str],
) -> None:
    first = {"turn_id": "0", "text": "User: a", "labels": "alert_ongoing"}
    lines = (order, [first[name] for name in order], [cell.format(end=end) for cell in last])
    content = mark + end.join(map(",".join, lines)).encode()
    path = tmp_path / "x.csv"
    for tail in ("", end, end * 3):
        path.write_bytes(content + tail.encode())
        found = read_release(path)
        assert cells(found) == cells(read_by_pandas(content))
        assert [turn.mask for turn in found.turns] == [parse(one) for one in labels]


@pytest.mark.parametrize("name", in_all_formats())
def test_a_file_cut_anywhere_is_refused_or_gives_whole_rows_only(tmp_path: Path, name: str) -> None:
    content = in_all_formats()[name]
    path = tmp_path / name
    path.write_bytes(content)
    whole = read_release(path)
    assert [(t.turn_id, t.mask) for t in whole.turns] == [
        (t.turn_id, t.mask) for t in build_corpus(ROWS, "x").turns
    ]
    loaded = 0
    for end in range(len(content)):
        path.write_bytes(content[:end])
        try:
            part = read_release(path)
        except CorpusError:
            continue
        loaded += 1
        complete = len(part.turns)
        if name.endswith(".csv"):
            # A legal file whose last line has no line break: its last field may have been longer.
            assert cells(part) == cells(read_by_pandas(content[:end])), content[:end]
            complete -= 1
        assert part.turns[:complete] == whole.turns[:complete], content[:end]
        for cut, full in zip(part.dialogues[:-1], whole.dialogues, strict=False):
            assert cut.id == full.id
        for column, values in part.meta.items():
            assert values[:-1] == whole.meta[column][: len(values) - 1]
    # Where rows have ends of their own, a file that stops at one of them can't be told from a
    # shorter file; in the other formats every cut shows.
    assert (loaded > 0) is name.endswith((".csv", "jsonl", "ndjson"))


@pytest.mark.parametrize(
    ("rows", "expected"),
    [
        # The comma is inside the text: `alert_ongoing` would be the labels, and a label lost.
        (
            b"0,User: well,alert_ongoing,confirm_SH_ongoing\n",
            "row 0: line 2 has 4 fields, expected 3",
        ),
        (b"0,User: a,none\n\n1,User: b\n", "row 1: line 4 has 2 fields, expected 3"),
        (b'0,"User: a\nb",none\n1,"User: c\nd"\n', "row 1: line 4 has 2 fields"),
        (b'0,User: a,none\n1,"User: b,none\n', "row 1: not a readable CSV.* starts on line 3"),
        (b'0,"User: a" b,none\n', "row 0: not a readable CSV.* starts on line 2"),
        (b"0,User: a,none\n1,User: b", "row 1: line 3 has 2 fields.*may have been cut off"),
        (b"0,User: a,none\r1", "row 1: line 3 has 1 fields.*may have been cut off"),
        (b'0,User: a,none\n1,User: b,"alert_past', "row 1: not a readable CSV.* starts on line 3"),
    ],
)
def test_a_row_without_exactly_the_headers_fields_is_named(
    tmp_path: Path, rows: bytes, expected: str
) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(HEAD + rows)
    with pytest.raises(CorpusError, match=rf"x\.csv.*{expected}"):
        read_release(path)


def test_fields_that_do_not_matter_count_too(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b",turn_id,text,labels,\n0,0,User: a,none,\n1,1,User: b,alert_past,\n")
    assert [turn.mask for turn in read_release(path).turns] == [0, 2]
    path.write_bytes(b",turn_id,text,labels,\n0,0,User: a,none,\n1,1,User: b,alert_past\n")
    with pytest.raises(CorpusError, match="row 1: line 3 has 4 fields, expected 5"):
        read_release(path)


def test_names_that_stand_twice_are_refused(tmp_path: Path) -> None:
    twice = '"labels": "alert_past", "labels": "none"'
    table = pa.table([["none"], [0], ["User: a"], ["none"]], ["labels", *COLUMNS])
    pq.write_table(table, tmp_path / "x.parquet")
    files = {
        "x.csv": "labels,turn_id,text,labels\nalert_past,0,User: a,none\n",
        "x.json": f'[{{"turn_id": 0, "text": "User: a", {twice}}}]',
        "x.jsonl": f'{{"turn_id": 0, "text": "User: a", {twice}}}\n',
    }
    for name, content in files.items():
        (tmp_path / name).write_text(content, encoding="utf-8")
    for name in ("x.parquet", *files):
        with pytest.raises(CorpusError, match=r"labels'? appears twice"):
            read_release(tmp_path / name)


def as_parquet(path: Path, **columns: pa.Array) -> Path:
    """Writes two turns, with other columns; equal cells take next to no place in the file."""
    usual = {
        "turn_id": pa.array([0, 1]),
        "text": pa.array(["User: Hi.", "User: Well."]),
        "labels": pa.array(["none", "alert_past"]),
    }
    pq.write_table(pa.table(usual | columns), path, compression="zstd")
    return path


def repeated(cell: str, times: int) -> pa.Array:
    return pa.DictionaryArray.from_arrays(pa.array([0] * times, pa.int32()), pa.array([cell]))


def test_a_column_without_a_meaning_is_not_unpacked(tmp_path: Path) -> None:
    times = 40_000  # Of 100 kB: 4 GB, in a file of 2 kB.
    path = as_parquet(
        tmp_path / "c.parquet",
        turn_id=pa.array([0, 1] * (times // 2)),
        text=repeated("User: Hi.", times),
        labels=repeated("none", times),
        other=repeated("x" * 100_000, times),
    )
    assert path.stat().st_size < 5_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    assert len(read_release(path).turns) == times
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000


@pytest.mark.parametrize("size", [90_000, 5_000_000])
def test_a_parquet_file_that_unpacks_to_too_much_is_refused(tmp_path: Path, size: int) -> None:
    path = as_parquet(
        tmp_path / "c.parquet",
        turn_id=pa.array([0, 1] * 2_000),
        text=repeated("User: " + "x" * size, 4_000),
        labels=repeated("none", 4_000),
    )
    assert path.stat().st_size < 50_000
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(CorpusError, match="more than 256 MB of cells"):
        read_release(path)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 1_000_000


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        (pa.large_string(), pa.array(["none", "alert_past"], pa.large_string())),
        (pa.string(), pa.array([[], ["alert_past"]], pa.list_(pa.string()))),
        (pa.string(), pa.array(["none", "alert_past"]).dictionary_encode()),
    ],
    ids=["large", "lists", "dictionary"],
)
def test_whatever_way_parquet_stores_texts_and_labels(
    tmp_path: Path, text: pa.DataType, cells: pa.Array
) -> None:
    texts = pa.array(["User: Hi.", "User: Well."], text)
    corpus = read_release(as_parquet(tmp_path / "c.parquet", text=texts, labels=cells))
    assert [(t.text, t.mask) for t in corpus.turns] == [("Hi.", 0), ("Well.", 2)]


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        ("turn_id", pa.array([2**62, 1], pa.timestamp("ms"))),
        ("labels", pa.array(["[" * 100_000 + "]", "none"])),
        ("labels", pa.array(["x" * 5_000_000, "none"])),
        ("labels", pa.array(["9" * 5_000, "[" + "9" * 5_000 + "]"])),
    ],
    ids=["date", "nested", "endless", "digits"],
)
def test_a_cell_that_cant_be_one_is_one_clear_error(
    tmp_path: Path, name: str, cells: pa.Array
) -> None:
    with pytest.raises(CorpusError) as caught:
        read_release(as_parquet(tmp_path / "c.parquet", **{name: cells}))
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 600


@pytest.mark.parametrize("name", ["....csv", "...csv", "a\x1b[2Jb.csv"])
def test_a_name_that_is_no_folder_s_is_refused(tmp_path: Path, name: str) -> None:
    # Runs over `...csv` would lie in a folder `..`, which is the one above.
    path = tmp_path / name
    path.write_bytes(as_csv(COLUMNS))
    with pytest.raises(CorpusError, match=r"can't be the name of a corpus\. Rename the file"):
        read_release(path)


def test_links_in_a_circle_are_no_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").symlink_to(tmp_path / "b.csv")
    (tmp_path / "b.csv").symlink_to(tmp_path / "a.csv")
    with pytest.raises(CorpusError, match=r"a\.csv: no such file"):
        load_corpus(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["test.parquet", "meta.parquet"])
def test_a_changed_bit_of_a_shipped_file_is_noticed(
    tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in ("test.parquet", "meta.parquet", "SHA256SUMS"):
        shutil.copy(paths.SURROGATE / file, tmp_path)
    monkeypatch.setattr(paths, "SURROGATE", tmp_path)
    assert len(load_corpus("surrogate")) == 600
    content = bytearray((tmp_path / name).read_bytes())
    unnoticed = 0
    for place in range(100, len(content) - 100, len(content) // 12):
        changed = bytearray(content)
        changed[place] ^= 1
        (tmp_path / name).write_bytes(changed)
        with pytest.raises(CorpusError) as caught:
            load_corpus("surrogate")
        unnoticed += "checksum" in str(caught.value)
    assert unnoticed > 0, "no other check noticed any of them"
    (tmp_path / name).write_bytes(content)
    (tmp_path / "SHA256SUMS").unlink()
    with pytest.raises(CorpusError, match="its checksum is not the one in SHA256SUMS"):
        load_corpus("surrogate")


def test_a_column_of_some_rows_only_is_refused(tmp_path: Path) -> None:
    first = {"turn_id": 0, "text": "User: a", "labels": "none"}
    for one, two, expected in (
        (first, first | {"scenario": "S1"}, "row 1: scenario .* in this one, not in row 0"),
        (first | {"timing": "late"}, first, "row 1: timing .* not in this one, in row 0"),
    ):
        path = tmp_path / "x.json"
        path.write_text(json.dumps([one, two]), encoding="utf-8")
        with pytest.raises(CorpusError, match=expected):
            read_release(path)


names = st.text(
    st.characters(categories=("L", "N", "P", "S", "Zs"), exclude_characters='<>"`$\\|*[]{}~^'),
    min_size=1,
    max_size=20,
).filter(lambda n: n.isprintable() and n[0].isalnum() and n == n.strip())
# No speaker can begin with a hyphen; what the csv module calls a line end is part of the text.
said = st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20).map(
    lambda text: f"-{text}"
)


@given(
    st.lists(st.lists(st.tuples(said, st.integers(0, 0xFFFF)), min_size=1), min_size=1, max_size=4),
    st.lists(st.tuples(names, names, names), min_size=4, max_size=4, unique_by=lambda n: n[0]),
    st.sampled_from([".csv", ".parquet"]),
)
def test_what_is_written_is_read_back_with_ids_scenarios_and_timings(
    tmp_path_factory: pytest.TempPathFactory,
    content: list[list[tuple[str, int]]],
    about: list[tuple[str, str, str]],
    ending: str,
) -> None:
    from cradle_lib.labels import format_mask

    rows = [
        (i, f"User: {text}" if i % 2 == 0 else text, format_mask(mask))
        for turns in content
        for i, (text, mask) in enumerate(turns)
    ]
    per_row = [about[d] for d, turns in enumerate(content) for _ in turns]
    columns = dict(
        zip(("dialogue_id", "scenario", "timing"), zip(*per_row, strict=True), strict=True)
    )
    corpus = build_corpus(rows, "x", about=columns)
    path = tmp_path_factory.mktemp("written") / f"x{ending}"
    write_release(corpus, path)
    again = read_release(path)
    assert [d.id for d in again] == [name for name, _, _ in about[: len(content)]]
    assert again.meta == corpus.meta
    assert again.meta["timing"] == [timing for _, _, timing in about[: len(content)]]
    assert again.turns == corpus.turns


@pytest.mark.parametrize("ending", [".csv", ".parquet"])
def test_half_a_character_is_named_and_nothing_is_written(tmp_path: Path, ending: str) -> None:
    corpus = build_corpus([(0, "User: a", "none"), (1, "User: \ud800", "none")], "x")
    with pytest.raises(CorpusError, match="row 1: the text holds half a character"):
        write_release(corpus, tmp_path / f"x{ending}")
    assert not list(tmp_path.iterdir())


def test_a_corpus_without_ids_of_its_own_is_written_in_the_releases_columns(
    tmp_path: Path,
) -> None:
    write_release(build_corpus(ROWS, "x"), tmp_path / "x.parquet")
    assert pq.read_schema(tmp_path / "x.parquet").names == list(COLUMNS)
    surrogate = load_corpus("surrogate", "dev")
    write_release(surrogate, tmp_path / "dev.csv")
    again: Corpus = read_release(tmp_path / "dev.csv")
    assert (again.fingerprint, again.meta) == (surrogate.fingerprint, surrogate.meta)
