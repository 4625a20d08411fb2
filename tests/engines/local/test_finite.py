"""Numbers that overflow fail the question, in every engine and decoding mode.

In the tiny model, all weights are finite in float16. Only the token ``~`` makes its activations
overflow, as large activations of real models do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from cradle_engines.local.wave.attention import BatchLayout
from cradle_lib.corpus import Corpus, load_corpus
from cradle_lib.corpus.release import write_release
from cradle_lib.detection import Model, Options, Outcome, read_journal
from cradle_lib.detection.protocol.parsing import first_line
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from ...detection.dialogues import make_corpus
from .tiny_models import make_model, make_weights

pytestmark = pytest.mark.usefixtures("short_prompt")

# The last dialogue is short and follows in the slot of the one that overflows, beside a long one.
TEXTS = ["hello", "again", "one long turn, with more words than the others", "a"]
SINGLE = [[("User", text, "none")] for text in TEXTS]
BROKEN = [*SINGLE[:2], [("User", "so, so, so ~", "none")], *SINGLE[2:]]
REASON = "NaN or infinite in float16; set another `dtype`, such as float32"


@pytest.fixture(scope="module")
def overflowing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = make_weights(tmp_path_factory.mktemp("overflowing"), layers=3)
    [token] = AutoTokenizer.from_pretrained(folder)("~")["input_ids"]
    lm: Any = AutoModelForCausalLM.from_pretrained(folder)
    with torch.no_grad():
        # Only this token has a value in the first dimension, which only the MLP reads.
        lm.model.embed_tokens.weight[:, 0] = 0
        lm.model.embed_tokens.weight[token, 0] = 50
        for layer in lm.model.layers:
            for part in (layer.self_attn.q_proj, layer.self_attn.k_proj, layer.self_attn.v_proj):
                part.weight[:, 0] = 0
            for part in (layer.self_attn.o_proj, layer.mlp.down_proj):
                part.weight[0] = 0
            layer.mlp.gate_proj.weight[:, 0] = layer.mlp.up_proj.weight[:, 0] = 3e4
    lm.save_pretrained(folder)
    return folder


def outcomes(path: Path) -> dict[str, tuple[Outcome, str]]:
    return {p.dialogue: (p.outcome, first_line(p.answer)) for p in read_journal(path)[1]}


# On a GPU, short pieces of dialogues are padded and share a call.
@pytest.mark.parametrize(
    ("engine", "more", "together"),
    [
        ("reference", {}, 0),
        ("reference", {"temperature": 0.7}, 0),
        ("wave", {"temperature": 0.7}, 0),
        ("wave", {}, 8),
        ("wave", {"mode": "constrained"}, 8),
    ],
)
def test_only_the_questions_whose_numbers_overflow_fail(
    overflowing: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    engine: str,
    more: dict[str, Any],
    together: int,
) -> None:
    monkeypatch.setattr(BatchLayout.__init__, "__defaults__", (together,))
    options = Options(batch=2, device="cpu")
    half = make_model(overflowing, engine, dtype="float16", max_new_tokens=4, **more)
    path = run(half, make_corpus(BROKEN), out=tmp_path, options=options)
    for line in path.read_text().splitlines():
        json.loads(line, parse_constant=pytest.fail)
    [failed] = [p for p in read_journal(path)[1] if p.outcome is Outcome.FAILED]
    assert failed.dialogue == "d0002"
    assert failed.reason == f"FloatingPointError: the logits are {REASON}"
    usual = run(half, make_corpus(SINGLE), out=tmp_path / "usual.jsonl", options=options)
    found = outcomes(path)
    del found["d0002"]
    assert list(found.values()) == list(outcomes(usual).values())


def test_the_same_weights_work_in_float32(overflowing: Path, tmp_path: Path) -> None:
    model = make_model(overflowing, "wave", mode="constrained")
    path = run(model, make_corpus(BROKEN), out=tmp_path)
    assert {outcome for outcome, _ in outcomes(path).values()} == {Outcome.OK}


@pytest.mark.parametrize("engine", ["reference", "wave"])
def test_a_model_that_always_overflows_stops_the_run(
    overflowing: Path, tmp_path: Path, engine: str
) -> None:
    corpus = make_corpus([[("User", "~", "none")]] * 4)
    model = make_model(overflowing, engine, dtype="float16", max_new_tokens=4)
    for _ in range(2):
        with pytest.raises(EngineError, match=f"3 questions in a row .*the logits are {REASON}"):
            run(model, corpus, out=tmp_path)


def split(path: Path, texts: list[str]) -> None:
    labels = ("alert_ongoing", "none")
    write_release(make_corpus([[("User", t, labels[i % 2])] for i, t in enumerate(texts)]), path)


def probe(folder: Path) -> Model:
    return make_model(folder, dtype="float16").model_copy(update={"engine": "probe"})


def test_the_probe_neither_learns_from_nor_classifies_numbers_that_overflow(
    overflowing: Path, tmp_path: Path
) -> None:
    def corpus() -> Corpus:
        return load_corpus(str(tmp_path / "test.csv"))

    split(tmp_path / "train.csv", ["so", "fine", "tired", "well"])
    split(tmp_path / "test.csv", ["hello", "oh ~", "again"])
    found = read_journal(run(probe(overflowing), corpus(), out=tmp_path))[1]
    assert [p.outcome for p in found] == [Outcome.OK, Outcome.FAILED, Outcome.OK]
    assert found[1].reason == f"FloatingPointError: the hidden states are {REASON}"
    split(tmp_path / "train.csv", ["so", "fine ~", "tired", "well"])
    with pytest.raises(EngineError, match=f"can't learn from .* of the train split: .*{REASON}"):
        run(probe(overflowing), corpus(), out=tmp_path / "other")
