"""The journals that ship: they fit the corpus, and the model still says what they say."""

from __future__ import annotations

from pathlib import Path

import pytest

from cradle_lib import paths
from cradle_lib.corpus import load_corpus
from cradle_lib.detection import (
    Options,
    Outcome,
    Session,
    load_predictions,
    load_registry,
    read_journal,
    run,
)
from cradle_lib.detection.engines.reference import Reference
from cradle_lib.prompts import load_template

JOURNAL = paths.SHIPPED_RUNS / "surrogate-test" / "smollm2-135m.jsonl"
MODEL = load_registry()["smollm2-135m"]


def test_the_journal_belongs_to_the_registrys_model_and_the_shipped_corpus() -> None:
    corpus = load_corpus("surrogate")
    predictions = load_predictions(JOURNAL, corpus, partial=True)
    record = predictions.record
    assert record.corpus_fingerprint == corpus.fingerprint
    assert not record.dirty, "made from a commit, not from changes that nobody can see"
    assert (record.model, record.engine) == (MODEL.id, MODEL.engine)
    assert record.decoding == (MODEL.decoding.settings if MODEL.decoding else {})
    assert record.prompt_hash == load_template(MODEL.prompt).hash
    assert len(predictions.corpus) >= 12
    assert {dialogue.id for dialogue in predictions.corpus} == set(record.dialogues or ())


@pytest.mark.xdist_group("smollm2")
def test_the_model_says_again_what_the_journal_holds() -> None:
    corpus = load_corpus("surrogate")
    stored = read_journal(JOURNAL)[1]
    shipped = {prediction.key: prediction for prediction in stored}
    places = {dialogue.id: dialogue for dialogue in corpus}
    engine = Reference(MODEL, Options(device="cpu"))
    template = load_template(MODEL.prompt)
    # The first question of a dialogue, and one with a history of the model's own tags.
    for name, before in ((stored[0].dialogue, 0), (stored[-1].dialogue, 3)):
        session = Session(
            places[name], template, stored=[p for p in stored if p.dialogue == name][:before]
        )
        prompt = session.prompt
        assert prompt is not None
        answer = engine.reply(prompt)
        expected = shipped[prompt.key]
        assert answer.text == expected.answer
        assert (answer.tokens_in, answer.tokens_out) == (expected.tokens_in, expected.tokens_out)


CONSTRAINED = paths.SHIPPED_RUNS / "surrogate-test" / "smollm2-135m-constrained.jsonl"


def test_the_constrained_journal_covers_its_sample_and_every_answer_parses() -> None:
    predictions = load_predictions(CONSTRAINED, load_corpus("surrogate"), partial=True)
    assert not predictions.record.dirty
    assert len(predictions.corpus) == len(predictions.record.dialogues or ()) == 120
    assert predictions.record.decoding["mode"] == "constrained"
    assert predictions.outcome_counts[Outcome.OK] == len(predictions.masks)
    assert all(line.choices for line in read_journal(CONSTRAINED)[1])


@pytest.mark.xdist_group("smollm2")
def test_the_wave_engine_says_again_what_the_constrained_journal_holds(tmp_path: Path) -> None:
    corpus = load_corpus("surrogate")
    sample = load_predictions(CONSTRAINED, corpus, partial=True).corpus
    shortest = sorted(range(len(sample)), key=lambda i: len(sample.dialogues[i].user_turns))[:3]
    part = sample.subset(shortest, corpus.name)
    model = load_registry()["smollm2-135m-constrained"]
    path = run(model, part, out=tmp_path, options=Options(device="cpu"))
    shipped = {(p.dialogue, p.turn): p for p in read_journal(CONSTRAINED)[1]}
    again = read_journal(path)[1]
    assert len(again) == len(part.gold)
    for prediction in again:
        expected = shipped[prediction.dialogue, prediction.turn]
        assert (prediction.key, prediction.answer) == (expected.key, expected.answer)
