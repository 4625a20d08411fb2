"""An answer ends at every end token that a part of the checkpoint names, and does not contain it.

A tiny model is trained to write ``none``, one token, and more text. The token ends the answer if it
is named by the generation configuration, the model's configuration, the tokenizer or the template.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from transformers import AutoTokenizer, LlamaConfig

from cradle_engines.local.local_engine import load_local
from cradle_extras.training.sequences import questions
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, read_journal
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

from ...detection.dialogues import make_corpus
from .tiny_models import CHAT, change_settings, make_model, teach

pytestmark = pytest.mark.usefixtures("short_prompt")

# Id and usual text of the token that the model writes after `none`.
END = 3
TOKEN = "<|final|>"


@pytest.fixture(scope="module")
def asked() -> Corpus:
    rows = [("User", "hello", "none"), ("Listener", "hi", "none"), ("User", "well", "none")]
    return make_corpus([rows])


@pytest.fixture(scope="module")
def writer(weights: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that writes ``none``, the token, and ``Listener: alert_past``."""
    folder = shutil.copytree(weights, tmp_path_factory.mktemp("writer") / "weights")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    none, more = (tokenizer(text)["input_ids"] for text in ("none", "Listener: alert_past"))
    prompts = [
        f"<|user|>Label.\n{history}<|end|><|assistant|>"
        for history in ("User: hello", "User: hello\nMODEL_TAG: none\nListener: hi\nUser: well")
    ]
    answer = [*none, END, *more, *more]
    return teach(folder, [tokenizer(prompt)["input_ids"] + answer for prompt in prompts])


def variant(writer: Path, folder: Path, source: str, token: str = TOKEN) -> Path:
    """Copies the model so that only one source names its token; the others name ``<|end|>``, 0."""
    shutil.copytree(writer, folder)
    ids = {"generation": 0, "config": 0} | {source: [END]}
    change_settings(folder, "generation_config.json", eos_token_id=ids["generation"])
    change_settings(folder, "config.json", eos_token_id=ids["config"])
    vocabulary = (folder / "tokenizer.json").read_text().replace(TOKEN, token)
    content = json.loads(vocabulary)
    for entry in content["added_tokens"]:
        # A special token would be skipped in the text.
        entry["special"] = entry["id"] != END
    (folder / "tokenizer.json").write_text(json.dumps(content))
    if source == "tokenizer":
        change_settings(folder, "tokenizer_config.json", eos_token=token)
    template = CHAT
    if source == "template":
        template = CHAT.replace(
            "<|end|>{% endfor %}",
            "{% if m['role'] == 'assistant' %} " + token + "\n{% else %}<|end|>{% endif %}"
            "{% endfor %}",
        )
    (folder / "chat_template.jinja").write_text(template)
    return folder


SOURCES = ["generation", "config", "tokenizer", "template"]


@pytest.mark.parametrize(
    ("source", "token"),
    [*((source, TOKEN) for source in SOURCES), ("template", "<｜end▁of▁sentence｜>")],  # noqa: RUF001
)
def test_every_source_of_an_end_token_is_used(
    writer: Path, asked: Corpus, tmp_path: Path, source: str, token: str
) -> None:
    folder = variant(writer, tmp_path / "model", source, token)
    for engine in ("reference", "wave"):
        model = make_model(folder, engine)
        answers = read_journal(run(model, asked, out=tmp_path / engine))[1]
        assert [(p.answer, p.outcome) for p in answers] == [("none", Outcome.OK)] * 2
    # The grammar and training use the same end tokens.
    local = load_local(model, Options())
    assert END in local.ends
    # Training prefers the token that the template writes; otherwise `<|end|>`.
    assert local.chat.training_end(local.ends) == (END if source == "template" else 0)


def test_training_needs_an_end_token_and_prefers_that_of_the_tokenizer(
    weights: Path, asked: Corpus, tmp_path: Path
) -> None:
    folder = variant(weights, tmp_path / "model", "tokenizer")
    # Templates of base models write no end token.
    (folder / "chat_template.jinja").write_text(CHAT.replace("<|end|>{% endfor", "{% endfor"))
    question = (asked.dialogues[0], load_template("short"))
    answered = questions(*question, load_local(make_model(folder), Options()))
    assert {answer[-1] for _, answer, _ in answered} == {END}
    for name in ("config.json", "generation_config.json", "tokenizer_config.json"):
        change_settings(folder, name, eos_token_id=None, eos_token=None)
    with pytest.raises(EngineError, match=r"`eos_token` in its tokenizer_config\.json"):
        list(questions(*question, load_local(make_model(folder), Options())))


def test_the_default_end_token_of_an_architecture_is_ignored(weights: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(weights, tmp_path / "model")
    (folder / "generation_config.json").unlink()
    # Llama's default, if the configuration names no end token. Here it is an ordinary token.
    default = LlamaConfig().eos_token_id
    change_settings(folder, "config.json", eos_token_id=default)
    added = json.loads((folder / "tokenizer.json").read_text())["added_tokens"]
    change_settings(folder, "tokenizer.json", added_tokens=[t for t in added if t["id"] != default])
    local = load_local(make_model(folder), Options())
    assert local.lm.config.eos_token_id == default
    assert local.ends == {0}


def test_the_channel_token_of_gpt_oss_does_not_end_an_answer(writer: Path, tmp_path: Path) -> None:
    folder = variant(writer, tmp_path / "model", "none of them", "<|channel|>")
    change_settings(folder, "config.json", eos_token_id=2)
    change_settings(folder, "tokenizer_config.json", eos_token="<|assistant|>")
    # 9999 is not in the vocabulary and is ignored.
    change_settings(folder, "generation_config.json", eos_token_id=[2, 9_999])
    assert load_local(make_model(folder), Options()).ends == {2}


def test_other_tokens_do_not_end_an_answer(writer: Path, asked: Corpus, tmp_path: Path) -> None:
    model = make_model(variant(writer, tmp_path / "model", "none of them"))
    answers = read_journal(run(model, asked, out=tmp_path / "runs"))[1]
    assert all(p.answer.startswith("none<|final|>Listener") for p in answers)
    assert {p.outcome for p in answers} == {Outcome.UNPARSED}
