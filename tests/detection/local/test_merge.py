"""Merging an adapter changes nothing but what the adapter changes.

The oracle is PEFT's own computation with the adapter beside the base, which merges nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from peft import (
    IA3Config,
    LoraConfig,
    OFTConfig,
    PeftConfig,
    PeftModel,
    PromptTuningConfig,
    get_peft_model,
)
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig

from cradle_lib.detection.engine import Options
from cradle_lib.detection.local import adapter
from cradle_lib.detection.local.local_engine import load_local
from cradle_lib.detection.local.revision import WEIGHTS
from cradle_lib.detection.model import Model
from cradle_lib.errors import EngineError

from .tiny_models import CHAT, make_model, make_tokenizer

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
# As many as the tokenizer has tokens.
ROWS = 310
IDS = torch.arange(4, 68)[None]


def make_base(folder: Path, kind: str) -> Path:
    torch.manual_seed(3)
    config: Any = LlamaConfig(
        vocab_size=ROWS, hidden_size=32, intermediate_size=48, num_hidden_layers=2,
        num_attention_heads=4, num_key_value_heads=2, eos_token_id=0, bos_token_id=None,
        tie_word_embeddings=kind == "tied", initializer_range=0.1,
    )  # fmt: skip
    if kind == "gpt2":
        # Its layers are transposed, and have biases.
        config = GPT2Config(
            vocab_size=ROWS, n_embd=32, n_layer=2, n_head=4, n_positions=256, eos_token_id=0,
            bos_token_id=0, initializer_range=0.1,
        )  # fmt: skip
    AutoModelForCausalLM.from_config(config, dtype=torch.float32).save_pretrained(folder)
    make_tokenizer(folder, CHAT)
    return folder


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return {
        kind: make_base(tmp_path_factory.mktemp(kind) / "base", kind)
        for kind in ("tied", "untied", "gpt2")
    }


@pytest.fixture
def tied(bases: dict[str, Path]) -> Path:
    return bases["tied"]


def make_adapter(base: Path, folder: Path, config: PeftConfig, size: float = 0.3) -> Path:
    """Saves an adapter with random numbers in all that is trained."""
    lm = AutoModelForCausalLM.from_pretrained(base)
    wrapped = get_peft_model(lm, config)
    torch.manual_seed(5)
    for parameter in wrapped.parameters():
        if parameter.requires_grad:
            parameter.data += size * torch.randn_like(parameter)
    wrapped.save_pretrained(str(folder))
    return folder


def model_of(base: Path, folder: Path, **decoding: Any) -> Model:
    return make_model(base, **decoding).model_copy(update={"weights": f"{base} + {folder}"})


def lora(**settings: Any) -> LoraConfig:
    settings = {"target_modules": ["q_proj", "down_proj"], "r": 4, "lora_alpha": 8} | settings
    return LoraConfig(task_type="CAUSAL_LM", **settings)


def trained(*modules: str, **settings: Any) -> LoraConfig:
    return lora(modules_to_save=list(modules), **settings)


def on(*modules: str, **settings: Any) -> LoraConfig:
    return lora(target_modules=list(modules), **settings)


IA3 = IA3Config(
    task_type="CAUSAL_LM",
    target_modules=["k_proj", "down_proj"],
    feedforward_modules=["down_proj"],
)
OFT = OFTConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], oft_block_size=4, r=0)
#: A base and an adapter of it.
ADAPTERS: list[tuple[str, PeftConfig]] = [
    ("tied", lora()),
    ("tied", lora(target_modules="all-linear")),
    ("tied", on("lm_head")),
    ("untied", on("lm_head")),
    ("gpt2", on("lm_head")),
    ("tied", on("embed_tokens", "q_proj")),
    ("tied", on("embed_tokens", "lm_head")),
    ("tied", on("embed_tokens", "lm_head", ensure_weight_tying=True)),
    ("tied", trained("lm_head")),
    ("tied", trained("embed_tokens", "lm_head")),
    ("untied", trained("embed_tokens", "lm_head")),
    ("tied", on("lm_head", use_dora=True)),
    ("tied", lora(rank_pattern={"down_proj": 2}, alpha_pattern={"q_proj": 32}, use_rslora=True)),
    ("tied", lora(trainable_token_indices=[7, 9, 30])),
    ("tied", lora(init_lora_weights="pissa_niter_2")),
    ("gpt2", on("c_attn", "c_proj", fan_in_fan_out=True, bias="all")),
    ("tied", IA3),
    ("tied", OFT),
]


@pytest.mark.parametrize(("kind", "config"), ADAPTERS)
def test_every_adapter_computes_what_peft_computes(
    bases: dict[str, Path], tmp_path: Path, kind: str, config: PeftConfig
) -> None:
    base = bases[kind]
    folder = make_adapter(base, tmp_path / "adapter", config)
    lm = AutoModelForCausalLM.from_pretrained(base)
    with torch.no_grad():
        plain = lm(IDS).logits
        # Some kinds decompose the base with random numbers.
        torch.manual_seed(0)
        expected = PeftModel.from_pretrained(lm, str(folder)).eval()(input_ids=IDS).logits
    assert not torch.allclose(plain, expected, atol=0.01)
    merged = load_local(model_of(base, folder), Options()).lm
    assert not [kind for kind in map(type, merged.modules()) if kind.__module__.startswith("peft")]
    with torch.no_grad():
        found = merged(IDS).logits
        torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)
        if getattr(config, "init_lora_weights", True) is not True:
            assert torch.equal(found, load_local(model_of(base, folder), Options()).lm(IDS).logits)
    shared = merged.get_output_embeddings().weight is merged.get_input_embeddings().weight
    assert merged.config.tie_word_embeddings == shared


def refusal(model: Model) -> str:
    with pytest.raises(EngineError, match="can't be merged into") as error:
        load_local(model, Options())
    assert "\n" not in str(error.value)
    return str(error.value)


@pytest.mark.parametrize(
    ("config", "words"),
    [
        (PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4), "PROMPT_TUNING"),
        # The base's layers have no bias that the adapter's could be added to.
        (lora(lora_bias=True), "bias"),
        # Active only after certain tokens, which weights can't express.
        (lora(alora_invocation_tokens=[5, 6]), "aLoRA does not support merging"),
    ],
)
def test_kinds_that_can_not_be_merged_are_one_sentence(
    tied: Path, tmp_path: Path, config: PeftConfig, words: str
) -> None:
    assert words in refusal(model_of(tied, make_adapter(tied, tmp_path / "adapter", config)))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_merge_that_computes_something_else_is_refused(
    tied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, dtype: str
) -> None:
    """The shared weights are not untied."""
    folder = make_adapter(tied, tmp_path / "adapter", on("lm_head"))
    # The merged model is within the rounding of its number format.
    assert load_local(model_of(tied, folder, dtype=dtype), Options())
    monkeypatch.setattr(adapter, "_untie", lambda wrapped: None)
    assert f"in {dtype} rounding is" in refusal(model_of(tied, folder, dtype=dtype))


@pytest.mark.parametrize(
    ("kind", "config", "part"),
    [
        ("tied", lora(), "lora_B"),
        ("tied", lora(use_dora=True), "magnitude"),
        ("tied", trained("lm_head"), "lm_head"),
        ("tied", lora(trainable_token_indices=[3, 4]), "trainable_tokens"),
        ("gpt2", on("c_attn", bias="all"), "ln_f.bias"),
    ],
)
def test_an_adapter_that_lacks_a_tensor_or_has_another_is_refused(
    bases: dict[str, Path], config: PeftConfig, part: str, kind: str, tmp_path: Path
) -> None:
    folder = make_adapter(bases[kind], tmp_path / "adapter", config)
    tensors = load_file(folder / WEIGHTS)
    lost = next(name for name in sorted(tensors) if part in name)
    moved = tensors.pop(lost)
    save_file(tensors, folder / WEIGHTS)
    assert f"it lacks {lost}" in refusal(model_of(bases[kind], folder))
    odd = f"{lost.replace('.0.', '.7.')}.odd"
    save_file(tensors | {lost: moved, odd: moved.clone()}, folder / WEIGHTS)
    assert f"no place for {odd}" in refusal(model_of(bases[kind], folder))


def test_damaged_weights_and_another_base_are_refused(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    tied = bases["tied"]
    folder = make_adapter(tied, tmp_path / "adapter", lora())
    tensors = load_file(folder / WEIGHTS)
    other = make_base(tmp_path / "other", "tied")
    assert "it was trained on" in refusal(model_of(other, folder))
    next(iter(tensors.values()))[0, 0] = torch.nan
    save_file(tensors, folder / WEIGHTS)
    assert "logits differ by nan%" in refusal(model_of(tied, folder))
    (folder / WEIGHTS).write_bytes(b"short")
    assert "header" in refusal(model_of(tied, folder))
    # Pickled weights can run code.
    torch.save(tensors, folder / "adapter_model.bin")
    (folder / WEIGHTS).unlink()
    with pytest.raises(EngineError, match=r"has no adapter_model\.safetensors"):
        load_local(model_of(tied, folder), Options())
