"""The wave engine gives the answers of the reference engine."""

from __future__ import annotations

import functools
import random
import shutil
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, LlamaForCausalLM

from cradle_engines.local.local_engine import Local
from cradle_engines.local.wave import runner
from cradle_engines.local.wave.attention import BatchLayout
from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, Prediction, read_journal
from cradle_lib.detection.protocol.parsing import first_line
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError
from cradle_lib.labels import NONE, mask_of

from ...detection.dialogues import make_corpus
from .tiny_models import EXACT, first_prompt, make_model, teach

SHORT = "You label turns. Say one line.\n{history}\nNow this one:\n{current_turn}\n"
APPEND = "You label turns. Say one line.\n{history}\n{current_turn}\n"
WORDS = ["exam", "home", "night", "sister", "tired", "fine", "better", "never", "rain"]


@pytest.fixture(autouse=True)
def prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "prompts"
    folder.mkdir()
    (folder / "short.txt").write_text(SHORT)
    (folder / "append-short.txt").write_text(APPEND)
    monkeypatch.setattr(paths, "PROMPTS", folder)


@pytest.fixture(scope="module")
def ragged() -> Corpus:
    """Dialogues of very different lengths, some of which start with the Listener."""
    chance = random.Random(5)
    dialogues = []
    for index, turns in enumerate((4, 1, 7, 2)):
        speakers = ["Listener", "User"] if index % 3 == 0 else ["User", "Listener"]
        dialogues.append(
            [
                (speakers[turn % 2], " ".join(chance.choices(WORDS, k=chance.randint(1, 9))), NONE)
                for turn in range(turns + 1)
            ]
        )
    return make_corpus(dialogues)


def answers(path: Path) -> dict[tuple[str, int], Prediction]:
    stored = read_journal(path)[1]
    by_place = {(p.dialogue, p.turn): p for p in stored}
    assert len(by_place) == len(stored), "no question is answered twice"
    return by_place


def outcomes_of(path: Path) -> dict[tuple[str, int], tuple[str, Outcome, int, str]]:
    """Returns first line, outcome, mask and key of each answer.

    The reference engine continues after the first line.
    """
    return {
        place: (first_line(p.answer), p.outcome, p.mask, p.key)
        for place, p in answers(path).items()
    }


@pytest.mark.parametrize(
    ("family", "prompt"), [*((family, "short") for family in EXACT), ("llama", "append-short")]
)
def test_the_wave_engine_gives_the_answers_of_the_reference_engine(
    ragged: Corpus, families: dict[str, Path], tmp_path: Path, family: str, prompt: str
) -> None:
    notices: list[str] = []
    made = {}
    for engine in ("reference", "wave"):
        model = make_model(families[family], engine=engine).model_copy(update={"prompt": prompt})
        options = Options(device="cpu", batch=3, notice=notices.append)
        made[engine] = run(model, ragged, out=tmp_path / engine, options=options)
    assert outcomes_of(made["wave"]) == outcomes_of(made["reference"])
    assert not notices, "the shared attention serves this family"
    assert len({line for line, *_ in outcomes_of(made["wave"]).values()}) > 1
    waved = answers(made["wave"]).values()
    assert all(p.tokens_cached for p in waved)
    assert {p.tokens_in for p in waved} == {
        p.tokens_in for p in answers(made["reference"]).values()
    }


def test_both_engines_parse_labels_on_several_lines(loaded: Local, tmp_path: Path) -> None:
    answers_to = {
        "hello": "confirm_SH_ongoing\n\n- confirm_DV_past\n",
        "so": "none\nconfirm_DV_past",
    }
    corpus = make_corpus([[("User", text, NONE)] for text in answers_to])
    texts = []
    for dialogue, answer in zip(corpus, answers_to.values(), strict=True):
        written = loaded.tokenizer(f"{answer}<|end|>")["input_ids"]
        texts.append([*loaded.ids([first_prompt(dialogue)])[0], *written])
    folder = shutil.copytree(loaded.lm.name_or_path, tmp_path / "weights")
    teach(folder, texts)
    both = mask_of(["confirm_SH_ongoing", "confirm_DV_past"])
    for engine in ("reference", "wave"):
        model = make_model(folder, engine, max_new_tokens=40)
        found = list(answers(run(model, corpus, out=tmp_path / engine)).values())
        assert [p.mask for p in found] == [both, 0]
        assert [p.outcome for p in found] == [Outcome.OK, Outcome.UNPARSED]
        texts_found = zip(answers_to.values(), found, strict=True)
        assert all(p.answer and text.startswith(p.answer) for text, p in texts_found)
        # This limit cuts the first answer within its last line.
        model = make_model(folder, engine, max_new_tokens=(found[0].tokens_out or 0) - 2)
        cut = next(iter(answers(run(model, corpus, out=tmp_path / f"{engine}-cut")).values()))
        assert (cut.outcome, cut.mask) == (Outcome.UNPARSED, 0)


def test_with_the_append_only_layout_the_previous_prompt_is_cached(
    families: dict[str, Path], tmp_path: Path
) -> None:
    rows = [("User" if i % 2 == 0 else "Listener", f"turn {i}", NONE) for i in range(9)]
    model = make_model(families["llama"], engine="wave", mode="constrained")
    model = model.model_copy(update={"prompt": "append-short"})
    path = run(model, make_corpus([rows]), out=tmp_path)
    predictions = list(answers(path).values())
    for before, now in pairwise(predictions):
        # The previous prompt without the chat template's last tokens, <|end|><|assistant|>.
        assert now.tokens_cached is not None
        assert before.tokens_in is not None
        assert now.tokens_cached >= before.tokens_in - 2


def test_after_out_of_memory_the_batch_is_halved_and_no_answer_is_lost(
    ragged: Corpus, families: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(families["llama"], engine="wave")
    usual = outcomes_of(run(model, ragged, out=tmp_path / "usual"))
    # The largest numbers of dialogues in a pass, between the times at which memory ran out.
    largest = [0]
    passes = 0
    forward = runner.forward

    def scarce(lm: Any, store: Any, layout: BatchLayout, *arguments: Any) -> torch.Tensor:
        nonlocal passes
        passes += 1
        largest[-1] = max(largest[-1], len(layout.pieces))
        if len(layout.pieces) > 1 and passes > 6:
            largest.append(0)
            passes = 0
            # PyTorch's error on a CPU has another type than that of a GPU.
            torch.empty(1 << 55)
        return forward(lm, store, layout, *arguments)

    monkeypatch.setattr(runner, "forward", scarce)
    path = run(model, ragged, out=tmp_path / "scarce", options=Options(batch=4))
    assert outcomes_of(path) == usual
    assert largest == [4, 2, 1]

    def empty(*_: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError("none at all")

    monkeypatch.setattr(runner, "forward", empty)
    with pytest.raises(EngineError, match="memory ran out with one dialogue at a time"):
        run(model, ragged, out=tmp_path / "none", options=Options(batch=4))


def raise_on_tokens(monkeypatch: pytest.MonkeyPatch, ids: list[int]) -> None:
    """Makes the forward pass of a real model raise an exception if its input has these ids."""
    real = LlamaForCausalLM.forward

    @functools.wraps(real)
    def forward(self: Any, input_ids: torch.Tensor, **more: Any) -> Any:
        read = input_ids[0].tolist()
        if any(read[i : i + len(ids)] == ids for i in range(len(read))):
            raise IndexError("index out of range in self")
        return real(self, input_ids=input_ids, **more)

    monkeypatch.setattr(LlamaForCausalLM, "forward", forward)


@pytest.mark.parametrize(
    ("engine", "more"), [("reference", {}), ("wave", {}), ("wave", {"mode": "constrained"})]
)
def test_an_exception_fails_only_its_question_and_other_answers_are_unchanged(
    families: dict[str, Path],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    more: dict[str, Any],
) -> None:
    folder = families["llama"]
    # The last turn of a dialogue, so that no other question has it in its history.
    rows = [[(who, f"{who} {i}", NONE) for who in ("User", "Listener", "User")] for i in range(4)]
    rows[2][-1] = ("User", "zq zq zq", NONE)
    corpus = make_corpus(rows)
    options = Options(batch=3)
    model, tokenizer = make_model(folder, engine, **more), AutoTokenizer.from_pretrained(folder)
    usual = outcomes_of(run(model, corpus, out=tmp_path / "usual", options=options))
    raise_on_tokens(monkeypatch, tokenizer(" zq zq", add_special_tokens=False)["input_ids"])
    path = run(model, corpus, out=tmp_path / "broken", options=options)
    found = outcomes_of(path)
    place = ("d0002", 2)
    assert [p.reason for p in answers(path).values() if p.outcome is Outcome.FAILED] == [
        "IndexError: index out of range in self"
    ]
    assert answers(path)[place].outcome is Outcome.FAILED
    del found[place]
    assert found == {key: value for key, value in usual.items() if key != place}
