"""The page about models behind an API: comparison of runs."""

# ruff: noqa: F811
from __future__ import annotations

from pathlib import Path

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Answer

from ..detection.conftest import home  # noqa: F401
from ..detection.runs.test_costs import write
from .test_notebooks import show


def test_answers_are_compared_only_for_equal_prompts(home: Path, corpus: Corpus) -> None:
    tokens = {"tokens_in": 100, "tokens_cached": 90, "tokens_out": 1}
    write("smollm2-135m", corpus, [Answer("a", **tokens), Answer("none", **tokens), Answer("c")])
    # The second answers have different labels, so that the third prompts differ.
    write(
        "smollm2-135m-openai",
        corpus,
        [Answer("a", **tokens), Answer("alert_past", **tokens), Answer("c")],
    )
    *_, used, pairs, _ = show("run-a-model", {"models": ["keyword"]}, corpus)
    # Of 3 turns, 2 have equal prompts. Both of these have equal token counts, and one has equal
    # text and labels.
    [row] = [[str(cell) for cell in row] for row in pairs.rows]
    assert row[1:] == ["3", "2", "100.0", "50.0", "50.0"]
    assert "llama.cpp" in row[0]
    assert [[str(cell) for cell in row[1:5]] for row in used.rows] == [
        ["1", "3", "200", "90.0"]
    ] * 2
