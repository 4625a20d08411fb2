"""A merged adapter computes what PEFT computes with the adapter beside its base, or is refused.

The folders are written by PEFT; its own unmerged forward pass is the oracle.
"""

from __future__ import annotations

import json
import shutil
import warnings
from pathlib import Path
from typing import Any

import peft
import pytest
import torch
from peft import IA3Config, LoraConfig, PeftConfig, PeftModel, PromptTuningConfig, get_peft_model
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, GPT2Config, LlamaConfig, PreTrainedConfig

from cradle_lib.detection.engine import Options
from cradle_lib.detection.local import merge
from cradle_lib.detection.local.adapter import WEIGHTS
from cradle_lib.detection.local.local_engine import load_local
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


def make_base(folder: Path, tie: bool, family: str = "llama") -> Path:
    torch.manual_seed(3)
    configs: dict[str, PreTrainedConfig] = {
        "llama": LlamaConfig(
            vocab_size=ROWS,
            hidden_size=32,
            intermediate_size=48,
            num_hidden_layers=2,
            num_attention_heads=4,
            num_key_value_heads=2,
            eos_token_id=0,
            bos_token_id=None,
            tie_word_embeddings=tie,
            initializer_range=0.1,
        ),
        # Its layers are transposed, and have biases.
        "gpt2": GPT2Config(
            vocab_size=ROWS,
            n_embd=32,
            n_layer=2,
            n_head=4,
            n_positions=256,
            tie_word_embeddings=tie,
            eos_token_id=0,
            bos_token_id=0,
            initializer_range=0.1,
        ),
    }
    AutoModelForCausalLM.from_config(configs[family], dtype=torch.float32).save_pretrained(folder)
    make_tokenizer(folder, CHAT)
    return folder


@pytest.fixture(scope="module", params=[True, False], ids=["tied", "untied"])
def base(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("base") / "base", request.param)


@pytest.fixture(scope="module")
def tied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("tied") / "base", tie=True)


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


def truth(base: Path, folder: Path, ids: torch.Tensor = IDS) -> torch.Tensor:
    """What PEFT computes, and that it is not what the base does."""
    lm = AutoModelForCausalLM.from_pretrained(base)
    with torch.no_grad():
        plain = lm(ids).logits
        found: torch.Tensor = (
            PeftModel.from_pretrained(lm, str(folder)).eval()(input_ids=ids).logits
        )
    assert not torch.allclose(plain, found, atol=0.01)
    return found


def lora(**settings: Any) -> LoraConfig:
    settings = {"target_modules": ["q_proj", "down_proj"], "r": 4, "lora_alpha": 8} | settings
    return LoraConfig(task_type="CAUSAL_LM", **settings)


CONFIGS: dict[str, Any] = {
    "plain": {},
    "all linear": {"target_modules": "all-linear"},
    "output layer": {"target_modules": ["lm_head", "q_proj"]},
    "embeddings": {"target_modules": ["embed_tokens", "q_proj"]},
    "both ends": {"target_modules": ["embed_tokens", "lm_head"]},
    "both ends tied": {
        "target_modules": ["embed_tokens", "lm_head"],
        "ensure_weight_tying": True,
    },
    "whole output layer": {"modules_to_save": ["lm_head"]},
    "whole embeddings": {"modules_to_save": ["embed_tokens"]},
    "both ends whole": {"modules_to_save": ["embed_tokens", "lm_head"]},
    "both ends whole, tied": {"modules_to_save": ["embed_tokens"], "ensure_weight_tying": True},
    "dora": {"use_dora": True},
    "dora on the output layer": {"use_dora": True, "target_modules": ["lm_head"]},
    "rslora": {"use_rslora": True, "r": 16},
    "patterns": {"rank_pattern": {"down_proj": 2}, "alpha_pattern": {"q_proj": 32}},
    "some layers": {"layers_to_transform": [1]},
    "some tokens": {"trainable_token_indices": [7, 9, 30]},
    "tokens of both": {"trainable_token_indices": {"embed_tokens": [7, 9], "lm_head": [7, 30]}},
    "norms": {"modules_to_save": ["norm"]},
    "pissa": {"init_lora_weights": "pissa"},
}


@pytest.mark.parametrize("name", CONFIGS)
def test_every_adapter_computes_what_peft_computes(base: Path, tmp_path: Path, name: str) -> None:
    try:
        folder = make_adapter(base, tmp_path / "adapter", lora(**CONFIGS[name]))
    except ValueError as error:
        pytest.skip(f"PEFT does not make it: {error}")
    expected = truth(base, folder)
    lm = load_local(model_of(base, folder), Options()).lm
    assert not [kind for kind in map(type, lm.modules()) if kind.__module__.startswith("peft")]
    with torch.no_grad():
        torch.testing.assert_close(lm(IDS).logits, expected, atol=1e-4, rtol=1e-4)
    shared = lm.lm_head.weight is lm.model.embed_tokens.weight
    assert lm.config.tie_word_embeddings == shared


@pytest.mark.parametrize(
    "config",
    [
        {"fan_in_fan_out": True, "target_modules": ["c_attn", "c_proj"]},
        {"fan_in_fan_out": False, "target_modules": ["c_attn"]},
        {"target_modules": ["lm_head"]},
        {"target_modules": ["wte"]},
        {"target_modules": ["c_attn"], "bias": "all"},
        {"target_modules": ["c_attn"], "bias": "lora_only"},
        {"target_modules": ["c_attn"], "lora_bias": True},
    ],
    ids=str,
)
def test_layers_that_are_transposed_and_biases(config: dict[str, Any], tmp_path: Path) -> None:
    base = make_base(tmp_path / "base", tie=True, family="gpt2")
    folder = make_adapter(base, tmp_path / "adapter", lora(**config))
    expected = truth(base, folder)
    with torch.no_grad():
        found = load_local(model_of(base, folder), Options()).lm(IDS).logits
    torch.testing.assert_close(found, expected, atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize(
    "config",
    [
        IA3Config(
            task_type="CAUSAL_LM", target_modules=["k_proj", "down_proj"],
            feedforward_modules=["down_proj"],
        ),
        peft.LoHaConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2),
        peft.OFTConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], oft_block_size=4, r=0),
    ],
    ids=lambda config: config.peft_type.value,
)  # fmt: skip
def test_other_kinds_that_merge(config: PeftConfig, tied: Path, tmp_path: Path) -> None:
    folder = make_adapter(tied, tmp_path / "adapter", config)
    expected = truth(tied, folder)
    with torch.no_grad():
        found = load_local(model_of(tied, folder), Options()).lm(IDS).logits
    torch.testing.assert_close(found, expected, atol=1e-3, rtol=1e-3)


def refusal(model: Model) -> str:
    with pytest.raises(EngineError) as error:
        load_local(model, Options())
    assert "\n" not in str(error.value)
    return str(error.value)


def test_prompts_that_are_learned_can_not_be_merged(tied: Path, tmp_path: Path) -> None:
    config = PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4)
    folder = make_adapter(tied, tmp_path / "adapter", config)
    said = refusal(model_of(tied, folder))
    assert "of the kind PROMPT_TUNING" in said
    assert "can't be merged" in said


def test_what_peft_refuses_to_merge_is_one_sentence(tied: Path, tmp_path: Path) -> None:
    # The base's layers have no bias that the adapter's could be added to.
    folder = make_adapter(tied, tmp_path / "bias", lora(lora_bias=True))
    assert "PEFT can't merge the adapter" in refusal(model_of(tied, folder))
    # Active only after certain tokens, which weights can't express.
    late = make_adapter(tied, tmp_path / "late", lora(alora_invocation_tokens=[5, 6]))
    assert "aLoRA does not support merging" in refusal(model_of(tied, late))


def test_a_merge_that_computes_something_else_is_refused(
    tied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it was before: the shared weights are not untied."""
    folder = make_adapter(tied, tmp_path / "adapter", lora(target_modules=["lm_head"]))
    monkeypatch.setattr(merge, "_untie", lambda wrapped: None)
    for dtype in ("float32", "bfloat16", "float16"):
        said = refusal(model_of(tied, folder, dtype=dtype))
        assert "merged, computes something else" in said
        assert f"in {dtype} rounding is" in said


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("name", ["all linear", "both ends", "dora", "some tokens"])
def test_short_number_formats_are_within_their_rounding(
    base: Path, tmp_path: Path, name: str, dtype: str
) -> None:
    folder = make_adapter(base, tmp_path / "adapter", lora(**CONFIGS[name]))
    assert load_local(model_of(base, folder, dtype=dtype), Options())


def drop(folder: Path, part: str) -> str:
    tensors = load_file(folder / WEIGHTS)
    lost = next(name for name in sorted(tensors) if part in name)
    save_file({n: t for n, t in tensors.items() if n != lost}, folder / WEIGHTS)
    return lost


@pytest.mark.parametrize(
    ("config", "part"),
    [
        (lora(), "lora_A"),
        (lora(), "lora_B"),
        (lora(use_dora=True), "magnitude"),
        (lora(modules_to_save=["lm_head"]), "lm_head"),
        (lora(modules_to_save=["norm"]), "norm"),
        (lora(trainable_token_indices=[3, 4]), "trainable_tokens"),
        (IA3Config(target_modules=["k_proj"], feedforward_modules=[]), "ia3"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_adapter_that_lacks_a_tensor_is_refused(
    config: PeftConfig, part: str, tied: Path, tmp_path: Path
) -> None:
    folder = make_adapter(tied, tmp_path / "adapter", config)
    lost = drop(folder, part)
    said = refusal(model_of(tied, folder))
    assert "it lacks" in said
    assert lost.removeprefix("base_model.model.").removesuffix(".weight").split(".")[0] in said


def test_missing_biases_are_refused(tmp_path: Path) -> None:
    base = make_base(tmp_path / "base", tie=True, family="gpt2")
    config = lora(target_modules=["c_attn"], bias="all")
    folder = make_adapter(base, tmp_path / "adapter", config)
    drop(folder, "ln_f.bias")
    assert "it lacks base_model.model.transformer.ln_f.bias" in refusal(model_of(base, folder))


def test_an_adapter_with_numbers_that_are_none_is_refused(tied: Path, tmp_path: Path) -> None:
    folder = make_adapter(tied, tmp_path / "adapter", lora())
    tensors = load_file(folder / WEIGHTS)
    next(iter(tensors.values()))[0, 0] = torch.nan
    save_file(tensors, folder / WEIGHTS)
    assert "no numbers (NaN)" in refusal(model_of(tied, folder))


def test_a_base_that_lacks_tensors_is_refused_with_an_adapter_too(
    tied: Path, tmp_path: Path
) -> None:
    folder = make_adapter(tied, tmp_path / "adapter", lora())
    broken = shutil.copytree(tied, tmp_path / "base")
    tensors = load_file(broken / "model.safetensors")
    renamed = {f"_orig_mod.{name}": tensor for name, tensor in tensors.items()}
    save_file(renamed, broken / "model.safetensors", metadata={"format": "pt"})
    assert "save `model._orig_mod`" in refusal(model_of(broken, folder))


# ---- Vocabularies that grew ----------------------------------------------------------

NEW = ["<|crisis|>", "<|calm|>"]


def make_grown(base: Path, folder: Path, config: PeftConfig, rows: int = 312, **save: Any) -> Path:
    """An adapter of a model whose vocabulary was extended before training."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.add_tokens(NEW, special_tokens=True)
    lm = AutoModelForCausalLM.from_pretrained(base)
    torch.manual_seed(11)
    lm.resize_token_embeddings(rows)
    wrapped = get_peft_model(lm, config)
    for parameter in wrapped.parameters():
        if parameter.requires_grad:
            parameter.data += 0.3 * torch.randn_like(parameter)
    wrapped.save_pretrained(str(folder), **save)
    tokenizer.save_pretrained(folder)
    torch.save(wrapped.eval()(input_ids=GROWN).logits.detach(), folder / "expected.bin")
    return folder


GROWN = torch.arange(260, 312)[None]


@pytest.mark.parametrize(
    ("config", "save"),
    [
        (lora(), {"save_embedding_layers": True}),
        (lora(modules_to_save=["embed_tokens", "lm_head"]), {}),
        (lora(target_modules=["embed_tokens", "lm_head"]), {"save_embedding_layers": True}),
    ],
    ids=["saved", "trained", "targeted"],
)
@pytest.mark.parametrize("rows", [312, 384])
def test_embeddings_are_resized_to_those_of_the_adapter(
    base: Path, tmp_path: Path, config: PeftConfig, save: dict[str, Any], rows: int
) -> None:
    folder = make_grown(base, tmp_path / "adapter", config, rows, **save)
    local = load_local(model_of(base, folder), Options())
    assert local.lm.config.vocab_size == rows
    assert local.tokenizer.convert_tokens_to_ids(NEW) == [310, 311]
    with torch.no_grad():
        found = local.lm(GROWN).logits
    torch.testing.assert_close(found, torch.load(folder / "expected.bin"), atol=1e-4, rtol=1e-4)


def test_new_tokens_without_embeddings_are_refused(base: Path, tmp_path: Path) -> None:
    folder = make_grown(base, tmp_path / "none", lora(), save_embedding_layers=False)
    said = refusal(model_of(base, folder))
    assert "2 tokens, such as '<|calm|>', beyond the 310 rows" in said


def test_new_rows_of_one_end_only_are_refused(tmp_path: Path) -> None:
    untied = make_base(tmp_path / "base", tie=False)
    config = lora(modules_to_save=["embed_tokens"])
    folder = make_grown(untied, tmp_path / "one", config, save_embedding_layers=False)
    assert "it lacks embeddings of tokens that it added" in refusal(model_of(untied, folder))


def test_the_digest_of_an_adapter_without_a_tokenizer_is_that_of_its_two_files(
    tied: Path, tmp_path: Path
) -> None:
    import hashlib

    from cradle_lib.detection.local.adapter import CONFIG, adapter_digest

    folder = make_adapter(tied, tmp_path / "adapter", lora())
    digest = hashlib.sha256()
    for name in (CONFIG, WEIGHTS):
        content = (folder / name).read_bytes()
        digest.update(f"{name}\0{len(content)}\0".encode() + content)
    assert adapter_digest(folder) == f"sha256:{digest.hexdigest()}"
    (folder / "README.md").write_text("A card.")
    (folder / "training.json").write_text(json.dumps({}))
    assert adapter_digest(folder) == f"sha256:{digest.hexdigest()}"


def test_two_starts_give_the_same_weights(tied: Path, tmp_path: Path) -> None:
    folder = make_adapter(tied, tmp_path / "adapter", lora(init_lora_weights="pissa_niter_2"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        one, other = (load_local(model_of(tied, folder), Options()).lm for _ in range(2))
    for name, tensor in one.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name])
