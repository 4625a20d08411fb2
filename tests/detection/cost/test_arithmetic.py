"""The cost model, against PyTorch's own counters, worked fractions and plain loops."""

from __future__ import annotations

from datetime import date as Date  # noqa: N812 - a field is called date
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM, Qwen3Config

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Journal, Outcome, Prediction
from cradle_lib.detection.cost.arithmetic import (
    H200,
    QWEN3_32B,
    Machine,
    Workload,
    lanes,
    large_model_assumptions,
    large_model_costs,
    one_by_one,
    waves,
    workload,
)
from cradle_lib.detection.local.wave.engine import LARGEST_WAVE
from cradle_lib.detection.models.shape import Shape
from cradle_lib.errors import JournalError
from cradle_lib.record import Record

TINY = Shape(
    layers=2,
    hidden=8,
    heads=4,
    key_heads=2,
    head_size=4,
    intermediate=16,
    vocabulary=50,
    source="none",
    date=Date(2026, 1, 1),
)
# One operation a second and a byte a second, all of it reached.
PLAIN = Machine("plain", 1.0, 1.0, 1e9, 1.0, 1.0, 1.0)


def qwen(decoder: Shape, device: str) -> Any:
    config = Qwen3Config(
        vocab_size=decoder.vocabulary,
        hidden_size=decoder.hidden,
        intermediate_size=decoder.intermediate,
        num_hidden_layers=decoder.layers,
        num_attention_heads=decoder.heads,
        num_key_value_heads=decoder.key_heads,
        head_dim=decoder.head_size,
        tie_word_embeddings=False,
    )
    with torch.device(device):
        return AutoModelForCausalLM.from_config(config, attn_implementation="eager")


def test_qwen3_32b_has_the_parameters_of_its_architecture_in_transformers() -> None:
    lm = qwen(QWEN3_32B, "meta")
    inside = [p.numel() for p in lm.model.layers.parameters() if p.dim() == 2]
    assert QWEN3_32B.linear == sum(inside)
    assert QWEN3_32B.head == lm.lm_head.weight.numel() == lm.model.embed_tokens.weight.numel()
    # Its model card: 32.8 billion, 31.2 of them without embeddings.
    assert round((QWEN3_32B.linear + 2 * QWEN3_32B.head) / 1e9, 1) == 32.8
    assert round(QWEN3_32B.linear / 1e9, 1) == 31.2
    # 2 (keys and values) x 64 layers x 8 heads x 128 x 2 bytes = 256 KiB a token.
    assert QWEN3_32B.cache_bytes(1) == 256 * 1024


def test_operations_are_those_that_pytorch_counts() -> None:
    lm = qwen(TINY, "cpu")
    with FlopCounterMode(display=False) as counter, torch.no_grad():
        lm(torch.arange(9).unsqueeze(0), use_cache=False, logits_to_keep=3)
    # Eager attention also computes the pairs that the mask hides: 9 x 9.
    assert counter.get_total_flops() == TINY.operations(9, 81, 3)


def work(*turns: tuple[int, int, int], dialogues: int = 1) -> Workload:
    prompt, cached, answer = np.array(turns, dtype=np.int64).T
    return Workload(prompt, cached, answer, dialogues)


def test_a_worked_example_one_by_one() -> None:
    # Linear: 2 layers x (8 x 4 x (2x4 + 2x2) + 3 x 8 x 16) = 2 x (384 + 384) = 1536. Head: 400.
    assert (TINY.linear, TINY.head) == (1536, 400)
    # One prompt of 3 tokens, an answer of 2: pairs 1 + 2 + 3 = 6, then one token with 4 pairs.
    cost = one_by_one(work((3, 0, 2)), TINY, PLAIN)
    assert (cost.tokens, cost.passes) == (4, 2)
    # 2 x 1536 x 4 + 4 x 2 layers x 4 heads x 4 x (6 + 4) + 2 x 400 x 2.
    assert cost.operations == 12_288 + 1_280 + 1_600
    # Weights twice: 2 x 2 bytes x 1936; a token is 2 x 2 x 2 x 4 x 2 = 64 bytes: 4 of them read.
    assert cost.bytes_read == 7_744 + 256
    # Both passes compute longer than they read.
    assert cost.seconds == cost.operations
    # Weights of 2 x (1536 + 800), and five tokens.
    assert cost.bytes_held == 4_672 + 5 * 64


def test_a_worked_example_in_waves() -> None:
    # Two turns of one dialogue: the prefix has 2 tokens, the second prompt shares 4.
    job = work((4, 2, 1), (6, 4, 2))
    assert (job.prefix, job.longest) == (2, 6)
    cost = waves(job, TINY, PLAIN, wave=1)
    # 2 + 2 new prompt tokens, 1 token of the answer, the prefix once.
    assert cost.tokens == 2 + 2 + 1 + 2
    # Pairs: (3 + 4) + (5 + 6 + 7), and 1 + 2 in the prefix; three tokens are predicted.
    assert cost.operations == 2 * 1536 * 7 + 4 * 2 * 4 * 4 * (7 + 18 + 3) + 2 * 400 * 3
    # 3 passes and the prefix's own. Own tokens read: 2 of the first prompt, 4 and 5 of the second.
    assert cost.passes == 4
    assert cost.bytes_read == 4 * (2 * 1936 + 2 * 64) + (2 + 4 + 5) * 64
    assert cost.bytes_held == 4_672 + (6 + 2) * 64


def loop_one_by_one(job: Workload) -> tuple[int, int]:
    tokens = pairs = 0
    for prompt, _, answer in zip(job.prompt, job.cached, job.answer, strict=True):
        for place in range(1, prompt + answer):
            tokens, pairs = tokens + 1, pairs + place
    return tokens, pairs


def loop_waves(job: Workload) -> tuple[int, int]:
    tokens, pairs = job.prefix, sum(range(1, job.prefix + 1))
    for prompt, cached, answer in zip(job.prompt, job.cached, job.answer, strict=True):
        for place in range(cached + 1, prompt + answer):
            tokens, pairs = tokens + 1, pairs + place
    return tokens, pairs


turns = st.tuples(st.integers(1, 30), st.integers(0, 29), st.integers(1, 6)).map(
    lambda t: (t[0], min(t[1], t[0] - 1), t[2])
)


@settings(deadline=None, max_examples=60)
@given(st.lists(turns, min_size=1, max_size=12))
def test_tokens_and_pairs_are_those_of_a_loop_over_every_token(
    rows: list[tuple[int, int, int]],
) -> None:
    job = work(*rows)
    predicted = sum(answer for *_, answer in rows)
    for cost, (tokens, pairs) in (
        (one_by_one(job, TINY, PLAIN), loop_one_by_one(job)),
        (waves(job, TINY, PLAIN, 4), loop_waves(job)),
    ):
        assert cost.tokens == tokens
        assert cost.operations == TINY.operations(tokens, pairs, predicted)


def test_time_is_that_of_the_slower_side() -> None:
    machine = Machine("m", 100.0, 10.0, 1e9, rate_share=0.5, bandwidth_share=0.8)
    assert machine.seconds(1000, 8) == 20  # 1000 / 50
    assert machine.seconds(1000, 400) == 50  # 400 / 8


def test_the_wave_is_what_fits_beside_the_weights() -> None:
    job = work((4, 2, 1), (6, 4, 2), dialogues=100)
    # 4,672 bytes of weights, 2 x 64 of prefix; a slot of 6 tokens takes 384: room for 3.
    room = Machine("m", 1.0, 1.0, 4_672 + 128 + 3 * 384 + 383, memory_share=1.0)
    assert lanes(job, TINY, room) == 3
    assert lanes(job, TINY, PLAIN) == LARGEST_WAVE < 100
    assert lanes(work((4, 2, 1), (6, 4, 2), dialogues=5), TINY, PLAIN) == 5
    assert lanes(job, TINY, Machine("m", 1.0, 1.0, 1.0)) == 1
    held = waves(job, TINY, room, 3).bytes_held
    assert held <= room.memory


def test_more_dialogues_at_once_are_never_slower_on_a_real_machine() -> None:
    job = work(*[(2000 + 50 * t, 2000 + 50 * (t - 1) if t else 1990, 5) for t in range(20)])
    times = [waves(job, QWEN3_32B, H200, n).seconds for n in (1, 2, 8, 64)]
    assert times == sorted(times, reverse=True)
    assert times[0] < one_by_one(job, QWEN3_32B, H200).seconds


def test_a_workload_is_read_from_predictions() -> None:
    def made(turn: int, outcome: Outcome, *tokens: int | None) -> Prediction:
        names = ("tokens_in", "tokens_cached", "tokens_out")
        more: dict[str, Any] = dict(zip(names, tokens, strict=True))
        return Prediction("d1", turn, "", "", 0, outcome, **more)

    answered = made(0, Outcome.OK, 30, 20, 3)
    silent = made(2, Outcome.UNPARSED, 40, 35, 0)
    failed = made(4, Outcome.FAILED, 9000, None, None)
    job = workload([answered, silent, failed])
    assert job.prompt.tolist() == [30, 40]
    assert job.cached.tolist() == [20, 35]
    assert job.answer.tolist() == [3, 1]
    assert job.dialogues == 1
    with pytest.raises(JournalError, match="does not say how many tokens"):
        workload([made(0, Outcome.OK, 30, None, 3)])
    with pytest.raises(JournalError, match="no answered turn"):
        workload([failed])


def test_what_is_calculated_rests_on_a_journal(
    tmp_path: Path, corpus: Corpus, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paths, "RUNS", tmp_path)
    monkeypatch.setattr(paths, "SHIPPED_RUNS", tmp_path / "shipped")
    assert large_model_costs(corpus, "smollm2-135m-constrained").empty
    record = Record.create(
        model="smollm2-135m-constrained", name="M", group="embedded", engine="wave",
        prompt="turn", prompt_hash="0" * 16, decoding={}, corpus=corpus.name,
        corpus_fingerprint=corpus.fingerprint,
    )  # fmt: skip
    path = tmp_path / corpus.name / "smollm2-135m-constrained.jsonl"
    with Journal.open(path, record) as journal:
        for turn in range(4):
            sizes = (2000 + 100 * turn, 2000 + 100 * turn - 60, 5)
            journal.append(Prediction("d0001", turn, "", "none", 0, Outcome.OK, None, *sizes))
    costs = large_model_costs(corpus, "smollm2-135m-constrained")
    # One dialogue alone can't share the weights: 5 passes a turn, and as many one by one.
    assert costs.index.tolist() == ["one prompt at a time", "waves of 1"]
    # 2,000 to 2,300 tokens and 4 x 4 of answers; 60 new ones each and the prefix of 1,940 once.
    assert costs["tokens"].tolist() == [8600 + 16, 4 * 60 + 16 + 1940]
    assert costs["passes"].iloc[0] == 20
    assert {str(kind) for kind in costs.dtypes} == {"float64"}


def test_every_input_of_the_calculation_is_listed() -> None:
    frame = large_model_assumptions()
    values = dict(zip(frame["quantity"], frame["value"], strict=True))
    # config.json of Qwen3-32B, and the data sheet of an H200.
    assert (values["Layers"], values["Intermediate size"]) == (64, 25_600)
    assert values["Parameters (10^9), from these"] == pytest.approx(32.8, abs=0.05)
    assert values["Bytes of memory (10^9)"] == 141
    assert frame["about"].nunique() == 2
