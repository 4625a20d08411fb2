"""Checkpoints that do not generate text from left to right are refused by name."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as t

from cradle_engines.local.local_engine import load_local
from cradle_lib.detection.models.engine import Options

from .conftest import error_of
from .tiny_models import CHAT, change_settings, make_model, make_tokenizer

SIZES: dict[str, Any] = {
    "vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
    "num_attention_heads": 4, "max_position_embeddings": 128, "bos_token_id": 1,
    "eos_token_id": 0, "pad_token_id": 0, "initializer_range": 0.5,
}  # fmt: skip
XLM = {"vocab_size": 400, "emb_dim": 32, "n_layers": 1, "n_heads": 4, "init_std": 0.5}


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


@pytest.mark.parametrize(
    ("kind", "sizes", "causal"),
    [
        ("BertLMHeadModel", SIZES, {"is_decoder": True}),
        ("XLMWithLMHeadModel", XLM, {"causal": True}),
    ],
)
def test_the_outputs_of_a_model_decide_where_its_names_do_not(
    tmp_path: Path, kind: str, sizes: dict[str, Any], causal: dict[str, Any]
) -> None:
    for name, settings in (("other", sizes), ("causal", sizes | causal)):
        torch.manual_seed(7)
        model = getattr(t, kind)
        model(model.config_class(**settings)).save_pretrained(tmp_path / name)
        make_tokenizer(tmp_path / name, CHAT)
    words = f"the outputs of {kind} depend on later tokens"
    assert words in reason_of(tmp_path / "other")
    assert load_local(make_model(tmp_path / "causal"), Options())


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
