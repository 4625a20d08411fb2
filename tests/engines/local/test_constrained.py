"""Constrained decoding: possible answers, forward passes, and stored choices."""

from __future__ import annotations

import copy
import math
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_engines.local.constrained import Grammar, GrammarState
from cradle_engines.local.local_engine import Local
from cradle_engines.local.wave import runner
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, read_answer, read_journal
from cradle_lib.detection.protocol.session import END, Answer, Session
from cradle_lib.detection.runs.run import run
from cradle_lib.labels import LABELS, NONE
from cradle_lib.prompts import load_template

from .tiny_models import change_settings, make_model

EOS = 0


@pytest.fixture(scope="module")
def tokenizer(loaded: Local) -> Any:
    return loaded.tokenizer


@pytest.fixture(scope="module")
def grammar(tokenizer: Any) -> Grammar:
    return Grammar(tokenizer, {EOS})


def encode(tokenizer: Any, text: str) -> list[int]:
    return list(tokenizer(text, add_special_tokens=False)["input_ids"])


def write(grammar: Grammar, wanted: list[int]) -> list[int]:
    """Decodes with logits that prefer these tokens; returns the written tokens."""
    walk, written = GrammarState(grammar), []
    while not walk.finished:
        logits = torch.zeros(400)
        logits[wanted[len(written)] if len(written) < len(wanted) else EOS] = 50
        written += walk.choose(logits)
    return written


def test_the_longest_answer_has_all_labels(tokenizer: Any, grammar: Grammar) -> None:
    orders = [[label, *(other for other in LABELS if other != label)] for label in LABELS]
    longest = max(len(encode(tokenizer, "; ".join(order))) for order in orders)
    assert grammar.longest == longest


@pytest.mark.usefixtures("short_prompt")
def test_only_answers_without_room_for_all_labels_fail(
    weights: Path, grammar: Grammar, corpus: Corpus, tmp_path: Path
) -> None:
    folder = shutil.copytree(weights, tmp_path / "weights")
    # The context has room for the shortest prompt and the longest answer only.
    model = make_model(folder, "wave", mode="constrained")
    stored = read_journal(run(model, corpus, out=tmp_path / "usual"))[1]
    shortest = min(p.tokens_in or 0 for p in stored)
    change_settings(folder, "config.json", max_position_embeddings=shortest + grammar.longest - 1)
    narrow = read_journal(run(model, corpus, out=tmp_path / "narrow"))[1]
    fits = [p.tokens_in == shortest for p in narrow]
    assert [p.outcome is Outcome.OK for p in narrow] == fits
    reason = str(narrow[fits.index(False)].reason)
    assert f"its answer up to {grammar.longest}, and the model's context" in reason


def test_every_answer_of_up_to_two_labels_can_be_written(tokenizer: Any, grammar: Grammar) -> None:
    answers = [NONE, *LABELS, *(f"{a}; {b}" for a in LABELS for b in LABELS if a != b)]
    for answer in answers:
        assert tokenizer.decode(write(grammar, encode(tokenizer, answer))) == answer
    # After all labels, the answer ends even if the model would continue.
    ids = encode(tokenizer, "; ".join(reversed(LABELS)))
    assert write(grammar, [*ids, *ids]) == ids


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), bias=st.floats(-8, 8))
def test_a_bias_applies_only_to_none_at_the_start_of_an_answer(
    tokenizer: Any, grammar: Grammar, seed: int, bias: float
) -> None:
    none = tokenizer.decode(encode(tokenizer, NONE)[:1])
    chance = torch.Generator().manual_seed(seed)
    biased = copy.copy(grammar)
    biased.none_bias = bias
    walk = GrammarState(biased)
    while not walk.finished:
        logits = torch.randn(400, generator=chance)
        new = walk.choose(logits)
        fork = walk.choices[-1]
        begins = len(walk.choices) == 1
        if begins:
            plain = GrammarState(grammar)
            plain.choose(logits)
            assert plain.choices == [fork], "stored probabilities have no bias"
        likeliest = max(fork, key=lambda name: fork[name] + bias * (begins and name == none))
        assert likeliest == (tokenizer.decode(new[:1]) if new else END)


@settings(max_examples=15)
@given(seed=st.integers(0, 10_000), scale=st.sampled_from([0.0, 1.0, 30.0]))
def test_a_constrained_answer_is_valid_for_any_logits(
    tokenizer: Any, grammar: Grammar, seed: int, scale: float
) -> None:
    source = torch.Generator().manual_seed(seed)
    walk, written = GrammarState(grammar), []
    while not walk.finished:
        written += walk.choose(scale * torch.randn(400, generator=source))
    names = tokenizer.decode(written).split("; ")
    assert names == [NONE] or set(names) <= set(LABELS)
    assert len(set(names)) == len(names)
    assert read_answer(tokenizer.decode(written))[0] is Outcome.OK
    for fork in walk.choices:
        assert len(fork) > 1, "forced tokens are not stored"
        assert 0 < sum(map(math.exp, fork.values())) <= 1 + 1e-5


def forks(
    lm: Any, tokenizer: Any, prompt: list[int], answer: str
) -> list[tuple[str, dict[str, float]]]:
    """Finds the forks of an answer and the branches taken, by listing all valid answers."""
    ids, whole, found = encode(tokenizer, answer), {NONE, *LABELS}, []
    for place in range(len(ids) + 1):
        done = tokenizer.decode(ids[:place]).split("; ")
        written = [name for name in done if name in whole]
        ahead = [label for label in LABELS if label not in written]
        texts = [NONE, *LABELS] if not written else ["; ".join([*written, a]) for a in ahead]
        lists = [encode(tokenizer, text) for text in texts if NONE not in written]
        follow = {i[place] for i in lists if i[:place] == ids[:place] and len(i) > place}
        ends = tokenizer.decode(ids[:place]) == "; ".join(written) != ""
        if len(follow) + ends < 2:
            continue
        with torch.no_grad():
            logits = lm(torch.tensor([prompt + ids[:place]])).logits[0, -1].double()
        chances = logits.log_softmax(-1)
        fork = {tokenizer.decode([token]): float(chances[token]) for token in follow}
        if ends:
            stops = [EOS, encode(tokenizer, "\n")[0]]
            fork[END] = float(chances[stops].logsumexp(-1))
        found.append((END if place == len(ids) else tokenizer.decode([ids[place]]), fork))
    return found


@pytest.mark.usefixtures("short_prompt")
def test_the_likeliest_branch_is_taken_and_each_fork_needs_one_pass_and_is_stored(
    corpus: Corpus, loaded: Local, tokenizer: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    passes: list[int] = []
    forward = runner.forward

    def counted(*arguments: Any) -> Any:
        passes.append(1)
        return forward(*arguments)

    monkeypatch.setattr(runner, "forward", counted)
    model = make_model(Path(loaded.lm.name_or_path), "wave", mode="constrained")
    path = run(model, corpus, out=tmp_path, options=Options(batch=1))
    predictions = {(p.dialogue, p.turn): p for p in read_journal(path)[1]}
    # One pass for the static prefix and one for every fork; forced tokens need none.
    assert len(passes) == 1 + sum(len(p.choices or ()) for p in predictions.values())
    written = sum(p.tokens_out or 0 for p in predictions.values())
    assert written > len(passes)

    for dialogue in corpus:
        session = Session(dialogue, load_template("short"))
        while (prompt := session.prompt) is not None:
            stored = predictions[prompt.dialogue, prompt.turn]
            expected = forks(loaded.lm, tokenizer, loaded.ids([prompt])[0], stored.answer)
            assert stored.choices is not None
            for found, (taken, oracle) in zip(stored.choices, expected, strict=True):
                assert set(found) == set(oracle)
                assert taken == max(oracle, key=lambda way: oracle[way])
                for token, chance in found.items():
                    assert chance == pytest.approx(oracle[token], abs=1e-3)
            session.answer(Answer(stored.answer))
