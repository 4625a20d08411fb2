"""The journals that ship: they fit the corpus, and the model still says what they say."""

from __future__ import annotations

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import (
    Model,
    Options,
    Session,
    load_predictions,
    load_registry,
    read_journal,
)
from cradle_lib.detection.local.reference import Reference
from cradle_lib.prompts import load_template

FOLDER = paths.SHIPPED_RUNS / "surrogate-test"
SHIPPED = sorted(path.stem for path in FOLDER.glob("*.jsonl"))
FREE, CONSTRAINED = "smollm2-135m", "smollm2-135m-constrained"
TUNED, TUNED_CONSTRAINED = "smollm2-135m-tuned", "smollm2-135m-tuned-constrained"
PROBE = "smollm2-135m-probe"
WHOLE = [FREE, CONSTRAINED, TUNED, TUNED_CONSTRAINED, PROBE]


@pytest.fixture(scope="module")
def surrogate() -> Corpus:
    return load_corpus("surrogate")


def entry(name: str) -> Model:
    return load_registry()[name]


def test_every_shipped_journal_is_named_after_an_entry_of_the_registry() -> None:
    assert set(WHOLE) <= set(SHIPPED) <= set(load_registry())


@pytest.mark.parametrize("name", SHIPPED)
def test_a_journal_belongs_to_the_registrys_model_and_the_shipped_corpus(
    name: str, surrogate: Corpus
) -> None:
    model = entry(name)
    predictions = load_predictions(FOLDER / f"{name}.jsonl", surrogate, partial=True)
    record = predictions.record
    assert record.corpus_fingerprint == surrogate.fingerprint
    assert not record.dirty, "made from a commit, not from changes that nobody can see"
    assert (record.model, record.engine) == (model.id, model.engine)
    assert record.decoding == (model.decoding.settings if model.decoding else {})
    assert record.prompt_hash == load_template(model.prompt).hash
    covered = {dialogue.id for dialogue in predictions.corpus}
    assert covered == set(record.dialogues or (d.id for d in surrogate))
    assert len(covered) == (model.sample or len(surrogate))
    assert name not in WHOLE or predictions.is_whole
    if name.endswith("-constrained"):
        assert predictions.ok.all()
        assert all(predictions.choices)


@pytest.mark.shipped
@pytest.mark.parametrize("name", [FREE, TUNED])
def test_one_generate_per_prompt_says_again_what_the_journal_holds(
    name: str, surrogate: Corpus
) -> None:
    stored = read_journal(FOLDER / f"{name}.jsonl")[1]
    shipped = {prediction.key: prediction for prediction in stored}
    places = {dialogue.id: dialogue for dialogue in surrogate}
    model = entry(name)
    engine = Reference(model, Options(device="cpu"))
    template = load_template(model.prompt)
    # The first question of a dialogue, and one with a history of the model's own tags.
    for dialogue, before in ((stored[0].dialogue, 0), (stored[-1].dialogue, 3)):
        own = sorted((p for p in stored if p.dialogue == dialogue), key=lambda p: p.turn)
        prompt = Session(places[dialogue], template, stored=own[:before]).prompt
        assert prompt is not None
        answer, expected = engine.reply(prompt), shipped[prompt.key]
        # The wave stops where the line ends; what comes after it is not read.
        assert answer.text.startswith(expected.answer)
        assert answer.tokens_in == expected.tokens_in
