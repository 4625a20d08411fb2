"""Models over several devices: their tensors, the batch that fits, and offloaded weights."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import CONFIG_MAPPING, AutoModelForCausalLM

from cradle_engines.local import devices, load
from cradle_engines.local.devices import weights_size
from cradle_engines.local.load import place_weights
from cradle_engines.local.local_engine import Local
from cradle_engines.local.wave.engine import LARGEST_WAVE, Wave, affordable_size
from cradle_engines.local.wave.proof import prove
from cradle_lib.detection import Options, Prediction, Session
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

from ...detection.dialogues import make_corpus
from .tiny_models import first_prompt, make_model, make_random

pytestmark = pytest.mark.usefixtures("short_prompt")

# The parts of a tiny model.
PARTS = ("model.embed_tokens", "model.rotary_emb", "model.layers.0", "model.layers.1")
PARTS += ("model.norm", "lm_head")
# A model with layers on two devices, as PyTorch computes the devices of tensors without memory.
# This PyTorch may be built without CUDA, so that the devices are of a kind that it lets programs
# define. FakeTensorMode does not check the devices of indices, which a GPU does.
TWO_DEVICES = """
import torch
from accelerate import dispatch_model
from torch._subclasses import fake_tensor
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _setup_privateuseone_for_python_backend
from transformers import AutoConfig, AutoModelForCausalLM

_setup_privateuseone_for_python_backend("twin")
# Otherwise PyTorch would ask the devices for memory, and compute small tensors.
FakeTensorMode.avoid_device_init = property(lambda self: True)
fake_tensor.CONSTANT_NUMEL_LIMIT = -1

from cradle_engines.local.wave.attention import BatchLayout, KeyValueStore, Piece, forward, sharing


class CheckIndices(TorchDispatchMode):
    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func in (torch.ops.aten.index.Tensor, torch.ops.aten.index_put_.default):
            indices = [each for each in args[1] if each is not None]
            assert {each.device for each in indices} <= {torch.device("cpu"), args[0].device}
        return func(*args, **(kwargs or {}))


ONE, TWO = torch.device("twin:0"), torch.device("twin:1")
PLACES = {"model.embed_tokens": ONE, "model.rotary_emb": ONE, "model.layers.0": ONE}
PLACES |= {"model.layers.1": TWO, "model.norm": TWO, "lm_head": TWO}
for folder in FOLDERS:
    with FakeTensorMode(), CheckIndices(), torch.inference_mode():
        config = AutoConfig.from_pretrained(folder)
        lm = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).eval()
        for name, place in PLACES.items():
            for module in lm.get_submodule(name).modules():
                for own in (module._parameters, module._buffers):
                    for key, tensor in own.items():
                        own[key] = tensor if tensor is None else tensor.to(place)
        for module in lm.modules():
            for key, tensor in module._parameters.items():
                if tensor is not None:
                    module._parameters[key] = torch.nn.Parameter(tensor, requires_grad=False)
        dispatch_model(lm, PLACES, main_device=ONE)
        store = KeyValueStore(3)
        with sharing(lm, store):
            forward(lm, store, BatchLayout([Piece(0, 0, 9)], ONE), range(9), [])
            store.freeze_prefix(9, lm)
            # Long and short pieces, which are computed apart.
            for start, lengths in ((0, (20, 3, 1)), (1, (1, 2, 1))):
                pieces = [Piece(slot, start, length) for slot, length in enumerate(lengths)]
                ids = range(sum(lengths))
                logits = forward(lm, store, BatchLayout(pieces, ONE), ids, [0, 2])
                assert logits.shape == (2, 400)
        assert [store.own[layer][0].device for layer in (0, 1)] == [ONE, TWO]
"""


def test_layers_on_two_devices_get_masks_and_indices_on_their_own(
    families: dict[str, Path],
) -> None:
    # Without and with sliding windows and attention sinks.
    folders = [str(families[family]) for family in ("llama", "gpt-oss")]
    program = TWO_DEVICES.replace("FOLDERS", repr(folders))
    done = subprocess.run(
        (sys.executable, "-W", "ignore", "-c", program),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_weights_that_are_offloaded_to_disk_give_the_same_answers(
    loaded: Local, tmp_path: Path
) -> None:
    offloaded = ("model.embed_tokens", "model.layers.1", "lm_head")
    places = {name: "disk" if name in offloaded else "cpu" for name in PARTS}
    lm = AutoModelForCausalLM.from_pretrained(
        loaded.lm.name_or_path,
        device_map=places,
        offload_folder=str(tmp_path / "offloaded"),
    ).eval()
    lm.generation_config = loaded.lm.generation_config
    spread = Local("spread", lm, loaded.tokenizer, loaded.decoding, loaded.shipped)
    assert prove(spread) == prove(loaded)
    corpus = make_corpus([[("User", "hello", "none")], [("User", "so tired", "none")]])
    found = []
    for local in (loaded, spread):
        predictions: list[Prediction] = []
        engine = Wave(make_model(Path(loaded.lm.name_or_path), "wave"), Options(), local)
        sessions = [Session(dialogue, load_template("short")) for dialogue in corpus]
        engine.answer_all(sessions, predictions.append)
        assert engine.fallback is None
        found.append([(p.dialogue, p.outcome, p.answer) for p in predictions])
    assert found[0] == found[1]


@pytest.mark.parametrize(
    ("exhausted", "allocate"),
    [
        ("cradle_engines.local.own_forward.own_logits", lambda: bytearray(1 << 60)),
        # Transformers collects exceptions in the conversion of experts, and raises another one.
        (
            "transformers.core_model_loading.MergeModulelist.convert",
            lambda: torch.empty(1 << 55),
        ),
    ],
)
def test_weights_for_which_memory_runs_out_are_not_called_damaged(
    exhausted: str, allocate: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(exhausted, lambda *_, **__: allocate())
    model = make_model(make_random(tmp_path / "weights", "mixtral"))
    model = model.model_copy(update={"hardware": "a large GPU"})
    with pytest.raises(EngineError, match=r"Tiny does not fit on cpu\. It needs a large GPU"):
        load.load_weights(model, Options(device="cpu"))


def test_the_device_with_the_least_memory_for_its_layers_limits_the_batch(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    [dialogue] = make_corpus([[("User", "x" * 400, "none")]])
    waiting = [Session(dialogue, load_template("short"))]
    # 256 tokens, a quarter of the characters of the history, and 120 for the question.
    tokens = 256 + len(first_prompt(dialogue).history) // 4 + 120
    cpu, one, two = torch.device("cpu"), torch.device("cuda:0"), torch.device("cuda:1")
    # Memory for the keys and values of so many dialogues, twice: half of it stays free.
    free = {cpu: 2 * 3_000 * tokens, one: 2 * 40_000 * tokens, two: 2 * 14_999 * tokens}
    monkeypatch.setattr(devices, "free_memory", free.__getitem__)
    assert affordable_size(waiting, {one: 1000}) == 40
    assert affordable_size(waiting, {one: 1000, two: 1000}) == 14
    assert affordable_size(waiting, {one: 4000, two: 1000}) == 10
    assert affordable_size(waiting, {one: 1000, two: 1000, cpu: 1000}) == 3
    assert affordable_size(waiting, {two: 10**9}) == 1
    assert affordable_size(waiting, {one: 1}) == LARGEST_WAVE


# Parameters as the models' cards state them, in billions; sizes as in their configurations.
PUBLISHED = [
    (14.8, "qwen3", (5120, 17408, 40, 40, 8, 151_936)),
    (70.6, "llama", (8192, 28672, 80, 64, 8, 128_256)),
]


@pytest.mark.parametrize(("billions", "family", "sizes"), PUBLISHED)
def test_models_that_do_not_fit_on_one_gpu_are_spread_over_all(
    billions: float, family: str, sizes: tuple[int, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    names = ("hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads")
    names += ("num_key_value_heads", "vocab_size")
    more = {"head_dim": 128, "tie_word_embeddings": False} | dict(zip(names, sizes, strict=True))
    config = CONFIG_MAPPING[family](**more)
    size = weights_size(AutoModelForCausalLM, config, "bfloat16")
    assert size / 2e9 == pytest.approx(billions, abs=0.05)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    for memory in (84e9, 150e9):
        monkeypatch.setattr(torch.cuda, "mem_get_info", lambda _, memory=memory: (memory, memory))
        for gpus in (1, 2):
            monkeypatch.setattr(torch.cuda, "device_count", lambda gpus=gpus: gpus)
            expected = "auto" if gpus == 2 and 2e9 * billions > 0.9 * memory else {"": "cuda"}
            chosen = [
                place_weights(AutoModelForCausalLM, config, "bfloat16", device)
                for device in (None, "cuda:1", "cpu")
            ]
            assert chosen == [expected, {"": "cuda:1"}, None]


def test_the_loader_gets_the_chosen_devices_and_they_are_named(
    weights: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notices: list[str] = []
    places = dict.fromkeys(PARTS, "cpu") | {"model.layers.1": "disk"}
    monkeypatch.setattr(load, "place_weights", lambda *_: places)
    lm, _ = load.load_weights(make_model(weights), Options(notice=notices.append))
    assert [layer.mlp.up_proj.weight.device.type for layer in lm.model.layers] == ["cpu", "meta"]
    assert notices == [
        "Tiny does not fit on one GPU. Its layers are spread over cpu, disk. "
        "Layers outside the GPUs make it many times slower."
    ]
