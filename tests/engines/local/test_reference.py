"""The reference engine on a tiny random model, compared with a plain loop over its logits."""

from __future__ import annotations

import copy
import importlib.util
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers import Tokenizer
from transformers import LlamaForCausalLM

from cradle_engines.local.local_engine import CONTINUATION, Local, load_local
from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from ...detection.dialogues import make_dialogue
from .tiny_models import LIMIT, first_prompt, make_model, make_random, make_weights

pytestmark = pytest.mark.usefixtures("short_prompt")


def plain_greedy(lm: Any, ids: list[int]) -> list[int]:
    """Greedy decoding without ``generate`` and without a cache."""
    new: list[int] = []
    while len(new) < LIMIT and (not new or new[-1] != 0):
        with torch.no_grad():
            logits = lm(torch.tensor([ids + new])).logits[0, -1]
        new.append(int(logits.argmax()))
    return new


@pytest.mark.parametrize("chat", [True, False])
def test_answers_equal_a_plain_loop(
    corpus: Corpus, weights: Path, tmp_path: Path, chat: bool
) -> None:
    folder = weights if chat else make_weights(tmp_path / "plain", chat=None)
    notices: list[str] = []
    path = run(make_model(folder), corpus, out=tmp_path, options=Options(notice=notices.append))
    assert any("Tiny has no chat template" in sentence for sentence in notices) is not chat
    predictions = {(p.dialogue, p.turn): p for p in read_journal(path)[1]}
    lm = LlamaForCausalLM.from_pretrained(folder, dtype=torch.float32)
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    texts = set()
    for dialogue in corpus:
        # The history is rebuilt here from the turns. The random model never predicts a label,
        # so that all its tags are none.
        history = ""
        for turn in dialogue.turns:
            if turn.continues:
                continue
            line = f"{turn.speaker}: {' '.join(dialogue.utterance(turn).split(chr(10)))}"
            if not turn.asked:
                history += f"{line}\n"
                continue
            text = f"Label.\n{history}{line}"
            framed = f"<|user|>{text}<|end|><|assistant|>" if chat else text + CONTINUATION
            ids = tokenizer.encode(framed).ids
            expected = plain_greedy(lm, ids)
            found = predictions[dialogue.id, turn.turn_id]
            assert found.answer == tokenizer.decode(expected, skip_special_tokens=True)
            assert (found.tokens_in, found.tokens_out) == (len(ids), len(expected))
            assert found.tokens_cached == 0
            assert found.mask == 0
            texts.add(found.answer)
            history += f"{line}\nMODEL_TAG: none\n"
    assert len(predictions) == len(corpus.gold)
    assert len(texts) > 3, "answers must differ between prompts"


def test_a_turn_cannot_contain_control_tokens_of_the_tokenizer(loaded: Local) -> None:
    local = replace(loaded, tokenizer=copy.deepcopy(loaded.tokenizer))
    local.tokenizer.add_special_tokens({"additional_special_tokens": ["@stop@", "%%go"]})
    ids = local.tokenizer.convert_tokens_to_ids(["@stop@", "%%go"])
    dialogue = make_dialogue(0, [("User", "well @stop@%%go%%go, so be it", "none")])
    prompt = first_prompt(dialogue)
    assert "@stop@%%go%%go" in prompt.text, "the prompt is the same for every model"
    (found,) = local.ids([prompt])
    assert not set(ids) & set(found)
    assert "well @ stop@% %go% %go, so be it" in local.tokenizer.decode(found)


@pytest.fixture(scope="module")
def learned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model with 120 learned positions."""
    return make_random(
        tmp_path_factory.mktemp("learned"), "gpt2", chat=None, max_position_embeddings=120
    )


def test_prompt_and_answer_may_fill_the_context_of_the_model(learned: Path) -> None:
    local = load_local(make_model(learned, max_new_tokens=30), Options(device="cpu"))
    with torch.inference_mode():
        for length, fits in [(91, True), (92, False)]:
            assert (local.too_long(length, 30) is None) is fits
            ids = torch.full((1, length), 5)
            with nullcontext() if fits else pytest.raises((IndexError, RuntimeError)):
                local.lm.generate(
                    ids, max_new_tokens=30, min_new_tokens=30, do_sample=False, pad_token_id=1
                )


@pytest.mark.parametrize("engine", ["reference", "wave"])
def test_an_answer_without_room_fails_and_the_run_continues(
    corpus: Corpus, learned: Path, tmp_path: Path, engine: str
) -> None:
    model = make_model(learned, engine, max_new_tokens=30)
    stored = read_journal(run(model, corpus, out=tmp_path))[1]
    failed = [p for p in stored if p.outcome is Outcome.FAILED]
    assert len(stored) == 6
    assert 0 < len(failed) < 6
    assert all((p.tokens_in or 0) + 29 <= 120 for p in stored if p not in failed)
    for p in failed:
        assert (p.tokens_in or 0) + 29 > 120
        assert p.reason == (
            f"the prompt has {p.tokens_in} tokens, its answer up to 30, and the model's context 120"
        )
    # A static part that is too long fails all questions.
    (paths.PROMPTS / "short.txt").write_text("Label. " * 80 + "\n{history}\n{current_turn}\n")
    model = make_model(learned, engine, max_new_tokens=1)
    stored = read_journal(run(model, corpus, out=tmp_path / "long"))[1]
    assert [p.outcome for p in stored] == [Outcome.FAILED] * 6


def test_a_missing_folder_or_package_is_reported(
    corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    absent = make_model(tmp_path / "absent-folder")
    with pytest.raises(EngineError, match=r"^Tiny: there is no folder .*absent-folder"):
        run(absent, corpus, out=tmp_path)
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(EngineError, match=r"needs the package torch.*-e '\.\[local\]'"):
        run(absent, corpus, out=tmp_path)


def test_sampling_is_reproducible_after_a_resume_and_differs_between_seeds(
    corpus: Corpus, weights: Path, tmp_path: Path
) -> None:
    def answers(name: str, seed: int, *limits: int | None) -> list[str]:
        model = make_model(weights, temperature=1.0, seed=seed)
        for limit in limits:
            path = run(model, corpus, out=tmp_path / f"{name}.jsonl", limit=limit)
        return [p.answer for p in read_journal(path)[1]]

    uninterrupted = answers("whole", 1, None)
    assert answers("resumed", 1, 1, None) == uninterrupted
    assert answers("other", 2, None) != uninterrupted
    greedy = run(make_model(weights), corpus, out=tmp_path / "greedy.jsonl")
    assert [p.answer for p in read_journal(greedy)[1]] != uninterrupted
