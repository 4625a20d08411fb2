"""Every chat template writes the question, whichever form of a message it takes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from tokenizers.processors import TemplateProcessing
from transformers import (
    AutoTokenizer,
    Llama4Config,
    Llama4ForConditionalGeneration,
    Mistral3Config,
    Mistral3ForConditionalGeneration,
)

from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Session, read_journal
from cradle_lib.detection.local.local_engine import load_local
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError
from cradle_lib.prompts import load_template

from .tiny_models import CHAT, LIMIT, make_model, make_tokenizer, make_weights

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


SIZES: dict[str, Any] = {
    **{"vocab_size": 400, "hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2},
    **{"num_attention_heads": 4, "num_key_value_heads": 2, "head_dim": 8},
    **{"eos_token_id": 0, "pad_token_id": 0, "bos_token_id": None, "initializer_range": 0.6},
}
VISION = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "image_size": 28}


def llama4() -> Any:
    sides = ("vision_output_dim", "projector_input_dim", "projector_output_dim")
    vision = VISION | {"num_attention_heads": 2, "patch_size": 14, "pixel_shuffle_ratio": 0.5}
    text = SIZES | {"intermediate_size_mlp": 48, "num_local_experts": 2}
    config = Llama4Config(text_config=text, vision_config=vision | dict.fromkeys(sides, 32))
    return Llama4ForConditionalGeneration(config)


def mistral3() -> Any:
    text = SIZES | {"model_type": "mistral"}
    vision = VISION | {"model_type": "pixtral", "num_attention_heads": 2, "patch_size": 14}
    return Mistral3ForConditionalGeneration(Mistral3Config(text_config=text, vision_config=vision))


@pytest.mark.parametrize("make", [llama4, mistral3])
def test_a_multimodal_checkpoint_is_loaded_whole_and_answers_text(
    make: Callable[[], Any], corpus: Corpus, tmp_path: Path
) -> None:
    folder = tmp_path / "weights"
    torch.manual_seed(7)
    lm = make().float().eval()
    lm.save_pretrained(folder)
    make_tokenizer(folder, CHAT.replace(PLAIN, CONTENTS["parts"]))
    made = {}
    for engine in ("reference", "wave"):
        path = run(make_model(folder, engine), corpus, out=tmp_path / engine)
        made[engine] = {(p.dialogue, p.turn): p.answer for p in read_journal(path)[1]}
    assert made["wave"] == made["reference"]
    assert len(set(made["wave"].values())) > 1
    prompt = Session(corpus.dialogues[0], load_template("short")).prompt
    assert prompt is not None
    tokenizer = AutoTokenizer.from_pretrained(folder)
    asked = tokenizer(f"<|user|>{prompt.text}<|end|><|assistant|>", return_tensors="pt").input_ids
    options = {"max_new_tokens": LIMIT, "do_sample": False, "eos_token_id": 0}
    written = lm.generate(asked, **options)[0, asked.shape[1] :]
    expected = tokenizer.decode(written, skip_special_tokens=True)
    assert made["reference"][prompt.dialogue, prompt.turn] == expected
