"""The tokenizer and chat template that training saved beside an adapter are those that it uses.

The folders are written by TRL's own trainer and by PEFT.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest
from datasets import Dataset
from peft import LoraConfig
from tokenizers import pre_tokenizers
from tokenizers.trainers import BpeTrainer
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast
from trl import SFTConfig, SFTTrainer

from cradle_lib import paths
from cradle_lib.corpus import Corpus
from cradle_lib.detection import read_journal
from cradle_lib.detection.engine import Options
from cradle_lib.detection.local.adapter import adapter_digest
from cradle_lib.detection.local.local_engine import load_local
from cradle_lib.detection.model import Model
from cradle_lib.detection.run import run
from cradle_lib.detection.session import Session
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

from ..dialogues import make_corpus
from .test_merge import make_adapter
from .test_merge import make_base as make_plain_base
from .tiny_models import CHAT, make_model

pytestmark = [
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
OWN = CHAT.replace("{{ m['content'] }}", "# {{ m['content'] }}")
BESIDE = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


@pytest.fixture(autouse=True)
def prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "prompts").mkdir()
    (tmp_path / "prompts" / "short.txt").write_text("Label.\n{history}\n{current_turn}\n")
    monkeypatch.setattr(paths, "PROMPTS", tmp_path / "prompts")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_plain_base(tmp_path_factory.mktemp("trl") / "base", tie=True)


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What ``SFTTrainer`` saves of a base with another template and end token."""
    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.chat_template = OWN
    said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "none"}]
    folder = tmp_path_factory.mktemp("trained")
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(base),
        args=SFTConfig(
            output_dir=str(folder),
            max_steps=1,
            per_device_train_batch_size=1,
            eos_token="<|final|>",
            report_to=[],
            use_cpu=True,
            bf16=False,
            save_strategy="no",
        ),
        train_dataset=Dataset.from_list([{"messages": said}] * 2),
        processing_class=tokenizer,
        peft_config=LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2),
    )
    trainer.train()
    trainer.save_model(str(folder))
    assert all((folder / name).is_file() for name in BESIDE)
    return folder


def model_of(base: Path, folder: Path, **decoding: Any) -> Model:
    return make_model(base, **decoding).model_copy(update={"weights": f"{base} + {folder}"})


@pytest.fixture(scope="module")
def corpus() -> Corpus:
    return make_corpus([[("User", "Hello there.", "none"), ("Listener", "Hi.", "none")]])


def asked(model: Model, corpus: Corpus, said: list[str] | None = None) -> list[int]:
    options = Options() if said is None else Options(notice=said.append)
    prompt = Session(corpus.dialogues[0], load_template("short")).prompt
    assert prompt is not None
    return load_local(model, options).ids([prompt])[0]


def test_what_trl_saves_is_used_and_recorded(
    base: Path, trained: Path, corpus: Corpus, tmp_path: Path
) -> None:
    model, said = model_of(base, trained), list[str]()
    prompt = Session(corpus.dialogues[0], load_template("short")).prompt
    assert prompt is not None
    theirs = AutoTokenizer.from_pretrained(trained)
    expected = theirs.apply_chat_template(
        [{"role": "user", "content": prompt.text}], add_generation_prompt=True
    )["input_ids"]
    assert asked(model, corpus, said) == expected
    assert asked(make_model(base), corpus) != expected
    [sentence] = said
    assert "eos_token is '<|final|>', not '<|end|>'" in sentence
    assert "another chat template" in sentence
    local = load_local(model, Options())
    assert local.tokenizer.eos_token == "<|final|>"
    record = read_journal(run(model, corpus, out=tmp_path / "runs"))[0]
    assert record.tokenizer == "the adapter's tokenizer and chat template"
    assert record.settings["tokenizer"] == record.tokenizer
    plain = read_journal(run(make_model(base), corpus, out=tmp_path / "plain"))[0]
    assert plain.tokenizer is None
    assert "tokenizer" not in plain.settings


@pytest.mark.parametrize("name", BESIDE)
def test_another_tokenizer_or_template_is_another_run(
    base: Path, trained: Path, corpus: Corpus, tmp_path: Path, name: str
) -> None:
    folder = shutil.copytree(trained, tmp_path / "adapter")
    model, out = model_of(base, folder), tmp_path / "run.jsonl"
    before = adapter_digest(folder)
    run(model, corpus, out=out)
    (folder / name).write_text((folder / name).read_text().replace("<|user|>", "<|final|>") + "\n")
    assert adapter_digest(folder) != before
    with pytest.raises(EngineError, match="was changed"):
        run(model, corpus, out=out)


def test_a_template_alone_goes_with_the_bases_tokenizer(
    base: Path, corpus: Corpus, tmp_path: Path
) -> None:
    config = LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
    folder = make_adapter(base, tmp_path / "adapter", config)
    assert asked(model_of(base, folder), corpus) == asked(make_model(base), corpus)
    (folder / "chat_template.jinja").write_text(OWN)
    said: list[str] = []
    changed = asked(model_of(base, folder), corpus, said)
    assert changed != asked(make_model(base), corpus)
    assert len(said) == 1
    (folder / "chat_template.jinja").unlink()
    # As older versions saved it.
    settings = AutoTokenizer.from_pretrained(base)
    settings.chat_template = OWN
    settings.save_pretrained(tmp_path / "old", save_jinja_files=False)
    shutil.copyfile(tmp_path / "old" / "tokenizer_config.json", folder / "tokenizer_config.json")
    assert asked(model_of(base, folder), corpus) == changed
    record = read_journal(run(model_of(base, folder), corpus, out=tmp_path / "runs"))[0]
    assert record.tokenizer == "the adapter's chat template"


def test_a_tokenizer_without_a_template_keeps_the_bases(
    base: Path, corpus: Corpus, tmp_path: Path
) -> None:
    config = LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
    folder = make_adapter(base, tmp_path / "adapter", config)
    own: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(base)
    own.chat_template = None
    own.save_pretrained(folder)
    said: list[str] = []
    assert asked(model_of(base, folder), corpus, said) == asked(make_model(base), corpus)
    assert not said, "they do not differ"
    # Named by no class, as by hand.
    (folder / "tokenizer_config.json").unlink()
    assert asked(model_of(base, folder), corpus)


def test_another_vocabulary_is_said(base: Path, corpus: Corpus, tmp_path: Path) -> None:
    config = LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
    folder = make_adapter(base, tmp_path / "adapter", config)
    own = AutoTokenizer.from_pretrained(base)
    trainer = BpeTrainer(
        vocab_size=290,
        special_tokens=["<|end|>", "<|user|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    own.backend_tokenizer.train_from_iterator(["rain and rain again"] * 3, trainer)
    own.save_pretrained(folder)
    said: list[str] = []
    asked(model_of(base, folder), corpus, said)
    assert "tokens fewer" in said[0]
    assert "tokens moved" in said[0]


def test_a_tokenizer_that_can_not_be_read_is_one_line(base: Path, tmp_path: Path) -> None:
    config = LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"])
    folder = make_adapter(base, tmp_path / "adapter", config)
    (folder / "tokenizer.json").write_text("{")
    with pytest.raises(EngineError, match="the tokenizer beside the adapter") as error:
        load_local(model_of(base, folder), Options())
    assert "\n" not in str(error.value)
    (folder / "tokenizer_config.json").write_text("{")
    with pytest.raises(EngineError, match="can't be read"):
        load_local(model_of(base, folder), Options())
