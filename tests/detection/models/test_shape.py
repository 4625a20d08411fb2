"""Memory from configurations, against Transformers' own models and what their makers publish."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from transformers import (
    AutoModelForCausalLM,
    DynamicCache,
    Gemma3TextConfig,
    GptOssConfig,
    Llama4TextConfig,
    LlamaConfig,
    PreTrainedConfig,
    Qwen2Config,
    Qwen3Config,
)

from cradle_lib.detection import load_registry
from cradle_lib.detection.models.hosting import GIGABYTE, Gpu, constraint, fit, serve_command
from cradle_lib.detection.models.shape import Shape
from cradle_lib.detection.parsing import Outcome, read_answer
from cradle_lib.errors import RegistryError
from cradle_lib.labels import LABELS, NONE

# Parameters that the makers' own pages state, in billions; two of them see images, which is
# not counted here.
STATED = {
    "llama-3.3-70b-vllm": (LlamaConfig, 70.6, 0.0),
    "llama-4-scout-17b-vllm": (Llama4TextConfig, 109.0, 0.9),
    "gemma-3-27b-vllm": (Gemma3TextConfig, 27.4, 0.42),
    "qwen2.5-72b-vllm": (Qwen2Config, 72.7, 0.0),
    "qwen3-14b-vllm": (Qwen3Config, 14.8, 0.0),
    "qwen3-32b-vllm": (Qwen3Config, 32.8, 0.0),
    "gpt-oss-20b-vllm": (GptOssConfig, 20.9, 0.0),
    "gpt-oss-120b-vllm": (GptOssConfig, 116.8, 0.0),
}
# Bytes of the checkpoints that OpenAI's model card states.
STATED_BYTES = {"gpt-oss-20b-vllm": 12.8 * 2**30, "gpt-oss-120b-vllm": 60.8 * 2**30}


def shape_of(name: str) -> Shape:
    shape = load_registry()[name].shape
    assert shape is not None
    return shape


def config_of(name: str, **changes: Any) -> PreTrainedConfig:
    shape = shape_of(name)
    fields: dict[str, Any] = {
        "num_hidden_layers": shape.layers,
        "hidden_size": shape.hidden,
        "num_attention_heads": shape.heads,
        "num_key_value_heads": shape.key_heads,
        "head_dim": shape.head_size,
        "intermediate_size": shape.intermediate,
        "vocab_size": shape.vocabulary,
        "tie_word_embeddings": shape.tied,
    }
    if shape.experts:
        fields["num_local_experts"] = shape.experts
    kind: Any = STATED[name][0]
    return kind(**(fields | changes))


@pytest.mark.parametrize("name", STATED)
def test_parameters_are_those_of_transformers_and_of_the_maker(name: str) -> None:
    shape = shape_of(name)
    # Biases are left out here. The layers are alike: two of them, on no device, tell what one has.
    sizes = []
    for layers in (1, 2):
        with torch.device("meta"):
            model = AutoModelForCausalLM.from_config(config_of(name, num_hidden_layers=layers))
        sizes.append(sum(parameter.numel() for parameter in model.parameters()))
    whole = sizes[0] + (shape.layers - 1) * (sizes[1] - sizes[0])
    assert shape.parameters == pytest.approx(whole, rel=5e-4)
    _, stated, images = STATED[name]
    assert shape.parameters / 1e9 + images == pytest.approx(stated, rel=5e-3)
    if name in STATED_BYTES:
        assert shape.weight_bytes == pytest.approx(STATED_BYTES[name], rel=0.02)
    else:
        assert shape.weight_bytes == 2 * shape.parameters


def test_every_open_model_of_the_paper_has_such_an_entry() -> None:
    registry = load_registry()
    open_models = [m for m in registry.sound if m.group == "open" and m.engine == "reference"]
    assert {f"{model.id}-vllm" for model in open_models} == set(STATED)
    for model in open_models:
        served = registry[f"{model.id}-vllm"]
        assert served.weights == model.weights
        assert "never run" in str(served.hardware)


def small(**changes: Any) -> Shape:
    fields = {
        "layers": 3, "hidden": 16, "heads": 4, "key_heads": 2, "head_size": 8,
        "intermediate": 24, "vocabulary": 50, "source": "a test", "date": "2026-11-23",
    }  # fmt: skip
    return Shape.model_validate(fields | changes)


def test_a_sequence_takes_what_transformers_cache_takes() -> None:
    # In two bytes each, as the weights.
    cache = DynamicCache()
    for layer in range(3):
        keys = torch.zeros(1, 2, 11, 8, dtype=torch.bfloat16)
        cache.update(keys, keys.clone(), layer)
    held = sum(t.nbytes for layer in cache.layers for t in (layer.keys, layer.values))
    assert small().cache_bytes(11) == held
    # Two of three layers look back 4 tokens only.
    windowed = small(window=4, full_layers=1)
    assert windowed.cache_bytes(11) == held * (11 + 4 + 4) // 33
    assert windowed.cache_bytes(3) == small().cache_bytes(3)


GPUS = {gb: Gpu(f"{gb} GB", gb * GIGABYTE, gb * GIGABYTE) for gb in (16, 24, 40, 80, 141)}


@pytest.mark.parametrize(
    ("name", "gb", "count", "fits", "told"),
    [
        # 65.5 GB of weights and 4.3 of keys and values: into 72, not into 4 x 14.4.
        ("qwen3-32b-vllm", 80, 1, True, "on 1 of 1"),
        ("qwen3-32b-vllm", 24, 4, True, "on 4 of 4"),
        ("qwen3-32b-vllm", 16, 4, False, "58 GB can be used here"),
        # Forty heads: five GPUs can't share them, so that four do.
        ("qwen3-14b-vllm", 16, 5, True, "on 4 of 5"),
        ("qwen3-14b-vllm", 24, 1, False, "22 GB can be used here"),
        ("gpt-oss-120b-vllm", 80, 1, True, "on 1 of 1"),
        ("llama-3.3-70b-vllm", 80, 2, False, "144 GB can be used here"),
        ("llama-3.3-70b-vllm", 141, 2, True, "on 2 of 2"),
    ],
)
def test_what_fits_is_said_and_why_what_does_not(
    name: str, gb: int, count: int, fits: bool, told: str
) -> None:
    found, sentence = fit(shape_of(name), [GPUS[gb]] * count)
    assert (found, told in sentence) == (fits, True), sentence


def test_memory_that_others_use_is_not_free() -> None:
    busy = Gpu("busy", 80 * GIGABYTE, 40 * GIGABYTE)
    assert not fit(shape_of("qwen3-32b-vllm"), [busy])[0]
    assert fit(shape_of("qwen3-32b-vllm"), [])[1].endswith("no GPU is seen")


def test_the_command_names_what_the_entry_says() -> None:
    registry = load_registry()
    model = registry["qwen3-32b-vllm"].model_copy(
        update={"revision": "c0ffee", "base_url": "http://10.0.0.7:9000/v1"}
    )
    words = serve_command(model, memory=24 * GIGABYTE, context=8192, constrained=True)
    options = dict(zip(words[3::2], words[4::2], strict=False))
    assert words[:3] == ["vllm", "serve", "Qwen/Qwen3-32B"]
    assert options["--served-model-name"] == model.weights
    assert options["--tensor-parallel-size"] == "4"
    assert (options["--max-model-len"], options["--revision"]) == ("8192", "c0ffee")
    assert (options["--host"], options["--port"]) == ("10.0.0.7", "9000")
    assert "--enable-prefix-caching" in words
    assert "--structured-outputs-config.backend" in words
    other = serve_command(model, "sglang", gpus=2)
    assert other[other.index("--tp-size") + 1] == "2"
    assert "--grammar-backend" not in other


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("keyword", {}, "is not asked through a server of one's own"),
        ("gpt-5.1", {}, "is not asked through a server of one's own"),
        ("qwen3-32b-vllm", {"server": "magic"}, "no server 'magic'. Choose vllm or sglang"),
        ("qwen3-32b-vllm", {"gpus": 3}, "64 heads can't be divided among 3 GPUs"),
        ("qwen3-32b-vllm", {"memory": 1e9}, "not even 16 GPUs of 1 GB"),
        ("smollm2-135m-openai", {}, "has no 'shape'"),
    ],
)
def test_what_can_not_be_served_is_said(name: str, options: Any, message: str) -> None:
    with pytest.raises(RegistryError, match=message):
        serve_command(load_registry()[name], **options)


def test_the_constraint_lets_only_answers_through_that_parse() -> None:
    import json
    import re

    name, _, value = constraint("sglang").partition("=")
    pattern = re.compile(json.loads(value)["regex"])
    assert name == "extra"
    for answer in (NONE, *LABELS, "; ".join(LABELS[:3])):
        assert pattern.fullmatch(answer)
        assert read_answer(answer)[0] is Outcome.OK
    for answer in ("None.", "alert", "none; alert_past", "alert_past;", ""):
        assert not pattern.fullmatch(answer)
    assert json.loads(constraint("vllm").partition("=")[2])["structured_outputs"]["regex"]
