"""Estimates of memory, compared with the allocations of a real training step and inference."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from transformers import CONFIG_MAPPING, AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast

from cradle_engines.library_logs import quiet
from cradle_extras.training.memory import estimate_memory
from cradle_extras.training.recipe import AdapterSettings, Recipe
from cradle_extras.training.sequences import TokenTree
from cradle_extras.training.trainer import TreeTrainer
from cradle_lib.errors import EngineError

from ...engines.local.tiny_models import make_random

TOKENS = 500
ORDER = np.arange(TOKENS)
ANSWERS = ORDER[1::25]
TREE = TokenTree(ORDER * 0, ORDER - 1, ANSWERS, ANSWERS > 0, 1, 0, TOKENS)
SIZES = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 5, "head_dim": 16}


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
        ("qwen3", LORA),
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
    assert expected.activations == pytest.approx(peak(events), rel=0.15)
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
