"""Journals: answers are never lost, duplicated or mixed with those of other runs."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Answer, Journal, Model, Outcome, Prediction, Prompt, read_journal
from cradle_lib.detection.models.engine import Sequential
from cradle_lib.detection.runs import identity
from cradle_lib.detection.runs import run as run_module
from cradle_lib.detection.runs.journal import lock_journal, to_bytes
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import JournalError
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
    """Answers depend on the length of the prompt, and thereby on earlier tags."""

    def reply(self, prompt: Prompt) -> Answer:
        texts = ("none", "alert_ongoing", "something else", "confirm_SH_past; confirm_DV_past")
        return Answer(texts[len(prompt.text) % len(texts)])


def test_a_run_interrupted_anywhere_resumes_to_the_journal_of_an_uninterrupted_one(
    corpus: Corpus, always_none: Model, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "make_engine", lambda *_: Scripted())
    monkeypatch.setattr(identity, "code_of", lambda _: None)
    path = run(always_none, corpus, out=tmp_path / "run.jsonl")
    record, answers = read_journal(path)
    expected = [replace(prediction, seconds=0.0) for prediction in answers]
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 1 + len(expected)
    for number, line in enumerate(lines):
        for torn in (b"", line[: len(line) // 2], line[:-1]):
            path.write_bytes(b"".join(lines[:number]) + torn)
            run(always_none, corpus, out=path)
            again, answers = read_journal(path)
            assert again.settings == record.settings
            assert [replace(prediction, seconds=0.0) for prediction in answers] == expected
            assert path.read_bytes().count(b"\n") == len(lines)


def test_a_journal_survives_a_round_trip(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    record = make_record()
    text = "alert_ongoing; confirm_SI_passive_ongoing\u2028Reason: b\n\r\x00\ud800 ü"
    made = [
        make_prediction(0, mask=5, answer=text, tokens_in=7, seconds=0.25),
        replace(make_prediction(2, answer="?", reason="because"), outcome=Outcome.REFUSED),
        make_prediction(4, tokens_written=0, served="m fp", choices=[{"none": -0.5}]),
    ]
    with Journal.open(path, record) as journal:
        for number, prediction in enumerate(reversed(made), start=2):
            journal.append(prediction)
            # Each answer is flushed, so that a killed process does not lose it.
            assert path.read_bytes().count(b"\n") == number
    assert read_journal(path) == (record, made)
    # The file can be read without this library: labels are words.
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert lines[3]["labels"] == "alert_ongoing; confirm_SI_passive_ongoing"
    # Fields that most engines do not use are stored only if they are set.
    optional = {"tokens_written", "served", "choices"}
    assert lines[1].keys() - optional == lines[2].keys() == lines[3].keys()
    # Paid answers of older versions stay readable: they may have the field `dropped`.
    lines[1]["dropped"] = ["temperature"]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert read_journal(path) == (record, made)


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


def test_a_changed_corpus_adds_a_header_and_the_last_header_counts(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        journal.append(make_prediction())
    changes = {"started": "2020-01-01T00:00:00+00:00"}, {"corpus_fingerprint": "edited"}
    for lines, change in enumerate(changes, start=2):
        with Journal.open(path, make_record(**change)):
            pass
        assert len(path.read_bytes().splitlines()) == lines
    record, stored = read_journal(path)
    assert (record.corpus_fingerprint, len(stored)) == ("edited", 1)


def test_other_software_adds_a_header_before_its_first_answer_only(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record()) as journal:
        journal.append(make_prediction())
    before = path.read_bytes()
    with Journal.open(path, make_record(commit="1234", dirty=True)) as journal:
        assert path.read_bytes() == before
        journal.append(make_prediction(1))
        journal.append(make_prediction(2))
    lines = path.read_bytes().splitlines()
    assert [line.startswith(b'{"record"') for line in lines] == [True, False, True, False, False]
    assert read_journal(path)[0].commit == "1234"


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    with (
        lock_journal(path),
        pytest.raises(JournalError, match="another process is writing"),
        lock_journal(path),
    ):
        pass


def assert_refused(path: Path, message: str) -> None:
    """Asserts that a journal is refused for reading and writing, and is not changed."""
    content = path.read_bytes()
    with pytest.raises(JournalError, match=message), Journal.open(path, make_record()):
        pass
    with pytest.raises(JournalError, match=message) as error:
        read_journal(path)
    assert not re.search(r"[.;][.;)]|\?[.;]", str(error.value))
    assert path.read_bytes() == content


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"my notes, without a line break", "not the header of a journal"),
        (b"[1]\n", "line 1: the line can't be read .not a JSON object"),
        (b'{"record": {"model": "m"}, "identity": "x"}\n', "line 1: .*field `name` is missing"),
    ],
)
def test_other_files_are_refused_unchanged(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    assert_refused(path, message)
    # An incomplete header, left by a crash, is accepted as an empty journal.
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
        ('"outcome": "ok"', '"outcome": "failed"', "failed, alert_ongoing, but"),
        ('"key": ', '"colour": 1, "key": ', "unknown field `colour`"),
        ('"labels": ', '"labels": "none", "labels": ', "'labels' appears twice"),
        # Comparisons with NaN are false, so that it would not limit anything.
        ('"max_cost": 1.0', '"max_cost": NaN', "line 1: .*max_cost"),
        ('"max_new_tokens": 4', '"max_new_tokens": 5', "does not match its identity"),
    ],
)
def test_an_edited_line_is_refused(tmp_path: Path, old: str, new: str, message: str) -> None:
    path = tmp_path / "j.jsonl"
    with Journal.open(path, make_record(max_cost=1.0)) as journal:
        journal.append(make_prediction(answer="Alert_ongoing.", mask=1, choices=[{"none": -0.5}]))
    assert [p.mask for p in read_journal(path)[1]] == [1]
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    assert_refused(path, message)


def test_lines_of_two_runs_in_one_file_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "j.jsonl"
    lines = [make_record(), make_prediction(), make_record(prompt_hash="1" * 16)]
    path.write_bytes(b"".join(map(to_bytes, lines)))
    assert_refused(path, "line 3: .*the header of another run")
