"""Two journals side by side: found, missing, equal and different."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Journal, Outcome, Prediction
from cradle_lib.errors import RegistryError
from cradle_lib.labels import BITS
from cradle_lib.record import Record
from cradle_lib.reporting.flip_tables import flip_tables, journal_pair
from cradle_lib.reporting.notice import Notice
from cradle_lib.reporting.tables import Table

ANSWERS = [
    Prediction(f"d{d:04}", t, f"{d}{t}", "none", 0, Outcome.OK, None, 100, 80, 2, 0.5)
    for d in range(10)
    for t in range(3)
]


def write(path: Path, predictions: list[Prediction], **record: object) -> Path:
    fields = {
        "model": "m", "name": "M", "group": "embedded", "engine": "wave", "prompt": "turn",
        "prompt_hash": "0" * 16, "decoding": {"max_new_tokens": 4}, "corpus": "c",
        "corpus_fingerprint": "f" * 12,
    }  # fmt: skip
    with Journal.open(path, Record.create(**{**fields, **record})) as journal:
        for prediction in predictions:
            journal.append(prediction)
    return path


def tables(first: Path, second: Path, corpus: Corpus) -> list[Table]:
    shown = flip_tables(journal_pair(str(first), str(second), corpus))
    assert all(isinstance(table, Table) for table in shown)
    return shown  # type: ignore[return-value]


def cells(table: Table) -> dict[str, list[str]]:
    return {row.cells[0].text: [cell.text for cell in row.cells[1:]] for row in table.rows}


def test_runs_that_agree_have_no_flip_and_an_upper_bound(tmp_path: Path, corpus: Corpus) -> None:
    slow = [replace(p, tokens_cached=0, seconds=2.0, answer="none\nand") for p in ANSWERS]
    agreement, usage, records = tables(
        write(tmp_path / "a.jsonl", ANSWERS),
        write(tmp_path / "b.jsonl", slow, name="Slow", engine="reference"),
        corpus,
    )
    found = cells(agreement)
    assert found["One raw text is the beginning of the other"] == ["30", "30", "100.0"]
    assert found["Turns that flipped"] == ["0", "30", "0.00"]
    [row] = [row for row in agreement.rows if row.cells[0].text == "Dialogues with a flip"]
    # 1 - 0.05^(1/10) = 25.9 %.
    assert row.cells[3].interval == pytest.approx((0, 25.887), abs=0.01)
    spent = cells(usage)
    assert spent["M (wave engine)"] == ["3,000", "600", "60", "0.500"]
    assert spent["Slow (reference engine)"] == ["3,000", "3,000", "60", "2.000"]
    sides = cells(records)
    assert sides["engine"] == ["wave", "reference", "differs"]
    assert sides["prompt"] == ["turn", "turn", "same"]
    assert any(name.startswith("package ") for name in sides)


def test_a_flip_is_counted_in_turns_and_dialogues(tmp_path: Path, corpus: Corpus) -> None:
    other = list(ANSWERS)
    other[4] = replace(other[4], answer="alert_past", mask=BITS["alert_past"])
    other[5] = replace(other[5], key="x", answer="?", outcome=Outcome.UNPARSED)
    found = cells(
        tables(write(tmp_path / "a.jsonl", ANSWERS), write(tmp_path / "b.jsonl", other), corpus)[0]
    )
    assert found["Turns that flipped"] == ["2", "30", "6.67"]
    assert found["Dialogues with a flip"] == ["1", "10", "10.00"]
    assert found["Asked the same question"][0] == "29"
    assert found["Neither answer can be read"] == ["0", "30", "0.0"]


def test_turns_that_agree_because_neither_can_be_read_are_counted(
    tmp_path: Path, corpus: Corpus
) -> None:
    unread = {"outcome": Outcome.UNPARSED, "answer": "Hm.", "mask": 0}
    one = [replace(p, **(unread if i < 12 else {})) for i, p in enumerate(ANSWERS)]
    two = [replace(p, **(unread if i >= 9 else {})) for i, p in enumerate(ANSWERS)]
    found = cells(
        tables(write(tmp_path / "a.jsonl", one), write(tmp_path / "b.jsonl", two), corpus)[0]
    )
    assert found["Neither answer can be read"] == ["3", "30", "10.0"]


def test_a_run_that_does_not_count_tokens_has_dashes(tmp_path: Path, corpus: Corpus) -> None:
    silent = [replace(p, tokens_in=None, tokens_cached=None, tokens_out=None) for p in ANSWERS]
    usage = tables(
        write(tmp_path / "a.jsonl", ANSWERS), write(tmp_path / "b.jsonl", silent), corpus
    )
    assert cells(usage[1])["M (wave engine)"][:3] == ["–"] * 3  # noqa: RUF001


def test_a_missing_journal_is_named_on_the_page(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = write(tmp_path / "a.jsonl", ANSWERS)
    [notice] = flip_tables(journal_pair(str(there), str(tmp_path / "no<b>.jsonl"), corpus))
    assert isinstance(notice, Notice)
    assert "no<b>.jsonl" in notice.message
    assert "a.jsonl" not in notice.message
    assert "no&lt;b&gt;.jsonl" in notice._repr_html_()
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    by_name = journal_pair("keyword", "tfidf", corpus)
    assert isinstance(by_name, Notice)
    assert f"{corpus.name}/keyword.jsonl" in by_name.message
    assert f"{corpus.name}/tfidf.jsonl" in by_name.message
    assert "`cradle infer --model keyword` and `cradle infer --model tfidf`" in by_name.message
    with pytest.raises(RegistryError, match="Did you mean"):
        journal_pair("keywrod", "tfidf", corpus)


def test_models_are_found_by_name_where_they_lie(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path / "runs")
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    write(tmp_path / "runs" / corpus.name / "keyword.jsonl", ANSWERS, model="keyword")
    write(tmp_path / "shipped" / corpus.name / "tfidf.jsonl", ANSWERS[:9], model="tfidf")
    pair = journal_pair("keyword", "tfidf", corpus)
    assert not isinstance(pair, Notice)
    assert [run.record.model for run in pair] == ["keyword", "tfidf"]
    assert [len(run.predictions) for run in pair] == [30, 9]
