"""Answers of stored runs as data, against the lines of their journals."""

from __future__ import annotations

import json

import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection.stored_answers import stored_answers, stored_records
from cradle_lib.errors import RegistryError

from .dialogues import make_corpus

SERVED = ["smollm2-135m-openai", "smollm2-135m-anthropic"]


def test_each_line_of_a_journal_is_a_row() -> None:
    frame = stored_answers(load_corpus(), SERVED)
    lines = []
    for model in SERVED:
        path = paths.SHIPPED_RUNS / "surrogate-test" / f"{model}.jsonl"
        _, *answers = path.read_text(encoding="utf-8").splitlines()
        lines += [json.loads(line) for line in answers]
    assert len(frame) == len(lines)
    for column in ("dialogue", "turn", "answer", "outcome", "tokens_in", "tokens_cached"):
        assert frame[column].tolist() == [line[column] for line in lines], column
    assert frame["seconds"].tolist() == [line["seconds"] for line in lines]
    assert frame["system"].nunique() == 2
    assert (
        frame.groupby("system", sort=False)["question"].nunique().tolist() == [len(lines) // 2] * 2
    )
    assert frame["tokens_written"].isna().all()
    assert str(frame["tokens_in"].dtype) == "Int64"


def test_models_that_were_not_run_leave_no_rows() -> None:
    corpus = make_corpus([[("User", "Hello.", "none")]])
    frame = stored_answers(corpus, SERVED)
    assert frame.empty
    assert frame.columns.tolist() == stored_answers(load_corpus(), SERVED[:1]).columns.tolist()
    with pytest.raises(RegistryError):
        stored_answers(corpus, ["absent"])


def test_a_journal_may_be_named_by_its_path() -> None:
    path = f"data/runs/surrogate-test/{SERVED[0]}.jsonl"
    named, found = (stored_answers(load_corpus(), [name]) for name in (SERVED[0], path))
    assert set(found["run"]) == {path}
    assert found.drop(columns="run").equals(named.drop(columns="run"))
    assert stored_answers(load_corpus(), ["data/runs/absent.jsonl"]).empty


def test_records_stand_side_by_side() -> None:
    frame = stored_records(load_corpus(), [*SERVED, "data/runs/absent.jsonl"])
    assert frame.columns.tolist() == SERVED
    for model in SERVED:
        path = paths.SHIPPED_RUNS / "surrogate-test" / f"{model}.jsonl"
        record = json.loads(path.read_text(encoding="utf-8").splitlines()[0])["record"]
        for field in ("name", "engine", "corpus"):
            assert frame.loc[field, model] == record[field]
