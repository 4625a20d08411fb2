"""Loading refuses checkpoints of other kinds, and those with missing, unused or invalid tensors.

The folders are written by ``save_pretrained`` and then changed like in real mistakes.
"""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as t
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

from cradle_engines.local.local_engine import Local, load_local
from cradle_lib.detection.models.engine import Options

from .conftest import error_of
from .tiny_models import CHAT, change_settings, make_model, make_random, make_tokenizer

FILE = "model.safetensors"
EMBEDDING = "model.embed_tokens.weight"
Tensors = dict[str, torch.Tensor]


def changed(
    weights: Path, folder: Path, change: Callable[[Tensors], Tensors] = dict, **config: Any
) -> Path:
    """Copies a model and changes its tensors and settings."""
    shutil.copytree(weights, folder, dirs_exist_ok=True)
    tensors = {name: tensor.clone() for name, tensor in load_file(folder / FILE).items()}
    save_file(change(tensors), folder / FILE, metadata={"format": "pt"})
    change_settings(folder, "config.json", **config)
    return folder


def with_prefix(tensors: Tensors) -> Tensors:
    """Names tensors as compiled models do."""
    return {f"_orig_mod.{name}": tensor for name, tensor in tensors.items()}


def without(part: str) -> Callable[[Tensors], Tensors]:
    return lambda tensors: {name: t for name, t in tensors.items() if part not in name}


def with_nan(tensors: Tensors) -> Tensors:
    tensors["model.layers.1.mlp.up_proj.weight"][3, 4] = torch.nan
    return tensors


@pytest.mark.parametrize(
    ("change", "config", "words"),
    [
        (with_prefix, {}, "lacks 21 tensors (lm_head.weight, "),
        (dict, {"num_hidden_layers": 1}, "has 9 tensors (model.layers.1.input_layernorm.weight, "),
        (dict, {"num_key_value_heads": 4}, "k_proj.weight is [128, 32] in the file and [256, 32]"),
        (with_nan, {}, "up_proj.weight has 1 values that are NaN"),
    ],
)
def test_a_checkpoint_with_other_tensors_is_refused(
    weights: Path,
    tmp_path: Path,
    change: Callable[[Tensors], Tensors],
    config: dict[str, Any],
    words: str,
) -> None:
    message = error_of(make_model(changed(weights, tmp_path / "changed", change, **config)))
    assert message.startswith("the weights of Tiny (")
    assert "are damaged or incomplete: " in message
    assert words in message


def test_tied_weights_have_no_different_output_layer(weights: Path, tmp_path: Path) -> None:
    tied = changed(weights, tmp_path / "tied", without("lm_head"), tie_word_embeddings=True)
    lm = load_local(make_model(tied), Options()).lm
    assert lm.lm_head.weight is lm.model.embed_tokens.weight
    other = changed(tied, tmp_path / "other", lambda t: t | {"lm_head.weight": t[EMBEDDING] + 1})
    message = error_of(make_model(other))
    assert "config.json ties lm_head.weight to model.embed_tokens.weight" in message
    neither = changed(tied, tmp_path / "neither", without("embed_tokens"))
    assert "model.embed_tokens.weight" in error_of(make_model(neither))


def test_buffers_of_older_versions_are_accepted(tmp_path: Path) -> None:
    lm = AutoModelForCausalLM.from_pretrained(make_random(tmp_path, "gpt2")).eval()
    tensors = load_file(tmp_path / FILE)
    tensors["transformer.h.0.attn.bias"] = torch.ones(1, 1, 64, 64).tril().bool()
    tensors["transformer.h.0.attn.masked_bias"] = torch.tensor(-1e4)
    ids = torch.arange(20)[None]
    # With and without the decoder's prefix, as in the first checkpoints of this family.
    for prefix in ("", "transformer."):
        found = {name.removeprefix(prefix): tensor for name, tensor in tensors.items()}
        save_file(found, tmp_path / FILE, metadata={"format": "pt"})
        assert torch.equal(
            load_local(make_model(tmp_path), Options()).lm(ids).logits, lm(ids).logits
        )


@pytest.mark.parametrize(("layers", "named"), [(1, "0"), (2, "{0, 1}")])
def test_a_missing_expert_is_refused(tmp_path: Path, layers: int, named: str) -> None:
    complete = make_random(tmp_path / "whole", "mixtral", num_hidden_layers=layers)
    assert load_local(make_model(complete), Options())
    message = error_of(make_model(changed(complete, tmp_path / "changed", without("experts.1.w1"))))
    assert "are damaged or incomplete" in message
    assert f"a tensor needed for model.layers.{named}.mlp.experts" in message


def test_an_adapter_configured_as_a_model_is_refused(weights: Path, tmp_path: Path) -> None:
    both = shutil.copytree(weights, tmp_path / "both")
    settings = {"base_model_name_or_path": str(weights), "peft_type": "LORA"}
    (both / "adapter_config.json").write_text(json.dumps(settings))
    assert f"`weights: {weights} + {both}`" in error_of(make_model(both))


# The tokenizers of some families are made without a vocabulary if there are no files.
@pytest.mark.parametrize("family", ["llama", "qwen3", "gemma3", "gpt-oss"])
@pytest.mark.parametrize("name", ["token*", "tokenizer.json"])
def test_a_checkpoint_without_a_tokenizer_is_refused(
    families: dict[str, Path], tmp_path: Path, family: str, name: str
) -> None:
    folder = shutil.copytree(families[family], tmp_path / "bare")
    for file in folder.glob(name):
        file.unlink()
    message = error_of(make_model(folder))
    assert f"the tokenizer of {folder} is missing or can't be read (" in message
    assert "Copy tokenizer.json, tokenizer_config.json and chat_template.jinja of the" in message


def test_a_warning_of_transformers_becomes_a_notice(weights: Path, tmp_path: Path) -> None:
    odd = {"rope_type": "default", "rope_theta": 10000.0, "odd": 1}
    folder = changed(weights, tmp_path / "odd", rope_parameters=odd)
    message: list[str] = []
    load_local(make_model(folder), Options(notice=message.append))
    [sentence] = message
    assert sentence.startswith("Tiny: Transformers warns: Unrecognized keys in `rope_parameters`")


def test_pickled_weights_are_refused_with_the_command_that_converts_them(
    loaded: Local, tmp_path: Path
) -> None:
    pickled = shutil.copytree(loaded.lm.name_or_path, tmp_path / "pickled")
    torch.save(loaded.lm.state_dict(), pickled / "pytorch_model.bin")
    (pickled / "model.safetensors").unlink()
    message = error_of(make_model(pickled))
    assert "only pickled weights (.bin)" in message
    command = shlex.split(message.split("`")[1])
    subprocess.run([sys.executable, *command[1:]], check=True, cwd=tmp_path)
    converted = load_local(make_model(tmp_path / "pickled-safetensors"), Options(device="cpu"))
    ids = torch.arange(4, 68)[None]
    assert torch.equal(converted.lm(ids).logits, loaded.lm(ids).logits)


# ---- Checkpoints that do not generate text from left to right ------------------------

SIZES: dict[str, Any] = {
    "vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
    "num_attention_heads": 4, "max_position_embeddings": 128, "bos_token_id": 1,
    "eos_token_id": 0, "pad_token_id": 0, "initializer_range": 0.5,
}  # fmt: skip


def reason_of(folder: Path) -> str:
    message = error_of(make_model(folder))
    assert f"Tiny: {folder} is not a causal language model: " in message
    return message


def make_configuration(folder: Path, kind: str, **settings: Any) -> Path:
    """Saves the configuration of a class, which is refused before weights are read."""
    getattr(t, kind).config_class(architectures=[kind], **settings).save_pretrained(folder)
    make_tokenizer(folder, CHAT)
    return folder


@pytest.mark.parametrize(
    "kind",
    [
        "BertForMaskedLM",
        "LlamaForSequenceClassification",
        "Qwen3Model",
        "T5ForConditionalGeneration",
    ],
)
def test_other_architectures_are_refused_by_name(tmp_path: Path, kind: str) -> None:
    assert f"the `architectures` of its config.json name {kind}." in reason_of(
        make_configuration(tmp_path, kind)
    )


@pytest.mark.parametrize(
    ("kind", "settings", "field"),
    [
        ("Qwen3ForCausalLM", {"is_causal": False}, "is_causal: False"),
        (
            "Gemma3ForCausalLM",
            {"use_bidirectional_attention": True},
            "use_bidirectional_attention: True",
        ),
        ("Florence2ForConditionalGeneration", {}, "is_encoder_decoder: True"),
    ],
)
def test_fields_of_the_configuration_are_refused_by_name(
    tmp_path: Path, kind: str, settings: dict[str, Any], field: str
) -> None:
    folder = make_configuration(tmp_path, kind, **settings)
    assert f"{kind} with `{field}`" in reason_of(folder)


def test_the_outputs_of_a_model_decide_where_its_names_do_not(tmp_path: Path) -> None:
    for is_decoder in (False, True):
        config = t.BertConfig(**SIZES, is_decoder=is_decoder)
        folder = tmp_path / str(is_decoder)
        t.BertLMHeadModel(config).save_pretrained(folder)
        make_tokenizer(folder, CHAT)
    assert load_local(make_model(folder), Options())
    words = "the outputs of BertLMHeadModel depend on later tokens"
    assert words in reason_of(tmp_path / "False")


def test_architectures_with_another_prefix_or_missing(weights: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(weights, tmp_path / "weights")
    change_settings(folder, "config.json", architectures=["FSDPLlamaForCausalLM"])
    assert load_local(make_model(folder), Options())
    change_settings(folder, "config.json", architectures=None)
    assert "config.json name no model" in reason_of(folder)


def test_an_embedding_model_is_refused(weights: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(weights, tmp_path / "weights")
    (folder / "modules.json").write_text("[]")
    assert "it is an embedding model (modules.json)" in reason_of(folder)
