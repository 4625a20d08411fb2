"""What was answered is never lost, doubled or mixed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.detection import Journal, Outcome, Prediction, read_journal
from cradle_lib.errors import JournalError
from cradle_lib.labels import format_mask
from cradle_lib.record import Record

SCRIPT = Path(__file__).with_name("killed_run.py")
TURNS = 16


def make_record(**changes: Any) -> Record:
    fields: dict[str, Any] = {
        "model": "m",
        "name": "M",
        "group": "baseline",
        "engine": "always-none",
        "prompt": "turn",
        "prompt_hash": "0" * 16,
        "decoding": {"max_new_tokens": 4},
        "corpus": "tiny",
        "corpus_fingerprint": "abc",
        "commit": "unknown",
        "dirty": False,
    }
    return Record.create(**(fields | changes))


def make_prediction(turn: int = 0, dialogue: str = "d0000", **changes: Any) -> Prediction:
    fields: dict[str, Any] = {"key": f"k{turn}", "answer": "none", "mask": 0} | changes
    return Prediction(dialogue=dialogue, turn=turn, outcome=Outcome.OK, **fields)


def start(folder: Path, place: str, **pipes: Any) -> subprocess.Popen[bytes]:
    environment = {**os.environ, "PYTHONPATH": str(SCRIPT.parents[2])}
    return subprocess.Popen([sys.executable, SCRIPT, folder, place], env=environment, **pipes)


def lines_of(path: Path) -> list[Any]:
    """The journal's lines without what differs between any two runs: times."""
    lines = [json.loads(line) for line in path.read_bytes().splitlines()]
    for line in lines:
        line.pop("seconds", None)
        line.get("record", {}).pop("started", None)
    return lines


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory: pytest.TempPathFactory) -> list[Any]:
    folder = tmp_path_factory.mktemp("whole")
    assert start(folder, "none").wait() == 0
    return lines_of(folder / "tiny" / "scripted.jsonl")


@pytest.mark.parametrize("kind", ["after", "torn"])
def test_a_run_killed_again_and_again_leaves_the_journal_of_an_uninterrupted_one(
    tmp_path: Path, uninterrupted: list[Any], kind: str
) -> None:
    assert len(uninterrupted) == 1 + TURNS
    path = tmp_path / "tiny" / "scripted.jsonl"
    answered = 0
    for more in (1, 3, 5):
        assert start(tmp_path, f"{kind}:{more}").wait() == -signal.SIGKILL
        answered += more
        content = path.read_bytes()
        assert content.count(b"\n") == 1 + answered
        assert content.endswith(b"\n") is (kind == "after")
    assert start(tmp_path, "none").wait() == 0
    assert lines_of(path) == uninterrupted


def test_a_kill_from_outside_loses_at_most_the_turn_in_flight(
    tmp_path: Path, uninterrupted: list[Any]
) -> None:
    path = tmp_path / "tiny" / "scripted.jsonl"
    done = 0
    for more in (2, 4):
        process = start(tmp_path, "wait", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        with process:
            assert process.stdin
            assert process.stdout
            process.stdin.write(b"." * more)
            process.stdin.flush()
            for _ in range(more):
                assert process.stdout.readline() == b"answered\n"
            process.kill()
        done += more
        assert lines_of(path) == uninterrupted[: 1 + done]
    assert start(tmp_path, "none").wait() == 0
    assert lines_of(path) == uninterrupted


def test_what_is_written_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    record = make_record()
    made = [
        make_prediction(
            0,
            mask=5,
            answer="alert_ongoing; confirm_SI_passive_ongoing\u2028Reason: b\n\r\x00\ud800 ü",
            tokens_in=7,
            seconds=0.25,
        ),
        Prediction("d0000", 2, "k", "?", 0, Outcome.REFUSED, "because", 1, 2, 3, 0.5),
        make_prediction(4, tokens_written=0, served="m fp", dropped=("seed", "temperature")),
    ]
    with Journal.open(path, record) as journal:
        for prediction in reversed(made):
            journal.append(prediction)
    assert read_journal(path) == (record, made)
    # The file can be read without this library: labels are words.
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[3]["labels"] == "alert_ongoing; confirm_SI_passive_ongoing"
    # Where there is nothing to say, nothing is stored: older journals have these fields only.
    told = {"tokens_written": 0, "served": "m fp", "dropped": ["seed", "temperature"]}
    assert {name: lines[1].pop(name) for name in told} == told
    assert lines[1].keys() == lines[2].keys() == lines[3].keys()


def test_the_later_line_of_a_turn_counts(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        for mask in (1, 2):
            journal.append(make_prediction(mask=mask, answer=format_mask(mask)))
        # A run never asks again for what it has just written, and need not hold it.
        assert journal.stored("d0000") == []
    assert [p.mask for p in read_journal(path)[1]] == [2]
    with Journal.open(path, make_record()) as journal:
        assert [p.mask for p in journal.stored("d0000")] == [2]
        assert journal.stored("d0001") == []


def test_a_journal_of_other_settings_is_refused_and_the_settings_are_named(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        journal.append(make_prediction())
    before = path.read_bytes()
    other = make_record(decoding={"max_new_tokens": 8}, prompt_hash="1" * 16)
    with pytest.raises(JournalError, match=r"prompt_hash is .*decoding is .*'max_new_tokens': 4"):
        Journal.open(path, other)
    assert path.read_bytes() == before


def test_other_circumstances_add_a_header_and_the_last_one_holds(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        journal.append(make_prediction())
    with Journal.open(path, make_record(started="2020-01-01T00:00:00+00:00")):
        pass
    assert len(path.read_bytes().splitlines()) == 2
    with Journal.open(path, make_record(corpus_fingerprint="edited")) as journal:
        assert len(journal.stored("d0000")) == 1
    assert len(path.read_bytes().splitlines()) == 3
    assert read_journal(path)[0].corpus_fingerprint == "edited"


def test_two_writers_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with (
        Journal.open(path, make_record()),
        pytest.raises(JournalError, match="another process is writing"),
    ):
        Journal.open(path, make_record())
    Journal.open(path, make_record()).close()


def test_a_torn_header_is_written_anew(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    for torn in (b"", b'{"rec', b'{"record": {"model": "m", "na'):
        path.write_bytes(torn)
        Journal.open(path, make_record()).close()
        assert read_journal(path)[1] == []


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"my notes, without a line break", "not the header of a journal"),
        (b"my notes\n", "line 1: the line is not JSON"),
        (b"[1]\n", "line 1: the line is not a JSON object"),
        (b'{"a": 1}\n', "not the header of a journal"),
        (b'{"record": {"model": "m"}, "identity": "x"}\n', "line 1: .*wrong"),
    ],
)
def test_a_file_that_is_no_journal_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    with pytest.raises(JournalError, match=message):
        Journal.open(path, make_record())
    assert path.read_bytes() == content
    with pytest.raises(JournalError, match=message):
        read_journal(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": "confirm_XX_past"}, "line 2: the line can't be read"),
        ({"outcome": "fine"}, "line 2: the line can't be read"),
        ({"outcome": "failed", "labels": "alert_past"}, "has labels although"),
        ({"turn": "two"}, "line 2: the line can't be read"),
        ({"dropped": 3}, "line 2: the line can't be read"),
        ({"extra": 1}, "can't be read: extra is 1. Extra inputs are not permitted"),
        ({"labels": 3}, "line 2: the line can't be read"),
        ({"turn": 1e400}, "turn is inf. Input should be a valid integer"),
        ({"turn": True}, "turn is True. Input should be a valid integer"),
        ({"turn": -1}, "turn is -1. Input should be greater than or equal to 0"),
        ({"dialogue": ["d0000"]}, r"dialogue is \['d0000'\]. Input should be a valid string"),
        ({"tokens_out": 10**60}, "tokens_out is 1000.*. Input should be less than"),
        ({"seconds": float("nan")}, "seconds is nan. Input should be less than"),
        (
            {"choices": [{"none": "likely"}]},
            "choices.0.none is 'likely'. Input should be a",
        ),
        ({"reason": {}}, "reason is {}. Input should be a valid string"),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, change: dict[str, Any], message: str) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        journal.append(make_prediction())
    header, line = path.read_text().splitlines()
    path.write_text(f"{header}\n{json.dumps(json.loads(line) | change)}\n")
    with pytest.raises(JournalError, match=message):
        read_journal(path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"labels": "alert_past"}, "line 2: .* ok, alert_past, .* reads as ok, alert_ongoing:"),
        ({"labels": "none"}, "line 2: .* ok, none, and its answer reads as ok, alert_ongoing:"),
        ({"answer": "none"}, "line 2: .* ok, alert_ongoing, and its answer reads as ok, none:"),
        ({"answer": "well"}, "line 2: .* and its answer reads as unparsed, none:"),
        ({"outcome": "unparsed", "labels": "none"}, "line 2: .* unparsed, none, .* reads as ok"),
        ({"answer": "well", "labels": "none"}, "line 2: .* ok, none, .* reads as unparsed"),
    ],
)
def test_labels_that_the_answer_does_not_say_are_refused(
    tmp_path: Path, change: dict[str, Any], message: str
) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        journal.append(make_prediction(answer="Alert_ongoing.", mask=1))
    assert [p.mask for p in read_journal(path)[1]] == [1]
    header, line = path.read_text().splitlines()
    edited = f"{header}\n{json.dumps(json.loads(line) | change)}\n"
    path.write_text(edited)
    with pytest.raises(JournalError, match=message):
        read_journal(path)
    with pytest.raises(JournalError, match=message):
        Journal.open(path, make_record())
    assert path.read_text() == edited


def test_a_field_that_stands_twice_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        journal.append(make_prediction())
    path.write_text(path.read_text().replace('"labels": ', '"labels": "alert_past", "labels": '))
    with pytest.raises(JournalError, match=r"line 2: .* not JSON \('labels' appears twice"):
        read_journal(path)


def test_a_device_or_a_pipe_is_no_journal(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.jsonl")
    (tmp_path / "zero.jsonl").symlink_to("/dev/zero")
    for name in ("pipe.jsonl", "zero.jsonl"):
        with pytest.raises(JournalError, match=r"can't be read .a device or a pipe, not a file"):
            read_journal(tmp_path / name)
        with pytest.raises(JournalError, match="can't be a journal, which is a file"):
            Journal.open(tmp_path / name, make_record())


def test_a_limit_of_dollars_that_is_no_number_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    Journal.open(path, make_record(max_cost=1.0)).close()
    # Every comparison with it is false, so that it would be no limit at all.
    path.write_text(path.read_text().replace('"max_cost": 1.0', '"max_cost": NaN'))
    with pytest.raises(JournalError, match=r"line 1: .* record whose max_cost is wrong"):
        read_journal(path)


def test_a_header_that_was_tampered_with_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    Journal.open(path, make_record()).close()
    path.write_text(path.read_text().replace('"max_new_tokens": 4', '"max_new_tokens": 5'))
    with pytest.raises(JournalError, match="does not match its identity"):
        read_journal(path)


def test_a_missing_journal_or_a_folder_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"can't be read \(.+\)\. Name the file of a journal\.$"):
        read_journal(tmp_path)
    with pytest.raises(JournalError, match="there is no journal"):
        read_journal(tmp_path / "absent.jsonl")
