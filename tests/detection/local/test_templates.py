"""Every chat template writes the question, whichever form of a message it takes."""

from __future__ import annotations

from pathlib import Path

import pytest
from tokenizers.processors import TemplateProcessing
from transformers import AutoTokenizer

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Session
from cradle_lib.detection.local.local_engine import load_local
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

from .tiny_models import CHAT, make_model, make_weights

pytestmark = pytest.mark.usefixtures("short_prompt")

PLAIN = "{{ m['content'] }}"
#: How templates write the content of a message.
CONTENTS = {
    "text": PLAIN,
    # As SmolVLM and Qwen2-VL do: plain text leaves nothing, without an error.
    "parts": "{% for part in m['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}"
    "{% endif %}{% endfor %}",
    # As Llama 4 and Gemma 3 do.
    "either": "{% if m['content'] is string %}{{ m['content'] }}{% else %}"
    "{% for part in m['content'] %}{{ part['text'] | trim }}{% endfor %}{% endif %}",
    "parts, or an error": "{% if m['content'] is string %}{{ raise_exception('parts') }}{% endif %}"
    "{{ m['content'][0]['text'] }}",
}
#: Templates that write no question at all.
LOST = ["", "{{ m['content'] | length }}", "{{ m['context'] }}"]


@pytest.fixture(scope="module")
def weights(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_weights(tmp_path_factory.mktemp("templates"))


def set_template(folder: Path, content: str) -> None:
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.chat_template = CHAT.replace(PLAIN, content)
    tokenizer.save_pretrained(folder)


def test_a_question_is_written_whatever_form_the_template_takes(
    corpus: Corpus, weights: Path
) -> None:
    prompts = [Session(dialogue, load_template("short")).prompt for dialogue in corpus]
    asked = [prompt for prompt in prompts if prompt is not None]
    found = {}
    for name, content in CONTENTS.items():
        set_template(weights, content)
        local = load_local(make_model(weights), Options())
        found[name] = (local.ids(asked), local.ends, local.chat.taught_end(local.ends))
    texts = local.tokenizer.batch_decode(found["text"][0])
    assert texts == [f"<|user|>{prompt.text}<|end|><|assistant|>" for prompt in asked]
    assert all(each == found["text"] for each in found.values())


def test_an_answer_begins_after_the_prompt_and_not_after_an_end_token(
    corpus: Corpus, tmp_path: Path
) -> None:
    folder = make_weights(tmp_path, chat=None)
    prompt = Session(corpus.dialogues[0], load_template("short")).prompt
    plain = load_local(make_model(folder), Options()).ids([prompt])
    # As a tokenizer with `add_bos_token` and `add_eos_token` does.
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single="<|user|> $A <|end|>", special_tokens=[("<|user|>", 1), ("<|end|>", 0)]
    )
    tokenizer.save_pretrained(folder)
    local = load_local(make_model(folder), Options())
    assert local.tokenizer("none")["input_ids"][-1] == 0
    assert local.ids([prompt]) == [[1, *plain[0]]]


@pytest.mark.parametrize("content", LOST)
def test_a_template_without_the_question_is_refused(
    content: str, corpus: Corpus, weights: Path, tmp_path: Path
) -> None:
    set_template(weights, content)
    with pytest.raises(EngineError, match="leaves out the text of a question"):
        run(make_model(weights), corpus, out=tmp_path)
    assert not list(tmp_path.rglob("*.jsonl"))
