"""Answers of stored runs as data frames, compared with the lines of their journals."""

from __future__ import annotations

import json

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection.runs.stored_answers import stored_answers, stored_records

SERVED = ["smollm2-135m-openai", "smollm2-135m-anthropic"]
ABSENT = "data/runs/absent.jsonl"


def test_each_line_of_a_journal_is_a_row_and_records_are_columns() -> None:
    corpus, journals = load_corpus(), [f"data/runs/surrogate-test/{name}.jsonl" for name in SERVED]
    frame = stored_answers(corpus, [*SERVED, ABSENT])
    records = stored_records(corpus, [*SERVED, ABSENT])
    lines = []
    for model, journal in zip(SERVED, journals, strict=True):
        header, *answers = (paths.ROOT / journal).read_text(encoding="utf-8").splitlines()
        lines += [json.loads(line) for line in answers]
        record = json.loads(header)["record"]
        assert records.loc[["name", "engine", "corpus"], model].tolist() == [
            record["name"], record["engine"], record["corpus"],
        ]  # fmt: skip
    assert records.columns.tolist() == SERVED
    for column in ("dialogue", "turn", "answer", "outcome", "tokens_in", "tokens_cached"):
        assert frame[column].tolist() == [line[column] for line in lines], column
    assert frame["seconds"].tolist() == [line["seconds"] for line in lines]
    assert frame["question"].nunique() >= len(lines) // 2
    assert str(frame["tokens_in"].dtype) == "Int64"
    # A journal may be named by its path.
    by_path = stored_answers(corpus, journals)
    assert set(by_path["run"]) == set(journals)
    assert by_path.drop(columns="run").equals(frame.drop(columns="run"))
