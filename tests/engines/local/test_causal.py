"""Checkpoints that do not generate text from left to right are refused by name.

The folders are written by ``save_pretrained`` of the models' own classes.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers as t

from cradle_engines.local.local_engine import load_local
from cradle_lib.detection.models.engine import Options
from cradle_lib.errors import EngineError

from .tiny_models import CHAT, change_settings, make_model, make_tokenizer

SIZES: dict[str, Any] = {
    "vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 1,
    "num_attention_heads": 4, "max_position_embeddings": 128, "bos_token_id": 1,
    "eos_token_id": 0, "pad_token_id": 0, "initializer_range": 0.5,
}  # fmt: skip
BART = t.BartConfig(
    vocab_size=400, d_model=32, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2,
    decoder_attention_heads=2, encoder_ffn_dim=32, decoder_ffn_dim=32, init_std=0.5,
)  # fmt: skip
XLM = {"vocab_size": 400, "emb_dim": 32, "n_layers": 1, "n_heads": 4, "init_std": 0.5}
T5 = t.T5Config(
    vocab_size=400, d_model=32, d_kv=8, d_ff=48, num_layers=1, num_heads=4, decoder_start_token_id=0
)
FLORENCE = t.Florence2Config(
    text_config=BART.to_dict(),
    vision_config={
        "embed_dim": [8], "num_heads": [1], "num_groups": [1], "depths": [1], "window_size": 2,
        "patch_size": [7], "patch_stride": [4], "patch_padding": [3], "patch_prenorm": [False],
        "projection_dim": 32,
    },
)  # fmt: skip


def make(folder: Path, kind: str, config: Any) -> Path:
    torch.manual_seed(7)
    getattr(t, kind)(config).save_pretrained(folder)
    make_tokenizer(folder, CHAT)
    return folder


def error_of(folder: Path) -> str:
    with pytest.raises(EngineError) as error:
        load_local(make_model(folder), Options(device="cpu"))
    assert "\n" not in str(error.value)
    assert f"Tiny: {folder} is not a causal language model: " in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("kind", "config"),
    [
        ("BertForMaskedLM", t.BertConfig(**SIZES)),
        ("BertForPreTraining", t.BertConfig(**SIZES)),
        ("RobertaForMaskedLM", t.RobertaConfig(**SIZES)),
        ("DistilBertForMaskedLM", t.DistilBertConfig(vocab_size=400, dim=32, n_heads=4)),
        ("ModernBertForMaskedLM", t.ModernBertConfig(**SIZES, cls_token_id=1, sep_token_id=2)),
        ("LlamaForSequenceClassification", t.LlamaConfig(**SIZES, tie_word_embeddings=True)),
        ("LlamaForTokenClassification", t.LlamaConfig(**SIZES)),
        ("Qwen3Model", t.Qwen3Config(**SIZES, head_dim=8, tie_word_embeddings=True)),
        ("GPT2Model", t.GPT2Config(vocab_size=400, n_embd=32, n_layer=1, n_head=4)),
        ("T5ForConditionalGeneration", T5),
        ("BartForConditionalGeneration", BART),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_other_architectures_are_refused_by_name(tmp_path: Path, kind: str, config: Any) -> None:
    assert f"the `architectures` of its config.json name {kind}." in error_of(
        make(tmp_path, kind, config)
    )


@pytest.mark.parametrize(
    ("kind", "config", "field"),
    [
        ("Qwen3ForCausalLM", t.Qwen3Config(**SIZES, is_causal=False), "is_causal: False"),
        (
            "Gemma3ForCausalLM",
            t.Gemma3TextConfig(**SIZES, head_dim=8, use_bidirectional_attention=True),
            "use_bidirectional_attention: True",
        ),
        ("Florence2ForConditionalGeneration", FLORENCE, "is_encoder_decoder: True"),
    ],
)
def test_fields_of_the_configuration_are_refused_by_name(
    tmp_path: Path, kind: str, config: Any, field: str
) -> None:
    assert f"{kind} with `{field}`" in error_of(make(tmp_path, kind, config))


@pytest.mark.parametrize(
    ("kind", "config", "sizes", "causal"),
    [
        ("BertLMHeadModel", t.BertConfig, SIZES, {"is_decoder": True}),
        ("RobertaForCausalLM", t.RobertaConfig, SIZES, {"is_decoder": True}),
        ("XLMWithLMHeadModel", t.XLMConfig, XLM, {"causal": True}),
    ],
)
def test_the_outputs_of_a_model_decide_where_its_names_do_not(
    tmp_path: Path, kind: str, config: Any, sizes: dict[str, Any], causal: dict[str, Any]
) -> None:
    words = f"the outputs of {kind} depend on later tokens"
    assert words in error_of(make(tmp_path / "other", kind, config(**sizes)))
    assert load_local(
        make_model(make(tmp_path / "causal", kind, config(**sizes, **causal))), Options()
    )


def test_architectures_with_another_prefix_or_missing(weights: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(weights, tmp_path / "weights")
    change_settings(folder, "config.json", architectures=["FSDPLlamaForCausalLM"])
    assert load_local(make_model(folder), Options())
    change_settings(folder, "config.json", architectures=None)
    assert "config.json name no model" in error_of(folder)


def test_an_embedding_model_is_refused(weights: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(weights, tmp_path / "weights")
    (folder / "modules.json").write_text("[]")
    assert "it is an embedding model (modules.json)" in error_of(folder)
