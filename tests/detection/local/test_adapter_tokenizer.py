"""A model uses the tokenizer and chat template that training saved with its adapter.

The folders are written by TRL's own trainer and by PEFT.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from peft import LoraConfig
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerFast

from cradle_lib.corpus import Corpus
from cradle_lib.detection import read_journal
from cradle_lib.detection.engine import Options
from cradle_lib.detection.local.local_engine import load_local
from cradle_lib.detection.local.revision import adapter_digest
from cradle_lib.detection.model import Model
from cradle_lib.detection.run import run
from cradle_lib.detection.session import Session
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

from ..dialogues import make_corpus
from .test_merge import lora, make_adapter, make_base, model_of
from .tiny_models import CHAT, make_model

pytestmark = [
    pytest.mark.usefixtures("short_prompt"),
    pytest.mark.filterwarnings("ignore::UserWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]
OWN = CHAT.replace("{{ m['content'] }}", "# {{ m['content'] }}")
SAVED = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_base(tmp_path_factory.mktemp("trl") / "base", "tied")


@pytest.fixture(scope="module")
def trained(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that ``SFTTrainer`` saves of a base with another template and end token."""
    from datasets import Dataset
    from trl import SFTConfig, SFTTrainer

    tokenizer = AutoTokenizer.from_pretrained(base)
    tokenizer.chat_template = OWN
    said = [{"role": "user", "content": "Hello."}, {"role": "assistant", "content": "none"}]
    folder = tmp_path_factory.mktemp("trained")
    trainer = SFTTrainer(
        model=AutoModelForCausalLM.from_pretrained(base),
        args=SFTConfig(
            output_dir=str(folder), max_steps=1, per_device_train_batch_size=1,
            eos_token="<|final|>", report_to=[], use_cpu=True, bf16=False, save_strategy="no",
        ),
        train_dataset=Dataset.from_list([{"messages": said}] * 2),
        processing_class=tokenizer,
        peft_config=LoraConfig(task_type="CAUSAL_LM", target_modules=["q_proj"], r=2),
    )  # fmt: skip
    trainer.train()
    trainer.save_model(str(folder))
    assert all((folder / name).is_file() for name in SAVED)
    return folder


@pytest.fixture
def plain(base: Path, tmp_path: Path) -> Path:
    """An adapter without a tokenizer."""
    return make_adapter(base, tmp_path / "adapter", lora())


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
    expected = AutoTokenizer.from_pretrained(trained).apply_chat_template(
        [{"role": "user", "content": prompt.text}], add_generation_prompt=True
    )["input_ids"]
    assert asked(model, corpus, said) == expected
    assert asked(make_model(base), corpus) != expected
    [sentence] = said
    assert "eos_token is '<|final|>', not '<|end|>'" in sentence
    assert "another chat template" in sentence
    record = read_journal(run(model, corpus, out=tmp_path / "runs"))[0]
    assert record.tokenizer == "the adapter's tokenizer and chat template"
    assert record.settings["tokenizer"] == record.tokenizer
    without = read_journal(run(make_model(base), corpus, out=tmp_path / "plain"))[0]
    assert without.tokenizer is None
    assert "tokenizer" not in without.settings


def test_another_tokenizer_or_template_is_another_run(
    base: Path, trained: Path, corpus: Corpus, tmp_path: Path
) -> None:
    folder = shutil.copytree(trained, tmp_path / "adapter")
    model, out = model_of(base, folder), tmp_path / "run.jsonl"
    digests = {adapter_digest(folder)}
    run(model, corpus, out=out)
    for name in SAVED:
        (folder / name).write_text((folder / name).read_text() + "\n")
        digests.add(adapter_digest(folder))
    assert len(digests) == 4
    with pytest.raises(EngineError, match="was changed"):
        run(model, corpus, out=out)


def test_a_template_alone_goes_with_the_bases_tokenizer(
    base: Path, plain: Path, corpus: Corpus, tmp_path: Path
) -> None:
    assert asked(model_of(base, plain), corpus) == asked(make_model(base), corpus)
    (plain / "chat_template.jinja").write_text(OWN)
    changed = asked(model_of(base, plain), corpus)
    assert changed != asked(make_model(base), corpus)
    (plain / "chat_template.jinja").unlink()
    # As older versions saved it.
    settings = AutoTokenizer.from_pretrained(base)
    settings.chat_template = OWN
    settings.save_pretrained(tmp_path / "old", save_jinja_files=False)
    shutil.copyfile(tmp_path / "old" / "tokenizer_config.json", plain / "tokenizer_config.json")
    assert asked(model_of(base, plain), corpus) == changed
    record = read_journal(run(model_of(base, plain), corpus, out=tmp_path / "runs"))[0]
    assert record.tokenizer == "the adapter's chat template"


def test_a_tokenizer_without_a_template_keeps_the_bases(
    base: Path, plain: Path, corpus: Corpus
) -> None:
    own: PreTrainedTokenizerFast = AutoTokenizer.from_pretrained(base)
    own.chat_template = None
    own.save_pretrained(plain)
    said: list[str] = []
    expected = asked(make_model(base), corpus)
    assert asked(model_of(base, plain), corpus, said) == expected
    assert not said, "they do not differ"
    # Named by no class, as by hand.
    (plain / "tokenizer_config.json").unlink()
    assert asked(model_of(base, plain), corpus) == expected
    for name in ("tokenizer.json", "tokenizer_config.json"):
        (plain / name).write_text("{")
        with pytest.raises(EngineError, match=r"the tokenizer of the adapter .* can't") as error:
            load_local(model_of(base, plain), Options())
        assert "\n" not in str(error.value)


def test_added_tokens_are_named_and_those_without_embeddings_are_refused(
    base: Path, plain: Path, corpus: Corpus
) -> None:
    own = AutoTokenizer.from_pretrained(base)
    own.add_tokens(["<|crisis|>", "<|calm|>"], special_tokens=True)
    own.save_pretrained(plain)
    said: list[str] = []
    with pytest.raises(EngineError, match=r"training added 2 tokens, such as '<\|calm\|>'"):
        asked(model_of(base, plain), corpus, said)
    assert "it has other tokens (312, not 310)" in said[0]
