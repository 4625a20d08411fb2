"""The wave engine is used only for models whose own forward pass it reproduces.

The models have random weights and the architectures of real ones. The oracle of the answers is the
reference engine.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding

from cradle_engines.local.local_engine import Local, load_local
from cradle_engines.local.wave import proof
from cradle_engines.local.wave.attention import UnsupportedAttentionError
from cradle_lib.detection import Options, read_journal
from cradle_lib.detection.protocol.parsing import first_line
from cradle_lib.detection.runs.run import run
from cradle_lib.detection.runs.shards import join
from cradle_lib.errors import EngineError

from ...detection.dialogues import make_corpus
from .tiny_models import make_model, make_random

pytestmark = pytest.mark.usefixtures("short_prompt")

EXPERTS = {"num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 16}
EXPERTS |= {"num_local_experts": 4, "shared_expert_intermediate_size": 16}


def rope(kind: str, **more: Any) -> dict[str, Any]:
    return {"rope_type": kind, "rope_theta": 10000.0, **more}


LONG = rope(
    "longrope", short_factor=[1.0] * 4, long_factor=[1.0, 2.0, 4.0, 16.0],
    original_max_position_embeddings=300,
)  # fmt: skip


def load(folder: Path) -> Local:
    return load_local(make_model(folder, "wave"), Options(device="cpu", notice=lambda _: None))


@pytest.mark.parametrize(
    ("kind", "settings"),
    [
        ("gpt2", {}),
        # Windows that are shorter and longer than the texts.
        ("mistral", {"sliding_window": 16}),
        ("mistral", {"sliding_window": 1000}),
        ("mixtral", EXPERTS),
    ],
)
def test_models_with_the_same_logits_are_accepted(
    tmp_path: Path, kind: str, settings: dict[str, Any]
) -> None:
    assert proof.prove(load(make_random(tmp_path, kind, **settings)))


NESTED = {"full_attention": rope("default"), "sliding_attention": rope("dynamic", factor=2.0)}
DIFFERENT: list[tuple[str, dict[str, Any], str]] = [
    ("llama", {"rope_parameters": LONG}, "longrope"),
    ("gemma3_text", {"head_dim": 8, "rope_parameters": NESTED}, "rope_type: dynamic"),
    ("llama4_text", EXPERTS | {"no_rope_layers": [0, 0], "head_dim": 8}, "temperature_tuning"),
    # A mask that the layers do not pass on, beyond the texts.
    ("phimoe", EXPERTS | {"sliding_window": 1000}, "a mask"),
    ("gemma2", {"head_dim": 16, "sliding_window": 8, "query_pre_attn_scalar": 16}, "softcap"),
    ("mamba", {"state_size": 4, "num_attention_heads": None}, "can't compute .*linear_attention"),
    # Attention that is computed in several parts, and positions that are counted anew.
    ("diffllama", {}, "does not compute the same"),
    ("roberta", {"is_decoder": True}, "does not compute the same"),
    ("gpt_neo", {"num_layers": 2, "attention_types": [[["global"], 2]]}, "attention in 2 layers"),
]


@pytest.mark.parametrize(("kind", "settings", "words"), DIFFERENT)
def test_other_models_are_refused(
    tmp_path: Path, kind: str, settings: dict[str, Any], words: str
) -> None:
    with pytest.raises(UnsupportedAttentionError, match=words) as error:
        proof.prove(load(make_random(tmp_path, kind, **settings)))
    assert "\n" not in str(error.value)


def test_a_computation_that_depends_on_the_longest_text_is_found(
    loaded: Local, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = LlamaRotaryEmbedding.forward

    def forward(self: Any, x: torch.Tensor, position_ids: torch.Tensor) -> Any:
        """Changes beyond a length that the texts do not have."""
        cos, sin = real(self, x, position_ids)
        return (cos, sin) if position_ids.max() < 1500 else (sin, cos)

    # Keys and values in float32 of two layers with two heads of 64.
    assert proof.prove(loaded) == {torch.device("cpu"): 2 * 2 * 2 * 64 * 4}
    monkeypatch.setattr(LlamaRotaryEmbedding, "forward", forward)
    with pytest.raises(UnsupportedAttentionError, match="does not compute the same"):
        proof.prove(loaded)


# One dialogue becomes longer than the embedding's limit.
ROWS = [[("User" if i % 2 == 0 else "Listener", f"turn {i}", "none") for i in range(21)]]
CORPUS = make_corpus([*ROWS, *([("User", f"hello {i}", "none")] for i in range(3))])


def first_lines(path: Path) -> list[tuple[str, int, str]]:
    return [(p.dialogue, p.turn, first_line(p.answer)) for p in read_journal(path)[1]]


def test_the_reference_engine_answers_instead_and_the_record_says_why(tmp_path: Path) -> None:
    folder = make_random(tmp_path / "model", "llama", rope_parameters=LONG)
    model, notices = make_model(folder, "wave", max_new_tokens=4), list[str]()
    options = Options(device="cpu", notice=notices.append)
    path = run(model, CORPUS, out=tmp_path / "wave.jsonl", limit=1, options=options)
    assert "`rope_type: longrope`" in " ".join(notices)
    path = run(model, CORPUS, out=path, options=options)
    record, _ = read_journal(path)
    assert record.fallback is not None
    assert "longrope" in record.fallback
    # The identity is that of the entry, so that a finished run needs no weights.
    before = path.read_bytes()
    assert run(model, CORPUS, out=path, options=options).read_bytes() == before
    plain = run(make_model(folder, max_new_tokens=4), CORPUS, out=tmp_path / "plain.jsonl")
    assert read_journal(plain)[0].fallback is None
    assert first_lines(path) == first_lines(plain)
    with pytest.raises(EngineError, match=r"longrope.*Leave `mode` out"):
        run(make_model(folder, "wave", mode="constrained"), CORPUS, out=tmp_path)


def test_a_run_goes_on_with_the_engine_of_its_first_answers(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: Local) -> int:
        raise UnsupportedAttentionError("it differs")

    model = make_model(weights, "wave", max_new_tokens=4)
    paths = [tmp_path / f"{i}.jsonl" for i in range(2)]
    notices: list[str] = []
    options = Options(device="cpu", notice=notices.append)
    with monkeypatch.context() as patch:
        patch.setattr(proof, "prove", refuse)
        run(model, CORPUS, out=paths[0], shard="0/2", limit=2, options=options)
    run(model, CORPUS, out=paths[0], shard="0/2", options=options)
    assert notices == ["Tiny: it differs; asking one question at a time"] * 2
    run(model, CORPUS, out=paths[1], shard="1/2", options=options)
    assert len(notices) == 2
    # The other way round, the user is told.
    with monkeypatch.context() as patch:
        run(model, CORPUS, out=tmp_path / "own.jsonl", limit=1, options=options)
        patch.setattr(proof, "prove", refuse)
        run(model, CORPUS, out=tmp_path / "own.jsonl", options=options)
    assert "11 questions were answered at an earlier start, without this" in notices[-1]
    headers = [line for line in paths[0].read_text().splitlines() if '"record"' in line]
    first, *later = (json.loads(line)["record"]["fallback"] for line in headers)
    assert (first, set(later)) == (None, {"it differs"})
    assert join(paths, tmp_path / "joined.jsonl", CORPUS).fallback == "it differs"
