"""Shipped journals fit the registry and the corpus, and engines reproduce their answers.

The declared version of an engine is part of its runs' identity. These tests fail if answers change
without a new version. After a new version, update the expected answers of the engines without a
shipped run: ``python -m tests.detection.expected_answers``.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from zipfile import ZipFile

import pytest

from cradle_lib import paths
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.detection import (
    Model,
    Options,
    Outcome,
    Prediction,
    Session,
    load_predictions,
    load_registry,
    read_journal,
)
from cradle_lib.detection.models.engine import make_engine
from cradle_lib.detection.runs.run import run
from cradle_lib.prompts import load_template
from cradle_lib.record import Record

from ..expected_answers import BASELINES, PROBE, ask_sample, read_expected


def short(path: Path) -> str:
    return str(path.relative_to(paths.SHIPPED_RUNS).with_suffix(""))


JOURNALS = sorted(paths.SHIPPED_RUNS.rglob("*.jsonl"))
FOLDER = paths.SHIPPED_RUNS / "surrogate-test"
FREE, TUNED = "smollm2-135m", "smollm2-135m-tuned"
SERVED = ("smollm2-135m-openai", "smollm2-135m-anthropic")
COMPLETE = {FREE, f"{FREE}-constrained", f"{TUNED}-constrained", PROBE}
SAMPLED = {TUNED: 100, f"{TUNED}-reference": 100} | dict.fromkeys(SERVED, 20)
# The servers take 26 s per answer, and the probe learns for 39 minutes. It and the baselines have
# expected answers (see `ask_sample`). Of sampled runs, the first is repeated.
REPEATED = [
    path
    for path in JOURNALS
    if path.stem not in (*SERVED, *BASELINES, PROBE)
    and ("repeats" not in path.parts or "1" in path.parts)
]
LEARNS_SLOWLY = ("tfidf", "tfidf-history")


@cache
def shipped_corpus(name: str) -> Corpus:
    if name == "probes":
        return load_corpus("probes")
    return load_corpus("surrogate", name.removeprefix("surrogate-"))


def corpus_of(record: Record) -> Corpus:
    return shipped_corpus(record.corpus)


def model_of(record: Record) -> Model:
    """Returns the registry's entry with the decoding settings of the run."""
    entry = load_registry()[record.model].model_dump(exclude_none=True)
    settings = {"decoding": record.decoding} if record.decoding else {}
    return Model.model_validate(entry | settings)


def sessions_without(
    left_out: Iterable[Prediction], record: Record, stored: Iterable[Prediction]
) -> list[Session]:
    """Makes sessions for the turns left out; all other answers come from the journal."""
    template, asked = load_template(record.prompt), {(p.dialogue, p.turn) for p in left_out}
    kept: dict[str, list[Prediction]] = defaultdict(list)
    for prediction in stored:
        if (prediction.dialogue, prediction.turn) not in asked:
            kept[prediction.dialogue].append(prediction)
    return [
        Session(dialogue, template, record.history, kept[dialogue.id])
        for dialogue in corpus_of(record)
        if dialogue.id in {d for d, _ in asked}
    ]


@pytest.mark.parametrize("path", JOURNALS, ids=short)
def test_a_shipped_run_has_its_identity_prompts_and_labels(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The probe set has no train split.
    monkeypatch.setenv("CRADLE_TRAIN", "surrogate")
    record, stored = read_journal(path)
    corpus = corpus_of(record)
    chosen = set(record.dialogues or [d.id for d in corpus])
    part = corpus.subset([i for i, d in enumerate(corpus) if d.id in chosen], corpus.name)
    # All answers belong to prompts that are unchanged.
    assert len(load_predictions(path, part).masks) == len(stored)
    if path.parent == FOLDER:
        model = load_registry()[path.stem]
        assert not record.dirty, "shipped runs are made from a commit, without local changes"
        assert record.corpus_fingerprint == corpus.fingerprint
        assert record.decoding == (model.decoding.settings if model.decoding else {})
        assert {path.stem} <= {*COMPLETE, *SAMPLED}
        assert len(chosen) == SAMPLED.get(path.stem, len(corpus))
        if path.stem.endswith("-constrained"):
            assert all(p.outcome is Outcome.OK and p.choices for p in stored)
    # A changed identity would be refused. Resuming a finished run asks nothing.
    copy = Path(shutil.copy(path, tmp_path))
    before = copy.read_bytes()
    run(model_of(record), part, out=copy)
    assert copy.read_bytes().startswith(before)
    assert b'"answer"' not in copy.read_bytes()[len(before) :]


def test_both_sdks_give_equal_answers_and_the_token_counts_of_local_runs() -> None:
    one, two = (read_journal(FOLDER / f"{name}.jsonl")[1] for name in SERVED)
    assert [(p.key, p.answer, p.tokens_in, p.tokens_out) for p in one] == [
        (p.key, p.answer, p.tokens_in, p.tokens_out) for p in two
    ]
    local = {p.key: p for p in read_journal(FOLDER / f"{FREE}.jsonl")[1]}
    shared = [(p, local[p.key]) for p in one if p.key in local]
    assert shared
    assert all(p.tokens_in == other.tokens_in for p, other in shared)
    for answers in (one, two):
        # Only the first prompt of a new server has no cached tokens.
        assert [a.turn for a in answers if not a.tokens_cached] == [answers[0].turn]
        assert all((a.tokens_cached or 0) < (a.tokens_in or 0) for a in answers)


@pytest.mark.shipped
@pytest.mark.parametrize("path", REPEATED, ids=short)
def test_a_local_model_gives_the_shipped_answers_again(path: Path) -> None:
    record, stored = read_journal(path)
    stored = sorted(stored, key=lambda p: (p.dialogue, p.turn))
    groups = [p for p in stored if p.mask], [p for p in stored if not p.mask]
    sample = [p for group in groups for p in group[:: len(group) // 2 + 1]]
    assert 2 <= len(sample) <= 4
    # A fixed size, because rounding depends on the batch, and can change a sampled token.
    options = Options(device="cpu", batch=4)
    engine = make_engine(model_of(record), corpus_of(record), options)
    engine.checkpoint_decoding()
    again: list[Prediction] = []
    engine.answer_all(sessions_without(sample, record, stored), again.append)
    found = {(p.dialogue, p.turn): (p.key, p.answer, p.mask) for p in again}
    assert found == {(p.dialogue, p.turn): (p.key, p.answer, p.mask) for p in sample}


@pytest.mark.shipped
@pytest.mark.parametrize("name", [FREE, TUNED])
def test_the_reference_engine_gives_the_shipped_answers_again(name: str) -> None:
    from cradle_engines.local.reference import Reference

    record, stored = read_journal(FOLDER / f"{name}.jsonl")
    shipped = {prediction.key: prediction for prediction in stored}
    # The first tokens are enough, because this engine computes everything again for each.
    entry = model_of(record).model_dump(exclude_none=True)
    entry["decoding"] |= {"max_new_tokens": 10}
    engine = Reference(Model.model_validate(entry), Options(device="cpu"))
    # The first question of a dialogue, and a question with the model's own tags in the history.
    for dialogue, before in ((stored[0].dialogue, 0), (stored[-1].dialogue, 3)):
        own = sorted((p for p in stored if p.dialogue == dialogue), key=lambda p: p.turn)
        place = corpus_of(record).by_id[dialogue]
        prompt = Session(place, load_template(record.prompt), stored=own[:before]).prompt
        assert prompt is not None
        answer, expected = engine.reply(prompt), shipped[prompt.key]
        # The wave engine stops at the end of the line; later text is not parsed.
        length = min(len(answer.text), len(expected.answer))
        assert answer.text[:length] == expected.answer[:length] != ""
        assert answer.tokens_in == expected.tokens_in


def test_the_keyword_baseline_gives_all_answers_of_its_shipped_run_again(tmp_path: Path) -> None:
    with ZipFile(paths.DATA / "bundles" / "keyword.zip") as bundle:
        shipped = read_journal(Path(bundle.extract("keyword.jsonl", tmp_path)))
    again = read_journal(
        run(load_registry()["keyword"], shipped_corpus("surrogate-test"), out=tmp_path)
    )
    assert again[0].settings == shipped[0].settings
    answers = [
        {(p.key, p.answer, p.mask) for p in predictions} for _, predictions in (again, shipped)
    ]
    assert answers[0] == answers[1]


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=[pytest.mark.shipped] * (name in (*LEARNS_SLOWLY, PROBE)))
        for name in (*BASELINES, PROBE)
    ],
)
def test_a_baseline_or_the_probe_gives_the_expected_answers(name: str) -> None:
    assert ask_sample(name) == read_expected()[name]
