"""What was answered is never lost, doubled or mixed."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Answer, Journal, Model, Outcome, Prediction, Prompt, read_journal
from cradle_lib.detection import run as asking
from cradle_lib.detection.engine import Sequential
from cradle_lib.detection.journal import read_answers, to_bytes
from cradle_lib.detection.run import run
from cradle_lib.errors import JournalError
from cradle_lib.labels import format_mask
from cradle_lib.record import Record


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


def make_prediction(turn: int = 0, **changes: Any) -> Prediction:
    fields: dict[str, Any] = {"key": f"k{turn}", "answer": "none", "mask": 0} | changes
    return Prediction(dialogue="d0000", turn=turn, outcome=Outcome.OK, **fields)


class Scripted(Sequential):
    """Answers by the length of the prompt, so that its own earlier tags matter."""

    def reply(self, prompt: Prompt) -> Answer:
        texts = ("none", "alert_ongoing", "something else", "confirm_SH_past; confirm_DV_past")
        return Answer(texts[len(prompt.text) % len(texts)])


def test_a_run_that_ended_anywhere_goes_on_to_the_journal_of_an_uninterrupted_one(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asking, "make_engine", lambda *_: Scripted())
    monkeypatch.setattr(asking, "code_of", lambda _: None)
    path = run(always_none, corpus, out=tmp_path / "run.jsonl")
    record, answers = read_journal(path)
    whole = [replace(prediction, seconds=0.0) for prediction in answers]
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + len(whole)
    for number, line in enumerate(lines):
        for torn in (b"", line[: len(line) // 2], line[:-1]):
            path.write_bytes(b"".join(lines[:number]) + torn)
            run(always_none, corpus, out=path)
            again, answers = read_journal(path)
            assert again.settings == record.settings
            assert [replace(prediction, seconds=0.0) for prediction in answers] == whole
            assert path.read_bytes().count(b"\n") == len(lines)


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
        replace(make_prediction(2, answer="?", reason="because"), outcome=Outcome.REFUSED),
        make_prediction(
            4, tokens_written=0, served="m fp", choices=[{"none": -0.5, "alert_": -math.inf}]
        ),
    ]
    with Journal.open(path, record) as journal:
        for number, prediction in enumerate(reversed(made), start=2):
            journal.append(prediction)
            # A process that is killed now has not lost it.
            assert path.read_bytes().count(b"\n") == number
    assert read_journal(path) == (record, made)
    # The file can be read without this library: labels are words.
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[3]["labels"] == "alert_ongoing; confirm_SI_passive_ongoing"
    # Fields that most engines do not use are stored only if they are set.
    optional = {"tokens_written", "served", "choices"}
    assert lines[1].keys() - optional == lines[2].keys() == lines[3].keys()
    # What older versions wrote was paid for, too.
    lines[1]["dropped"] = ["temperature"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_journal(path) == (record, made)


def test_the_later_line_of_a_turn_counts_and_all_are_read_for_the_costs(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        for mask in (1, 2):
            journal.append(make_prediction(mask=mask, answer=format_mask(mask)))
    assert [p.mask for p in read_journal(path)[1]] == [2]
    assert [p.mask for p in read_answers(path)[1]] == [1, 2]


def test_other_settings_are_refused_and_named_unless_every_question_failed(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    other = make_record(decoding={"max_new_tokens": 8}, prompt_hash="1" * 16)
    with Journal.open(path, make_record()) as journal:
        journal.append(replace(make_prediction(), outcome=Outcome.FAILED, answer=""))
    with Journal.open(path, other) as journal:
        journal.append(make_prediction())
    assert read_journal(path) == (other, [make_prediction()])
    before = path.read_bytes()
    message = r"prompt_hash is .*decoding is .*'max_new_tokens': 8"
    with pytest.raises(JournalError, match=message), Journal.open(path, make_record()):
        pass
    assert path.read_bytes() == before


def test_other_circumstances_add_a_header_and_the_last_one_counts(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        journal.append(make_prediction())
    with Journal.open(path, make_record(started="2020-01-01T00:00:00+00:00")):
        pass
    assert len(path.read_bytes().splitlines()) == 2
    with Journal.open(path, make_record(corpus_fingerprint="edited")):
        pass
    assert len(read_journal(path)[1]) == 1
    assert len(path.read_bytes().splitlines()) == 3
    assert read_journal(path)[0].corpus_fingerprint == "edited"


def test_two_writers_are_kept_apart(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with (
        Journal.open(path, make_record()),
        pytest.raises(JournalError, match="another process is writing"),
        Journal.open(path, make_record()),
    ):
        pass


def refused(path: Path, message: str) -> None:
    """A journal that is refused by readers and writers, and left as it is."""
    content = path.read_bytes()
    with pytest.raises(JournalError, match=message), Journal.open(path, make_record()):
        pass
    with pytest.raises(JournalError, match=message):
        read_journal(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"my notes, without a line break", "not the header of a journal"),
        (b"[1]\n", "line 1: the line can't be read .not a JSON object"),
        (b'{"a": 1}\n', "not the header of a journal"),
        (b'{"record": {"model": "m"}, "identity": "x"}\n', "line 1: .*name: Field required"),
    ],
)
def test_a_file_that_is_no_journal_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, message: str
) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    refused(path, message)
    # The start of a header, torn by a crash, is one.
    for torn in (b"", b'{"rec', b'{"record": {"model": "m", "na'):
        path.write_bytes(torn)
        with Journal.open(path, make_record()):
            pass
        assert read_journal(path)[1] == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('"labels": "alert_ongoing"', '"labels": "confirm_XX_past"', "unknown label"),
        ('"labels": "alert_ongoing"', '"labels": "alert_past"', "reads as ok, alert_ongoing:"),
        ('"answer": "Alert_ongoing."', '"answer": "well"', "reads as unparsed, none:"),
        ('"outcome": "ok"', '"outcome": "fine"', "field outcome: Input should be"),
        ('"outcome": "ok"', '"outcome": "failed"', "failed, alert_ongoing, but"),
        ('"turn": 0', '"turn": -1', "greater than or equal to 0"),
        ('"key": ', '"colour": 1, "key": ', "field colour: Unexpected"),
        ('"labels": ', '"labels": "none", "labels": ', "'labels' appears twice"),
        # Every comparison with it is false, so that it would be no limit at all.
        ('"max_cost": 1.0', '"max_cost": NaN', "line 1: .*max_cost"),
        ('"max_new_tokens": 4', '"max_new_tokens": 5', "does not match its identity"),
    ],
)
def test_an_edited_line_is_named(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record(max_cost=1.0)) as journal:
        journal.append(make_prediction(answer="Alert_ongoing.", mask=1))
    assert [p.mask for p in read_journal(path)[1]] == [1]
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    refused(path, message)


def test_lines_of_two_runs_in_one_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    lines = [make_record(), make_prediction(), make_record(prompt_hash="1" * 16)]
    path.write_bytes(b"".join(map(to_bytes, lines)))
    refused(path, "line 3: .*the header of another run")


def test_what_is_no_file_is_one_clear_error(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"can't be read .*Name the file"):
        read_journal(tmp_path)
    with pytest.raises(JournalError, match="there is no journal"):
        read_journal(tmp_path / "absent.jsonl")
