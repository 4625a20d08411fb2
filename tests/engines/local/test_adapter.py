"""Models with adapters: logits equal PEFT's, and the adapter's tokenizer and template are used.

The folders are written by PEFT and by TRL's trainer.
"""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from peft import (
    KasaConfig,
    LoraConfig,
    OSFConfig,
    PeftConfig,
    PolyConfig,
    PromptTuningConfig,
    get_peft_model,
)
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from cradle_engines.local import adapter
from cradle_engines.local.local_engine import load_local
from cradle_engines.local.revision import WEIGHTS, adapter_digest
from cradle_lib.corpus import Corpus
from cradle_lib.detection import read_journal
from cradle_lib.detection.models.engine import Options
from cradle_lib.detection.models.model import Model
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError

from .conftest import NEW, OLD, error_of
from .tiny_models import CHAT, change_settings, first_prompt, make_model, make_random

pytestmark = [
    pytest.mark.usefixtures("short_prompt"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]
# The number of tokens of the tokenizer.
ROWS = 310
IDS = torch.arange(4, 68)[None]


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A model with tied embeddings, and GPT-2, whose layers are transposed and have biases."""
    more = {"vocab_size": ROWS, "tie_word_embeddings": True, "initializer_range": 0.1}
    return {
        name: make_random(tmp_path_factory.mktemp(name) / "base", kind, **more)
        for name, kind in {"tied": "llama", "gpt2": "gpt2"}.items()
    }


@pytest.fixture(scope="module")
def tied(bases: dict[str, Path]) -> Path:
    return bases["tied"]


def train(base: Path, config: PeftConfig, size: float = 0.3) -> Any:
    """Gives a base and an adapter with random values in all trained parameters."""
    wrapped = get_peft_model(AutoModelForCausalLM.from_pretrained(base), config)
    torch.manual_seed(5)
    for parameter in wrapped.parameters():
        if parameter.requires_grad:
            parameter.data += size * torch.randn_like(parameter)
    return wrapped.eval()


def make_adapter(base: Path, folder: Path, config: PeftConfig) -> Path:
    train(base, config).save_pretrained(str(folder))
    return folder


def model_of(base: Path, folder: Path, **decoding: Any) -> Model:
    return make_model(base, **decoding).model_copy(update={"weights": f"{base} + {folder}"})


def lora(**settings: Any) -> LoraConfig:
    settings = {"target_modules": ["q_proj", "down_proj"], "r": 4, "lora_alpha": 8} | settings
    return LoraConfig(task_type="CAUSAL_LM", **settings)


def lora_on(*modules: str, **settings: Any) -> LoraConfig:
    return lora(target_modules=list(modules), **settings)


#: Kind of base model and adapter. Several change weights that input and output layers share.
ADAPTERS: list[tuple[str, PeftConfig]] = [
    ("tied", lora(rank_pattern={"down_proj": 2}, alpha_pattern={"q_proj": 32}, use_rslora=True)),
    ("tied", lora_on("lm_head")),
    ("tied", lora_on("embed_tokens", "lm_head", ensure_weight_tying=True)),
    ("tied", lora(modules_to_save=["lm_head"])),
    # These initializations change the weights of the base.
    ("tied", lora(init_lora_weights="pissa")),
    ("tied", lora(kasa_config=KasaConfig())),
    ("tied", OSFConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])),
    ("tied", lora(trainable_token_indices=[7, 9])),
    ("gpt2", lora_on("c_attn", "c_proj", fan_in_fan_out=True, bias="all")),
]


@pytest.mark.parametrize(("kind", "config"), ADAPTERS)
def test_adapters_give_the_logits_of_the_trained_model(
    bases: dict[str, Path], tmp_path: Path, kind: str, config: PeftConfig
) -> None:
    base, folder = bases[kind], tmp_path / "adapter"
    trained = train(base, config)
    with torch.no_grad():
        expected = trained(input_ids=IDS).logits
        assert not torch.allclose(AutoModelForCausalLM.from_pretrained(base)(IDS).logits, expected)
        trained.save_pretrained(str(folder))
        found = load_local(model_of(base, folder), Options(device="cpu")).lm(IDS).logits
    assert torch.equal(found, expected)


def refusal_of(model: Model) -> str:
    message = error_of(model)
    assert "can't be used with" in message
    return message


BITS = {"loftq_bits": 4, "loftq_iter": 1}
ALORA = lora(alora_invocation_tokens=[300, 301])


@pytest.mark.parametrize(
    ("config", "changes", "words"),
    [
        (
            PromptTuningConfig(task_type="CAUSAL_LM", num_virtual_tokens=4),
            {},
            "the PROMPT_TUNING adapter .* adds tokens to prompts",
        ),
        (ALORA, {}, "it is an aLoRA"),
        (ALORA, {"task_type": None}, "it is an aLoRA"),
        (PolyConfig(target_modules=["q_proj"], n_tasks=2), {}, "the POLY adapter .* task_ids"),
        (lora(), {"task_type": "FEATURE_EXTRACTION"}, "for the task FEATURE_EXTRACTION"),
        (lora(init_lora_weights="pissa_niter_2"), {}, "initialization `pissa_niter_2` changed"),
        # Making one needs data, and its files look like those of any other adapter.
        (lora(), {"init_lora_weights": "corda"}, "initialization `corda` changed"),
        (lora(), {"init_lora_weights": "lora_ga"}, "initialization `lora_ga` changed"),
        (lora(), {"init_lora_weights": "loftq", "loftq_config": BITS}, "`loftq` changed"),
    ],
)
def test_other_kinds_of_adapters_are_refused_by_name(
    tied: Path, tmp_path: Path, config: PeftConfig, changes: dict[str, Any], words: str
) -> None:
    folder = make_adapter(tied, tmp_path / "adapter", config)
    change_settings(folder, "adapter_config.json", **changes)
    assert re.search(words, refusal_of(model_of(tied, folder)))


def test_an_adapter_is_compared_on_the_tokens_that_its_configuration_names(
    tied: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = make_adapter(tied, tmp_path / "adapter", ALORA)
    monkeypatch.setattr(adapter, "_require_supported", lambda *_: None)
    assert "its layers alone do not compute" in refusal_of(model_of(tied, folder))


def test_settings_of_a_newer_version_of_peft_are_reported(tied: Path, tmp_path: Path) -> None:
    folder, found = make_adapter(tied, tmp_path / "adapter", lora()), list[str]()
    change_settings(folder, "adapter_config.json", new_variant=True)
    load_local(model_of(tied, folder), Options(device="cpu", notice=found.append))
    assert "PEFT warns about its adapter: Unexpected keyword arguments ['new_variant']" in found[0]


def test_an_adapter_of_another_revision_of_its_base_is_reported(
    weights: Path, refs: Path, tmp_path: Path
) -> None:
    folder = make_adapter(weights, tmp_path / "adapter", lora())

    def notices(trained_on: str | None, pinned: str | None, base: str = "lab/tiny") -> list[str]:
        found: list[str] = []
        names = {"base_model_name_or_path": base, "revision": trained_on}
        change_settings(folder, "adapter_config.json", **names)
        model = model_of(Path(base), folder).model_copy(update={"revision": pinned})
        load_local(model, Options(device="cpu", notice=found.append))
        return found

    for trained_on, pinned in ((None, None), ("main", None), (NEW, None), (OLD, OLD), ("v1", OLD)):
        assert not notices(trained_on, pinned)
    # The tag `v9` is not in this cache.
    for trained_on, pinned in ((OLD, None), ("v1", None), (NEW, OLD), ("v9", None)):
        [sentence] = notices(trained_on, pinned)
        words = f"was trained on revision {trained_on} of its base, and {pinned or NEW} is loaded"
        assert words in sentence
    assert "a folder of unknown revision is loaded" in notices(OLD, None, str(weights))[0]
    assert not notices("main", None, str(weights))


@pytest.mark.parametrize(
    ("kind", "config", "part"),
    [
        ("tied", lora(), "lora_B"),
        ("gpt2", lora_on("c_attn", bias="all"), "ln_f.bias"),
    ],
)
def test_an_adapter_with_missing_or_extra_tensors_is_refused(
    bases: dict[str, Path], config: PeftConfig, part: str, kind: str, tmp_path: Path
) -> None:
    folder = make_adapter(bases[kind], tmp_path / "adapter", config)
    tensors = load_file(folder / WEIGHTS)
    missing = next(name for name in sorted(tensors) if part in name)
    moved = tensors.pop(missing)
    save_file(tensors, folder / WEIGHTS)
    assert f"it lacks {missing}" in refusal_of(model_of(bases[kind], folder))
    odd = f"{missing.replace('.0.', '.7.')}.odd"
    save_file(tensors | {missing: moved, odd: moved.clone()}, folder / WEIGHTS)
    assert f"no layer for {odd}" in refusal_of(model_of(bases[kind], folder))


def test_damaged_weights_and_other_bases_are_refused(
    bases: dict[str, Path], tmp_path: Path
) -> None:
    tied = bases["tied"]
    folder = make_adapter(tied, tmp_path / "adapter", lora())
    tensors = load_file(folder / WEIGHTS)
    other = shutil.copytree(tied, tmp_path / "other")
    assert "it was trained on" in refusal_of(model_of(other, folder))
    next(iter(tensors.values()))[0, 0] = torch.nan
    save_file(tensors, folder / WEIGHTS)
    assert "NaN or infinite" in refusal_of(model_of(tied, folder))
    (folder / WEIGHTS).write_bytes(b"short")
    assert "header" in refusal_of(model_of(tied, folder))
    # Pickled weights can run code.
    torch.save(tensors, folder / "adapter_model.bin")
    (folder / WEIGHTS).unlink()
    with pytest.raises(EngineError, match=r"has no adapter_model\.safetensors") as error:
        load_local(model_of(tied, folder), Options())
    # The message has the command that converts them.
    command = shlex.split(str(error.value).partition("in its folder: ")[2])
    subprocess.run([sys.executable, *command[1:]], check=True, cwd=folder)
    assert load_file(folder / WEIGHTS).keys() == tensors.keys()


# ---- Tokenizer and chat template of an adapter ---------------------------------------

OWN = CHAT.replace("{{ m['content'] }}", "# {{ m['content'] }}")
SAVED = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


@pytest.fixture(scope="module")
def saved_by_trl(tied: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``SFTTrainer`` saves if template and end token differ from the base's."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    tokenizer = AutoTokenizer.from_pretrained(tied)
    tokenizer.chat_template = OWN
    notices = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "none"}]
    folder = tmp_path_factory.mktemp("trained")
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(tied),
        args=SFTConfig(
            output_dir=str(folder), max_steps=1, per_device_train_batch_size=1,
            eos_token="<|final|>", report_to=[], use_cpu=True, bf16=False, save_strategy="no",
        ),
        train_dataset=Dataset.from_list([{"messages": notices}] * 2),
        processing_class=tokenizer,
        peft_config=LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2),
    )  # fmt: skip
    trainer.train()
    trainer.save_model(str(folder))
    assert all((folder / name).is_file() for name in SAVED)
    return folder


@pytest.fixture
def without_tokenizer(tied: Path, tmp_path: Path) -> Path:
    """An adapter without a tokenizer."""
    return make_adapter(tied, tmp_path / "adapter", lora())


def prompt_ids(model: Model, corpus: Corpus, notices: list[str] | None = None) -> list[int]:
    options = Options() if notices is None else Options(notice=notices.append)
    return load_local(model, options).ids([first_prompt(corpus.dialogues[0])])[0]


def test_the_tokenizer_and_template_saved_by_trl_are_used_and_recorded(
    tied: Path, saved_by_trl: Path, hello: Corpus, tmp_path: Path
) -> None:
    folder = shutil.copytree(saved_by_trl, tmp_path / "adapter")
    model, notices = model_of(tied, folder), list[str]()
    expected = AutoTokenizer.from_pretrained(folder).apply_chat_template(
        [{"role": "user", "content": "Label.\nUser: hello"}], add_generation_prompt=True
    )["input_ids"]
    assert prompt_ids(model, hello, notices) == expected
    assert prompt_ids(make_model(tied), hello) != expected
    [sentence] = notices
    assert "eos_token is '<|final|>', not '<|end|>'" in sentence
    assert "another chat template" in sentence
    out = tmp_path / "run.jsonl"
    record = read_journal(run(model, hello, out=out))[0]
    assert record.settings["tokenizer"] == "the adapter's tokenizer and chat template"
    # Another tokenizer or template is another run.
    digests = {adapter_digest(folder)}
    for name in SAVED:
        (folder / name).write_text((folder / name).read_text() + "\n")
        digests.add(adapter_digest(folder))
    assert len(digests) == 4
    with pytest.raises(EngineError, match="was changed"):
        run(model, hello, out=out)


def test_a_template_or_tokenizer_alone_is_combined_with_the_bases(
    tied: Path, without_tokenizer: Path, hello: Corpus, tmp_path: Path
) -> None:
    expected = prompt_ids(make_model(tied), hello)
    assert prompt_ids(model_of(tied, without_tokenizer), hello) == expected
    (without_tokenizer / "chat_template.jinja").write_text(OWN)
    assert prompt_ids(model_of(tied, without_tokenizer), hello) != expected
    record = read_journal(run(model_of(tied, without_tokenizer), hello, out=tmp_path / "runs"))[0]
    assert record.tokenizer == "the adapter's chat template"
    (without_tokenizer / "chat_template.jinja").unlink()
    own = AutoTokenizer.from_pretrained(tied)
    own.chat_template = None
    own.save_pretrained(without_tokenizer)
    notices: list[str] = []
    assert prompt_ids(model_of(tied, without_tokenizer), hello, notices) == expected
    assert not notices, "they do not differ"
    (without_tokenizer / "tokenizer.json").write_text("{")
    with pytest.raises(EngineError, match=r"the tokenizer of the adapter .* can't") as error:
        load_local(model_of(tied, without_tokenizer), Options())
    assert "\n" not in str(error.value)


def test_added_tokens_are_reported_and_refused_without_embeddings(
    tied: Path, without_tokenizer: Path, hello: Corpus
) -> None:
    own = AutoTokenizer.from_pretrained(tied)
    own.add_tokens(["<|crisis|>", "<|calm|>"], special_tokens=True)
    own.save_pretrained(without_tokenizer)
    notices: list[str] = []
    with pytest.raises(EngineError, match=r"training added 2 tokens, such as '<\|calm\|>'"):
        prompt_ids(model_of(tied, without_tokenizer), hello, notices)
    assert "it has other tokens (312, not 310)" in notices[0]
