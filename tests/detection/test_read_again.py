"""A journal that was read a moment ago is not parsed again, and what changed is never missed."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from cradle_lib.corpus import Corpus
from cradle_lib.detection import load_predictions, load_registry, predictions
from cradle_lib.detection.journal import read_journal
from cradle_lib.detection.run import run
from cradle_lib.errors import JournalError


@pytest.fixture
def journal(corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(predictions, "_READ", {})
    return run(load_registry()["keyword"], corpus, out=tmp_path)


@pytest.fixture
def parsed(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The files that were parsed."""
    seen: list[Path] = []

    def noting(path: Path) -> object:
        seen.append(path)
        return read_journal(path)

    monkeypatch.setattr(predictions, "read_journal", noting)
    return seen


def test_the_same_bytes_are_parsed_once(
    corpus: Corpus, journal: Path, parsed: list[Path], tmp_path: Path
) -> None:
    one = load_predictions(journal, corpus)
    copy = shutil.copy(journal, tmp_path / "copy.jsonl")
    for again in (load_predictions(journal, corpus), load_predictions(copy, corpus)):
        assert again.to_frame().equals(one.to_frame())
        assert again.record == one.record
    assert parsed == [journal]


def test_a_file_that_lost_a_line_is_read_anew(
    corpus: Corpus, journal: Path, parsed: list[Path]
) -> None:
    load_predictions(journal, corpus)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:-1]))
    turns = len(corpus.gold)
    with pytest.raises(JournalError, match=rf"answers {turns - 1} of {turns} user turns"):
        load_predictions(journal, corpus)
    assert parsed == [journal, journal]


def test_another_corpus_is_another_question(
    corpus: Corpus, journal: Path, parsed: list[Path]
) -> None:
    whole = load_predictions(journal, corpus)
    part = corpus.subset([1], "part")
    assert list(load_predictions(journal, part).masks) == list(whole.subset(part).masks)
    assert parsed == [journal, journal]


def test_the_same_texts_under_other_names_are_another_corpus(corpus: Corpus, journal: Path) -> None:
    load_predictions(journal, corpus)
    named = tuple(replace(dialogue, own_id=f"other-{dialogue.id}") for dialogue in corpus)
    other = Corpus(name=corpus.name, dialogues=named)
    assert other.fingerprint == corpus.fingerprint
    with pytest.raises(JournalError, match="none of its answers"):
        load_predictions(journal, other)


def test_what_grew_before_it_was_read_is_not_taken_for_what_it_was(
    corpus: Corpus, journal: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = journal.read_bytes()
    short = b"".join(whole.splitlines(keepends=True)[:-1])
    journal.write_bytes(short)

    def late(path: Path) -> object:
        path.write_bytes(whole)
        return read_journal(path)

    with monkeypatch.context() as patch:
        patch.setattr(predictions, "read_journal", late)
        assert len(load_predictions(journal, corpus).corpus) == len(corpus)
    journal.write_bytes(short)
    assert len(load_predictions(journal, corpus, partial=True).corpus) < len(corpus)


def test_the_oldest_are_forgotten(
    corpus: Corpus, journal: Path, parsed: list[Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(predictions, "_MOST_READ", 2)
    parts = [corpus.subset([i], f"part {i}") for i in range(3)]
    for part in (*parts, parts[2], parts[1], parts[0]):
        load_predictions(journal, part)
    assert len(parsed) == 4
