"""The wave engine: the tags of the reference engine, whatever the architecture and the order."""

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

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, Prediction, Session, read_journal
from cradle_lib.detection.local.local_engine import Local
from cradle_lib.detection.local.wave import runner
from cradle_lib.detection.parsing import first_line
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError
from cradle_lib.labels import NONE, mask_of
from cradle_lib.prompts import load_template

from ..dialogues import make_corpus
from .tiny_models import EXACT, make_model, teach

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


def essence(path: Path) -> dict[tuple[str, int], tuple[str, Outcome, int, str]]:
    """What is read of each answer, and what it answered; the reference engine writes on."""
    return {
        place: (first_line(p.answer), p.outcome, p.mask, p.key)
        for place, p in answers(path).items()
    }


ON_GPU = (
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU here"),
)


@pytest.mark.parametrize("device", ["cpu", pytest.param("cuda", marks=ON_GPU)])
@pytest.mark.parametrize(
    ("family", "prompt"), [*((family, "short") for family in EXACT), ("llama", "append-short")]
)
def test_every_family_gets_the_answers_of_the_reference_engine(
    ragged: Corpus, families: dict[str, Path], tmp_path: Path, family: str, prompt: str, device: str
) -> None:
    said: list[str] = []
    made = {}
    for engine in ("reference", "wave"):
        model = make_model(families[family], engine=engine).model_copy(update={"prompt": prompt})
        options = Options(device=device, batch=3, notice=said.append)
        made[engine] = run(model, ragged, out=tmp_path / engine, options=options)
    assert essence(made["wave"]) == essence(made["reference"])
    assert not said, "the shared attention serves this family"
    assert len({line for line, *_ in essence(made["wave"]).values()}) > 1
    whole = answers(made["wave"]).values()
    assert all(p.tokens_cached for p in whole)
    assert {p.tokens_in for p in whole} == {
        p.tokens_in for p in answers(made["reference"]).values()
    }


def test_labels_on_several_lines_are_read_alike_by_both_engines(
    loaded: Local, tmp_path: Path
) -> None:
    answers_to = {
        "hello": "confirm_SH_ongoing\n\n- confirm_DV_past\n",
        "so": "none\nconfirm_DV_past",
    }
    corpus = make_corpus([[("User", text, NONE)] for text in answers_to])
    texts = []
    for dialogue, answer in zip(corpus, answers_to.values(), strict=True):
        prompt = Session(dialogue, load_template("short")).prompt
        assert prompt is not None
        written = loaded.tokenizer(f"{answer}<|end|>")["input_ids"]
        texts.append([*loaded.ids([prompt])[0], *written])
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


def test_answers_with_a_bias_are_those_of_the_reference_engine(
    ragged: Corpus, families: dict[str, Path], tmp_path: Path
) -> None:
    greedy = run(make_model(families["llama"], "wave"), ragged, out=tmp_path / "greedy")
    made = [
        run(make_model(families["llama"], engine, none_bias=5.0), ragged, out=tmp_path / engine)
        for engine in ("reference", "wave")
    ]
    assert essence(made[0]) == essence(made[1]) != essence(greedy)


def test_with_the_append_only_layout_nothing_is_computed_twice(
    families: dict[str, Path], tmp_path: Path
) -> None:
    rows = [("User" if i % 2 == 0 else "Listener", f"turn {i}", NONE) for i in range(9)]
    model = make_model(families["llama"], engine="wave", mode="constrained")
    model = model.model_copy(update={"prompt": "append-short"})
    path = run(model, make_corpus([rows]), out=tmp_path)
    predictions = list(answers(path).values())
    for before, now in pairwise(predictions):
        # All of the prompt before but the chat template's last tokens, <|end|><|assistant|>.
        assert now.tokens_cached is not None
        assert before.tokens_in is not None
        assert now.tokens_cached >= before.tokens_in - 2


@pytest.mark.parametrize(("family", "why"), [("gemma2", "softcap"), ("mamba", "linear_attention")])
def test_an_architecture_that_can_not_share_is_served_one_by_one_and_says_so_once(
    ragged: Corpus, families: dict[str, Path], tmp_path: Path, family: str, why: str
) -> None:
    said: list[str] = []
    options, folder = Options(notice=said.append), families[family]
    waved = run(make_model(folder, "wave"), ragged, out=tmp_path / "w", options=options)
    plain = run(make_model(folder), ragged, out=tmp_path / "r")
    assert len(said) == 1
    assert why in said[0]
    assert essence(waved) == essence(plain)
    model = make_model(folder, "wave", mode="constrained")
    with pytest.raises(EngineError, match=rf"{why}.* can't share .*Leave `mode` out"):
        run(model, ragged, out=tmp_path)


def test_when_memory_runs_out_the_wave_is_halved_and_nothing_is_lost(
    ragged: Corpus, families: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = make_model(families["llama"], engine="wave")
    usual = essence(run(model, ragged, out=tmp_path / "usual"))
    sizes: list[int] = []
    whole = runner.Runner._forward

    def scarce(self: Any, *arguments: Any) -> torch.Tensor:
        sizes.append(self._size)
        if self._size > 1 and sizes.count(self._size) > 6:
            raise torch.OutOfMemoryError("out of memory")
        return whole(self, *arguments)

    monkeypatch.setattr(runner.Runner, "_forward", scarce)
    path = run(model, ragged, out=tmp_path / "scarce", options=Options(batch=4))
    assert essence(path) == usual
    assert [size for size in (4, 2, 1) if size in sizes] == [4, 2, 1]

    def empty(*_: Any) -> torch.Tensor:
        raise torch.OutOfMemoryError("none at all")

    monkeypatch.setattr(runner.Runner, "_forward", empty)
    with pytest.raises(EngineError, match="memory ran out with one dialogue at a time"):
        run(model, ragged, out=tmp_path / "none", options=Options(batch=4))


def broken_on(monkeypatch: pytest.MonkeyPatch, ids: list[int]) -> None:
    """Lets the forward pass of a real model raise an exception where these ids are read."""
    whole = LlamaForCausalLM.forward

    @functools.wraps(whole)
    def forward(self: Any, input_ids: torch.Tensor, **more: Any) -> Any:
        read = input_ids[0].tolist()
        if any(read[i : i + len(ids)] == ids for i in range(len(read))):
            raise IndexError("index out of range in self")
        return whole(self, input_ids=input_ids, **more)

    monkeypatch.setattr(LlamaForCausalLM, "forward", forward)


@pytest.mark.parametrize(
    ("engine", "more"), [("reference", {}), ("wave", {}), ("wave", {"mode": "constrained"})]
)
def test_an_exception_on_a_question_fails_it_alone_and_the_others_are_answered_as_usual(
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
    model = make_model(folder, engine, **more)
    usual = essence(run(model, corpus, out=tmp_path / "usual", options=options))
    with monkeypatch.context() as patch:
        code_words = AutoTokenizer.from_pretrained(folder)(" zq zq", add_special_tokens=False)
        broken_on(patch, code_words["input_ids"])
        path = run(model, corpus, out=tmp_path / "broken", options=options)
    found = essence(path)
    place = ("d0002", 2)
    assert [p.reason for p in answers(path).values() if p.outcome is Outcome.FAILED] == [
        "IndexError: index out of range in self"
    ]
    assert answers(path)[place].outcome is Outcome.FAILED
    del found[place]
    assert found == {key: value for key, value in usual.items() if key != place}
    # Asked again, when the cause is gone.
    assert essence(run(model, corpus, out=tmp_path / "broken", options=options)) == usual
    # A model that always raises stops the run.
    broken_on(monkeypatch, [])
    with pytest.raises(EngineError, match=r"^Tiny: 3 questions in a row .*IndexError") as error:
        run(model, corpus, out=tmp_path / "always")
    assert "\n" not in str(error.value)
