"""What runs used, beside their estimates and beside each other."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import cradle_lib
from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Answer, Journal, Session, journal_path
from cradle_lib.detection.registry import load_registry
from cradle_lib.prompts import load_template
from cradle_lib.record import Record
from cradle_lib.reporting.money_tables import usage_table
from cradle_lib.reporting.notice import Notice

from .test_notebooks import SOURCES, show


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    return tmp_path


def write(model: str, corpus: Corpus, answers: list[Answer]) -> None:
    """Writes a journal over the first dialogues, with these answers and then ``none``."""
    entry = load_registry()[model]
    template = load_template(entry.prompt)
    record = Record.create(
        model=entry.id,
        name=entry.name,
        group=entry.group,
        engine=entry.engine,
        prompt=entry.prompt,
        prompt_hash=template.hash,
        decoding={},
        corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )
    with Journal.open(journal_path(entry, corpus, out=paths.RUNS), record) as journal:
        session = Session(corpus.dialogues[0], template)
        for answer in answers:
            journal.append(session.answer(answer))


def cells(table: Any) -> dict[str, list[str]]:
    return {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in table.rows}


def test_a_run_of_a_provider_is_shown_beside_its_estimate(home: Path, corpus: Corpus) -> None:
    told = {"tokens_in": 1000, "tokens_cached": 600, "tokens_written": 300, "tokens_out": 10}
    write("claude-4.5-sonnet", corpus, [Answer("none", **told), Answer("none", **told), Answer("")])
    table = usage_table("claude-4.5-sonnet", corpus)
    assert table is not None
    shown = cells(table)
    assert shown["Calls"] == ["2", "2"]
    assert shown["Tokens of prompts"][0] == "2,000"
    # 600, 300 and 100 of 1000.
    assert shown["Read from a cache, percent"][0] == "60.0"
    assert shown["Written to a cache, percent"][0] == "30.0"
    assert shown["Neither, percent"][0] == "10.0"
    # 2 x (100 x 3 + 600 x 0.3 + 300 x 3.75 + 10 x 15) / 1e6 = 2 x 1755 / 1e6.
    assert shown["Cost"][0] == "$0.0035"
    assert any("1 calls of which the service did not say" in note for note in table.notes)


def test_a_run_that_counts_no_tokens_has_no_table(home: Path, corpus: Corpus) -> None:
    assert usage_table("keyword", corpus) is None
    write("keyword", corpus, [Answer("none")])
    assert usage_table("keyword", corpus) is None


def page(corpus: Corpus, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the page of API models shows for a corpus, without prices."""
    [path] = [path for path in SOURCES if path.stem == "api-models"]
    monkeypatch.setattr(cradle_lib, "load_corpus", lambda *_: corpus)
    return show(path, {"models": ["keyword"]}, monkeypatch)


def test_answers_are_compared_where_the_question_was_the_same(
    home: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = {"tokens_in": 100, "tokens_cached": 90, "tokens_out": 1}
    write("smollm2-135m", corpus, [Answer("a", **told), Answer("none", **told), Answer("c")])
    # The second answer has the same labels in another text; the third follows a tag that the
    # other run did not give, so that it answers another question.
    write(
        "smollm2-135m-openai",
        corpus,
        [Answer("a", **told), Answer("alert_past", **told), Answer("c")],
    )
    *_, used, pairs = page(corpus, monkeypatch)
    # Of 3 turns of both, 2 had the same question: both with 100 tokens, one text and one set of
    # labels the same.
    [row] = [[str(cell) for cell in row] for row in pairs.grid.rows]
    assert row[1:] == ["3", "2", "100.0", "50.0", "50.0"]
    assert "llama.cpp" in row[0]
    assert [[str(cell) for cell in row[1:5]] for row in used.grid.rows] == [
        ["1", "3", "200", "90.0"]
    ] * 2


def test_what_was_not_made_is_a_sentence(
    home: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = page(corpus, monkeypatch)
    told = [item.message for item in shown if isinstance(item, Notice)]
    assert [sentence.split(" ")[0] for sentence in told] == ["None", "None", "These", "These"]
    assert "not made over surrogate-test" in told[-1]
