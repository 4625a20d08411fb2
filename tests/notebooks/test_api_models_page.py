"""The page of models behind an API: runs beside each other, and what was not made."""

# ruff: noqa: F811
from __future__ import annotations

from pathlib import Path

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Answer

from ..detection.api.test_costs import write
from ..detection.conftest import home  # noqa: F401
from .test_notebooks import show


def test_answers_are_compared_where_the_question_was_the_same(home: Path, corpus: Corpus) -> None:
    told = {"tokens_in": 100, "tokens_cached": 90, "tokens_out": 1}
    write("smollm2-135m", corpus, [Answer("a", **told), Answer("none", **told), Answer("c")])
    # The second answer has the same labels in another text; the third follows a tag that the
    # other run did not give, so that it answers another question.
    write(
        "smollm2-135m-openai",
        corpus,
        [Answer("a", **told), Answer("alert_past", **told), Answer("c")],
    )
    *_, used, pairs, _ = show("api-models", {"models": ["keyword"]}, corpus)
    # Of 3 turns of both, 2 had the same question: both with 100 tokens, one text and one set of
    # labels the same.
    [row] = [[str(cell) for cell in row] for row in pairs.rows]
    assert row[1:] == ["3", "2", "100.0", "50.0", "50.0"]
    assert "llama.cpp" in row[0]
    assert [[str(cell) for cell in row[1:5]] for row in used.rows] == [
        ["1", "3", "200", "90.0"]
    ] * 2
