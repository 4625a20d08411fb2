"""The journals made through llama.cpp's server, by two SDKs."""

from __future__ import annotations

import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import load_predictions, load_registry, read_journal

FOLDER = paths.SHIPPED_RUNS / "surrogate-test"
SERVED = ("smollm2-135m-openai", "smollm2-135m-anthropic")


@pytest.mark.parametrize("name", SERVED)
def test_a_served_run_covers_its_sample_and_has_the_local_runs_tokens(name: str) -> None:
    model = load_registry()[name]
    predictions = load_predictions(FOLDER / f"{name}.jsonl", load_corpus("surrogate"), partial=True)
    assert not predictions.record.dirty
    assert predictions.record.endpoint == model.base_url
    assert len(predictions.corpus) == len(predictions.record.dialogues or ()) == 20
    local = {(p.dialogue, p.turn): p for p in read_journal(FOLDER / "smollm2-135m.jsonl")[1]}
    answers = read_journal(FOLDER / f"{name}.jsonl")[1]
    for answer in answers:
        other = local[answer.dialogue, answer.turn]
        if answer.key == other.key:
            assert answer.tokens_in == other.tokens_in
    # Only the first prompt of a fresh server is cold.
    assert [a.turn for a in answers if not a.tokens_cached] == [answers[0].turn]
    assert all((a.tokens_cached or 0) < (a.tokens_in or 0) for a in answers)


def test_both_sdks_bring_the_same_answers() -> None:
    one, two = (read_journal(FOLDER / f"{name}.jsonl")[1] for name in SERVED)
    assert [(p.key, p.answer, p.tokens_in, p.tokens_out) for p in one] == [
        (p.key, p.answer, p.tokens_in, p.tokens_out) for p in two
    ]
