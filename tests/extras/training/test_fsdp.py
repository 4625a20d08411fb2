"""The precision of the recipe `paper` when FSDP shards the weights, in one process on a CPU.

Accelerate refuses FSDP without a GPU, so its wrapper is called with the settings that
``accelerate launch --config_file two-gpus.accelerate.yml`` reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import yaml
from torch import distributed
from transformers import AutoModelForCausalLM

from cradle_extras.training.recipe import SHIPPED, load_recipe

from ...engines.local.tiny_models import make_weights

STEPS = 8


@pytest.fixture
def one_process() -> Iterator[None]:
    distributed.init_process_group("gloo", store=distributed.HashStore(), rank=0, world_size=1)
    yield
    distributed.destroy_process_group()


def sharded(lm: Any) -> Any:
    """Wraps a model as accelerate does for the shipped settings, without offloading to the host."""
    from accelerate.utils import FullyShardedDataParallelPlugin
    from accelerate.utils.fsdp_utils import fsdp2_prepare_model

    config = yaml.safe_load((SHIPPED / "two-gpus.accelerate.yml").read_text("utf-8"))
    settings = {key.removeprefix("fsdp_"): value for key, value in config["fsdp_config"].items()}
    plugin = FullyShardedDataParallelPlugin(
        fsdp_version=settings["version"],
        auto_wrap_policy=settings["auto_wrap_policy"],
        reshard_after_forward=settings["reshard_after_forward"],
        cpu_ram_efficient_loading=False,
    )
    plugin.set_mixed_precision(config["mixed_precision"])
    accelerator = SimpleNamespace(
        state=SimpleNamespace(fsdp_plugin=plugin),
        mixed_precision=config["mixed_precision"],
        is_main_process=True,
        device=torch.device("cpu"),
    )
    return fsdp2_prepare_model(accelerator, lm)


def train(lm: Any) -> float:
    """Trains on one text. Returns the fall of the loss."""
    optimizer = torch.optim.AdamW(lm.parameters(), lr=2e-4)
    ids, losses = torch.arange(40)[None] % 23, []
    for _ in range(STEPS):
        loss = lm(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(float(loss.detach()))
    return losses[0] - losses[-1]


def test_weights_stay_in_float32_under_fsdp(tmp_path: Path, one_process: None) -> None:
    folder, recipe = make_weights(tmp_path / "tiny", context=512), load_recipe("paper")
    found = {}
    for name, dtype in (("float32", "float32"), ("paper", recipe.base_dtype)):
        lm = AutoModelForCausalLM.from_pretrained(folder, dtype=dtype).train()
        used: list[torch.dtype] = []
        if name == "paper":
            lm = sharded(lm)
        lm.model.layers[0].mlp.register_forward_pre_hook(
            lambda _, inputs, used=used: used.append(inputs[0].dtype)
        )
        found[name] = train(lm)
        assert {weight.dtype for weight in lm.parameters()} == {torch.float32}
        assert {*used} == {torch.bfloat16 if name == "paper" else torch.float32}
    assert found["paper"] == pytest.approx(found["float32"], rel=0.1)
