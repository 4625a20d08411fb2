"""Estimates of memory, compared with the allocations of a real training step and inference."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from transformers import CONFIG_MAPPING, AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from cradle_engines.library_logs import quiet
from cradle_extras.training.memory import estimate_memory
from cradle_extras.training.recipe import AdapterSettings, Recipe, load_recipe, recipe_names
from cradle_extras.training.sequences import TokenTree
from cradle_extras.training.trainer import TreeTrainer
from cradle_lib.detection.models.registry import load_registry, resolve
from cradle_lib.errors import EngineError

from ...engines.local.tiny_models import make_random
from ...notebooks.test_documented_commands import text_of

TOKENS = 500
ORDER = np.arange(TOKENS)
ANSWERS = ORDER[1::25]
TREE = TokenTree(ORDER * 0, ORDER - 1, ANSWERS, ANSWERS > 0, 1, 0, TOKENS)
SIZES = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 5, "head_dim": 16}


@pytest.fixture(autouse=True)
def without_scratch(monkeypatch: pytest.MonkeyPatch) -> None:
    """Turns oneDNN off: with some processors its kernels allocate space of their own."""
    monkeypatch.setattr(torch.backends.mkldnn, "enabled", False)


def peak(events: Any) -> int:
    """The highest sum of allocations that PyTorch's profiler recorded, above the start."""
    now = highest = 0
    found = events.profiler.kineto_results.events()
    for event in sorted(found, key=lambda event: event.start_ns()):
        if event.name() == "[memory]":
            now += event.nbytes()
            highest = max(highest, now)
    return highest


LORA = Recipe(adapter=AdapterSettings(rank=4))
ALL = Recipe()


def checkpointed(recipe: Recipe) -> Recipe:
    return recipe.model_copy(update={"gradient_checkpointing": True})


@pytest.mark.parametrize(
    ("kind", "recipe"),
    [
        ("llama", checkpointed(LORA)),
        ("llama", Recipe(adapter=AdapterSettings(rank=4, layers=3))),
        ("qwen3", checkpointed(ALL)),
        ("gemma3_text", ALL),
        ("qwen2", Recipe(dtype="float32")),
        ("gpt_oss", LORA),
    ],
)
def test_training_step(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, recipe: Recipe
) -> None:
    measured = []
    real = TreeTrainer.training_step

    def training_step(*arguments: Any) -> Any:
        with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as events:
            loss = real(*arguments)
        measured.append(peak(events))
        return loss

    monkeypatch.setattr(TreeTrainer, "training_step", training_step)
    weights = make_random(tmp_path / "weights", kind, **SIZES)
    config = AutoConfig.from_pretrained(weights)
    lm = AutoModelForCausalLM.from_pretrained(weights, dtype=getattr(torch, recipe.base_dtype))
    tokenizer = PreTrainedTokenizerFast.from_pretrained(weights)
    # In the second step the gradients exist already.
    once = recipe.model_copy(update={"epochs": 1, "accumulation": 2})
    with quiet():
        trainer = TreeTrainer(lm, tokenizer, [TREE] * 2, once, tmp_path / "out", lambda *_: None)
        trainer.run(None)
    expected = estimate_memory(config, TOKENS, recipe)
    assert expected.activations == pytest.approx(measured[1], rel=0.05)
    parameters = list(trainer.model.parameters())
    assert expected.weights == sum(each.nbytes for each in parameters)
    assert expected.gradients == sum(each.nbytes for each in parameters if each.requires_grad)
    states = trainer.optimizer.state.values()
    moments = sum(each["exp_avg"].nbytes + each["exp_avg_sq"].nbytes for each in states)
    assert expected.optimizer == moments


@pytest.mark.parametrize("kind", ["llama", "gemma3_text", "gpt_oss"])
def test_inference(tmp_path: Path, kind: str) -> None:
    weights = make_random(tmp_path / "weights", kind, **SIZES)
    lm: Any = AutoModelForCausalLM.from_pretrained(weights, dtype=torch.bfloat16)
    ids = torch.zeros(1, TOKENS, dtype=torch.long)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as events:
        lm.generate(ids, max_new_tokens=1, do_sample=False)
    expected = estimate_memory(lm.config, TOKENS)
    assert expected.activations == pytest.approx(peak(events), rel=0.05)
    assert expected.weights == sum(each.nbytes for each in lm.parameters())
    assert (expected.gradients, expected.optimizer) == (0, 0)


@pytest.mark.parametrize(
    ("kind", "recipe", "words"),
    [
        ("jamba", None, "jamba models is not estimated .*Measure it on a GPU"),
        ("gpt2", LORA, "gpt2 models is not estimated .*Target modules"),
    ],
)
def test_what_cannot_be_estimated_is_refused(kind: str, recipe: Recipe | None, words: str) -> None:
    with pytest.raises(EngineError, match=words):
        estimate_memory(CONFIG_MAPPING[kind](), 50, recipe)


def shaped(kind: str, *sizes: int, **more: Any) -> Any:
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    names += ("num_key_value_heads", "vocab_size")
    untied = {"tie_word_embeddings": False} | more
    return CONFIG_MAPPING[kind](**dict(zip(names, sizes, strict=False)), **untied)


# Sizes in the `config.json` of the published models.
PUBLISHED = {
    "qwen3-14b": shaped("qwen3", 5120, 17408, 40, 40, 8, 151936, head_dim=128),
    "qwen3-32b": shaped("qwen3", 5120, 25600, 64, 64, 8, 151936, head_dim=128),
    "gemma-3-27b": shaped(
        "gemma3_text", 5376, 21504, 62, 32, 16, 262208, head_dim=128, tie_word_embeddings=True
    ),
    "gpt-oss-20b": shaped("gpt_oss", 2880, 2880, 24, num_local_experts=32),
    "gpt-oss-120b": shaped("gpt_oss", 2880, 2880, 36, num_local_experts=128),
    "llama-3.3-70b": shaped("llama", 8192, 28672, 80, 64, 8, 128256),
    "qwen2.5-72b": shaped("qwen2", 8192, 29568, 80, 64, 8, 152064),
    "llama-4-scout-17b": shaped("llama4_text", 5120, 8192, 48, 40, 8, 202048, num_local_experts=16),
}
GUIDE = text_of("notebooks/run-a-model.ipynb")
ROWS = re.findall(
    r"^\| `(\S+)` \| ([^|]+) \| (\d+) \| (\d+) \| (\d) GPUs? with (\d+) GB[^|]*\|", GUIDE, re.M
)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row[0]} {row[1]}")
def test_the_table_of_the_guide(row: tuple[str, ...]) -> None:
    name, task, *numbers = row
    states, activations, gpus, size = map(int, numbers)
    recipe = None if task == "inference" else load_recipe(task.split("`")[1])
    if "gradient_checkpointing: false" in task:
        recipe = recipe and recipe.model_copy(update={"gradient_checkpointing": False})
    found = estimate_memory(PUBLISHED[name], 4_096 if recipe else 8_500, recipe, gpus=gpus)
    assert round(gpus * (found.total - found.activations) / 1e9) == states
    assert round(found.activations / 1e9) == activations
    if task == "inference":
        assert f"{gpus} GPU{'s' * (gpus > 1)} with {size} GB" in str(resolve(name).hardware)
    # The paper's recipe keeps the states in the machine's memory.
    held = 0 if task == "`paper`" else states / gpus
    assert held + activations < size


def test_the_guide_lists_all_open_models_and_large_recipes() -> None:
    assert {name for name, *_ in ROWS} == PUBLISHED.keys()
    listed = {task.split("`")[1] for _, task, *_ in ROWS if "`" in task}
    assert listed == {name for name in recipe_names() if name != "processor"}
    open_models = {
        name for name, m in load_registry().items() if m.group == "open" and m.kind == "local"
    }
    assert PUBLISHED.keys() == open_models
