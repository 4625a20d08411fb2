"""What is refused on loading: tensors that would be random, and tensors that fit nothing.

The folders are what ``save_pretrained`` of real models writes, changed as real accidents change
them.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, MixtralConfig

from cradle_lib.detection.engine import Options
from cradle_lib.detection.local.local_engine import load_local
from cradle_lib.detection.local.revision import base_pin
from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError

from .tiny_models import FAMILIES, make_model, make_tokenizer, make_weights

FILE, INDEX = "model.safetensors", "model.safetensors.index.json"
Tensors = dict[str, torch.Tensor]


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The same model with one matrix for the embeddings and the output layer."""
    folder = tmp_path_factory.mktemp("tied")
    make_weights(folder)
    kind, _ = FAMILIES["llama"]
    config = kind.from_pretrained(folder)
    config.tie_word_embeddings = True
    torch.manual_seed(7)
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    return folder


def changed(
    weights: Path, folder: Path, change: Callable[[Tensors], Tensors], **config: Any
) -> Path:
    """Copies a model; changes its tensors and settings."""
    shutil.copytree(weights, folder, dirs_exist_ok=True)
    tensors = {name: tensor.clone() for name, tensor in load_file(folder / FILE).items()}
    save_file(change(tensors), folder / FILE, metadata={"format": "pt"})
    settings = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(settings | config))
    return folder


def refusal(model: Model) -> str:
    with pytest.raises(EngineError) as error:
        load_local(model, Options())
    assert "\n" not in str(error.value)
    return str(error.value)


def prefixed(prefix: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {prefix + name: tensor for name, tensor in tensors.items()}


def without(*parts: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {
        name: tensor for name, tensor in tensors.items() if not any(part in name for part in parts)
    }


def with_more(**more: torch.Tensor) -> Callable[[Tensors], Tensors]:
    named = {name.replace("__", "."): tensor for name, tensor in more.items()}
    return lambda tensors: tensors | named


def renamed(old: str, new: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name.replace(old, new): tensor for name, tensor in tensors.items()}


def quantized(tensors: Tensors) -> Tensors:
    """Eight bits and a scale for each matrix of a layer, as quantized checkpoints have them."""
    made = dict(tensors)
    for name in [name for name in tensors if name.endswith("proj.weight")]:
        scale = tensors[name].abs().max() / 127
        made[name] = (tensors[name] / scale).round().to(torch.int8)
        made[f"{name}_scale"] = scale[None]
    return made


def with_nan(tensors: Tensors) -> Tensors:
    tensors["model.layers.1.mlp.up_proj.weight"][3, 4] = torch.nan
    return tensors


def twice(tensors: Tensors) -> Tensors:
    """One tensor under two names, of which Transformers makes one."""
    name = "model.layers.0.mlp.up_proj.weight"
    return tensors | {name.removeprefix("model."): torch.zeros_like(tensors[name])}


CASES: dict[str, tuple[Callable[[Tensors], Tensors], dict[str, Any], tuple[str, ...]]] = {
    "compiled": (
        prefixed("_orig_mod."),
        {},
        ("lacks 21 tensors", "lm_head.weight", "_orig_mod.", "save `model._orig_mod`"),
    ),
    "parallel": (prefixed("module."), {}, ("lacks 21 tensors", "save the unwrapped model")),
    "no output layer": (
        without("lm_head"),
        {},
        ("lacks 1 tensor that the model needs (lm_head.weight)", "`tie_word_embeddings: true`"),
    ),
    "no norm": (without("model.norm"), {}, ("lacks 1 tensor", "model.norm.weight")),
    "a layer too few": (
        without("layers.1."),
        {},
        ("lacks 9 tensors", "model.layers.1.input_layernorm.weight, ", ", ..."),
    ),
    "a layer too many": (
        lambda tensors: tensors,
        {"num_hidden_layers": 1},
        ("has 9 tensors", "num_hidden_layers: 1, the file has 2 layers"),
    ),
    "another size": (
        lambda tensors: tensors,
        {"vocab_size": 404},
        ("lm_head.weight is [400, 32] in the file and [404, 32] by the configuration",),
    ),
    "other heads": (
        lambda tensors: tensors,
        {"num_key_value_heads": 4},
        ("k_proj.weight is [128, 32] in the file and [256, 32]",),
    ),
    "biases": (
        with_more(model__layers__0__self_attn__q_proj__bias=torch.ones(256)),
        {},
        ("no place for (model.layers.0.self_attn.q_proj.bias)",),
    ),
    "an adapter inside": (
        renamed("q_proj.weight", "q_proj.base_layer.weight"),
        {},
        ("q_proj.base_layer.weight", "merge_and_unload"),
    ),
    "quantized": (quantized, {}, ("weight_scale", "quantization_config")),
    "eight bits without a scale": (
        lambda tensors: {n: t for n, t in quantized(tensors).items() if "scale" not in n},
        {},
        ("holds I8 numbers",),
    ),
    "a classifier": (
        with_more(score__weight=torch.ones(3, 32)),
        {},
        ("score.weight", "not a language model"),
    ),
    "not a number": (with_nan, {}, ("up_proj.weight has 1 values that are NaN",)),
    "twice": (twice, {}, ("both are the model's model.layers.0.mlp.up_proj.weight",)),
}


@pytest.mark.parametrize("case", CASES)
def test_a_checkpoint_that_is_not_whole_is_refused(
    weights: Path, tmp_path: Path, case: str
) -> None:
    change, config, words = CASES[case]
    said = refusal(make_model(changed(weights, tmp_path / "changed", change, **config)))
    assert said.startswith("the weights of Tiny (")
    assert "are not whole: " in said
    for word in words:
        assert word in said


def test_tied_weights_need_no_output_layer_and_another_one_is_refused(
    tied: Path, tmp_path: Path
) -> None:
    assert "lm_head.weight" not in load_file(tied / FILE)
    lm = load_local(make_model(tied), Options()).lm
    assert lm.lm_head.weight is lm.model.embed_tokens.weight
    equal = changed(tied, tmp_path / "equal", lambda t: t | {"lm_head.weight": t[EMBEDDING] + 0})
    assert load_local(make_model(equal), Options())
    other = changed(tied, tmp_path / "other", lambda t: t | {"lm_head.weight": t[EMBEDDING] + 1})
    said = refusal(make_model(other))
    assert "config.json ties lm_head.weight to model.embed_tokens.weight" in said
    assert "Set it to false" in said
    untied = changed(other, tmp_path / "untied", lambda t: t, tie_word_embeddings=False)
    assert load_local(make_model(untied), Options())
    neither = changed(tied, tmp_path / "neither", without("embed_tokens"))
    assert "model.embed_tokens.weight" in refusal(make_model(neither))
    compiled = changed(tied, tmp_path / "compiled", prefixed("_orig_mod."))
    assert "save `model._orig_mod`" in refusal(make_model(compiled))


EMBEDDING = "model.embed_tokens.weight"


@pytest.mark.parametrize("family", FAMILIES)
def test_whole_models_of_every_family_load(family: str, tmp_path: Path) -> None:
    said: list[str] = []
    assert load_local(
        make_model(make_weights(tmp_path, family=family)), Options(notice=said.append)
    )
    assert not said


@pytest.mark.parametrize("tie", [True, False])
def test_buffers_of_older_versions_are_no_fault(tie: bool, tmp_path: Path) -> None:
    config = GPT2Config(vocab_size=400, n_embd=32, n_layer=2, n_head=4, tie_word_embeddings=tie)
    lm = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    lm.save_pretrained(tmp_path)
    make_tokenizer(tmp_path, None)
    tensors = load_file(tmp_path / FILE)
    mask = torch.ones(1, 1, 64, 64).tril().bool()
    tensors |= {
        "transformer.h.0.attn.bias": mask,
        "transformer.h.0.attn.masked_bias": torch.tensor(-1e4),
    }
    save_file(tensors, tmp_path / FILE, metadata={"format": "pt"})
    loaded = load_local(make_model(tmp_path), Options()).lm
    ids = torch.arange(20)[None]
    assert torch.equal(loaded(ids).logits, lm.eval()(ids).logits)
    # As the first checkpoints of this family are: without the name of the decoder.
    bare = {name.removeprefix("transformer."): tensor for name, tensor in tensors.items()}
    save_file(bare, tmp_path / FILE, metadata={"format": "pt"})
    assert torch.equal(load_local(make_model(tmp_path), Options()).lm(ids).logits, lm(ids).logits)


# ---- Weights in several files --------------------------------------------------------


@pytest.fixture
def sharded(weights: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "sharded"
    shutil.copytree(weights, folder)
    (folder / FILE).unlink()
    lm = AutoModelForCausalLM.from_pretrained(weights)
    lm.save_pretrained(folder, max_shard_size="60KB")
    assert len(list(folder.glob("model-*.safetensors"))) > 2
    return folder


def edit_index(folder: Path, change: Callable[[dict[str, str]], dict[str, str]]) -> None:
    index = json.loads((folder / INDEX).read_text())
    index["weight_map"] = change(index["weight_map"])
    (folder / INDEX).write_text(json.dumps(index))


def test_shards_are_one_whole(weights: Path, sharded: Path) -> None:
    one, other = (load_local(make_model(folder), Options()).lm for folder in (weights, sharded))
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])


def test_a_shard_that_the_index_does_not_name_leaves_holes(sharded: Path) -> None:
    first = sorted(sharded.glob("model-*.safetensors"))[0].name
    edit_index(sharded, lambda places: {k: v for k, v in places.items() if v != first})
    assert "that the model needs" in refusal(make_model(sharded))


def test_an_index_that_promises_more_than_its_files_have_is_refused(sharded: Path) -> None:
    file = sorted(sharded.glob("model-*.safetensors"))[1]
    tensors = load_file(file)
    lost = tensors.popitem()[0]
    save_file(tensors, file, metadata={"format": "pt"})
    assert lost in refusal(make_model(sharded))


def test_a_tensor_in_two_shards_is_refused(sharded: Path) -> None:
    one, other = sorted(sharded.glob("model-*.safetensors"))[:2]
    name, tensor = next(iter(load_file(one).items()))
    doubled = load_file(other) | {name: torch.zeros_like(tensor)}
    save_file(doubled, other, metadata={"format": "pt"})
    said = refusal(make_model(sharded))
    assert f"{name} is in " in said


def test_a_missing_shard_is_one_line(sharded: Path) -> None:
    sorted(sharded.glob("model-*.safetensors"))[0].unlink()
    assert "can't be loaded" in refusal(make_model(sharded))


def test_shards_in_another_folder_are_refused_since_no_pin_covers_them(sharded: Path) -> None:
    (sharded / "parts").mkdir()
    for file in sharded.glob("model-*.safetensors"):
        file.rename(sharded / "parts" / file.name)
    edit_index(sharded, lambda places: {name: f"parts/{v}" for name, v in places.items()})
    assert "is not beside config.json" in refusal(make_model(sharded))


# ---- Other ways to load --------------------------------------------------------------


def test_a_snapshot_of_the_hub_is_checked_as_a_folder_is(
    weights: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit = "c" * 40
    repository = tmp_path / "hub" / "models--lab--tiny"
    snapshot = repository / "snapshots" / commit
    shutil.copytree(weights, snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(commit)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("transformers.utils.hub.constants.HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    model = make_model(Path("lab/tiny")).model_copy(update={"revision": commit})
    assert load_local(model, Options())
    changed(weights, snapshot, without("lm_head"))
    said = refusal(model)
    assert "the weights of Tiny (lab/tiny) are not whole: the file lacks 1 tensor" in said
    changed(weights, snapshot, twice)
    assert "both are the model's" in refusal(model)


def test_an_adapter_named_as_a_whole_model_is_refused(weights: Path, tmp_path: Path) -> None:
    (tmp_path / "adapter_config.json").write_text(
        json.dumps({"base_model_name_or_path": str(weights), "peft_type": "LORA"})
    )
    assert "`weights: BASE + FOLDER`" in refusal(make_model(tmp_path))
    both = shutil.copytree(weights, tmp_path / "both")
    shutil.copyfile(tmp_path / "adapter_config.json", both / "adapter_config.json")
    assert "`weights: BASE + FOLDER`" in refusal(make_model(both))


def test_embedded_weights_are_those_that_the_entry_pins(tmp_path: Path) -> None:
    model = make_model(tmp_path).model_copy(
        update={"weights": "embedded:SmolLM2-135M-Instruct", "revision": "sha256:" + "0" * 64}
    )
    assert "Pin these" in refusal(model)


def test_a_warning_of_transformers_becomes_a_notice(weights: Path, tmp_path: Path) -> None:
    odd = {"rope_type": "default", "rope_theta": 10000.0, "odd": 1}
    folder = changed(weights, tmp_path / "odd", lambda tensors: tensors, rope_parameters=odd)
    said: list[str] = []
    load_local(make_model(folder), Options(notice=said.append))
    [sentence] = said
    assert sentence.startswith("Tiny: Transformers warns: Unrecognized keys in `rope_parameters`")


def test_the_pin_covers_chat_templates_in_their_subfolder(weights: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(weights, tmp_path / "folder")
    before = base_pin(make_model(folder))
    (folder / "additional_chat_templates").mkdir()
    assert base_pin(make_model(folder)) == before
    (folder / "additional_chat_templates" / "tool_use.jinja").write_text("{{ messages }}")
    more = base_pin(make_model(folder))
    assert more != before
    (folder / "additional_chat_templates" / "tool_use.jinja").rename(folder / "tool_use.jinja")
    assert base_pin(make_model(folder)) not in (before, more)


# ---- Experts, which Transformers joins -----------------------------------------------


@pytest.fixture
def experts(tmp_path: Path) -> Path:
    config = MixtralConfig(
        vocab_size=400,
        hidden_size=32,
        intermediate_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        num_local_experts=4,
    )
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(
        tmp_path / "whole"
    )
    make_tokenizer(tmp_path / "whole", None)
    assert load_local(make_model(tmp_path / "whole"), Options())
    return tmp_path / "whole"


EXPERT = "model.layers.0.block_sparse_moe.experts.1."


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (without(f"{EXPERT}w1"), "model.layers.0.mlp.experts.gate_up_proj"),
        (without(EXPERT), "model.layers.0.mlp.experts"),
        (renamed(EXPERT, EXPERT.replace(".1.", ".4.")), f"the file lacks {EXPERT}w1.weight"),
        (prefixed("_orig_mod."), "save `model._orig_mod`"),
    ],
)
def test_every_expert_is_needed(
    experts: Path, tmp_path: Path, change: Callable[[Tensors], Tensors], words: str
) -> None:
    said = refusal(make_model(changed(experts, tmp_path / "changed", change)))
    assert "are not whole" in said
    assert words in said
