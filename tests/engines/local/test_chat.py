"""Chat templates: forms of message content, and the date in prompts."""

from __future__ import annotations

import copy
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date, datetime
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoTokenizer, Llama4Config, Llama4ForConditionalGeneration
from transformers.utils import chat_template_utils

from cradle_engines.local.chat import Chat
from cradle_engines.local.local_engine import Local
from cradle_lib.corpus import Corpus
from cradle_lib.detection import read_journal
from cradle_lib.detection.models import dates
from cradle_lib.detection.models.model import Decoding
from cradle_lib.detection.runs.run import run
from cradle_lib.detection.runs.shards import join
from cradle_lib.errors import EngineError, JournalError
from cradle_lib.record import Record

from .tiny_models import CHAT, LIMIT, first_prompt, make_model, make_tokenizer, make_weights

pytestmark = pytest.mark.usefixtures("short_prompt")

PLAIN = "{{ m['content'] }}"
#: Ways in which templates write the content of a message.
CONTENTS = {
    "text": PLAIN,
    # As SmolVLM and Qwen2-VL do: a string is omitted without an error.
    "parts": "{% for part in m['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}"
    "{% endif %}{% endfor %}",
    "parts, or an error": "{% if m['content'] is string %}{{ raise_exception('parts') }}{% endif %}"
    "{{ m['content'][0]['text'] }}",
}
#: Templates that omit the question.
WITHOUT_QUESTION = ["", "{{ m['content'] | length }}", "{{ raise_exception('system?') }}"]


def with_template(loaded: Local, template: str) -> Local:
    tokenizer = copy.deepcopy(loaded.tokenizer)
    tokenizer.chat_template = template
    return replace(loaded, tokenizer=tokenizer)


def test_every_form_of_template_writes_the_question(corpus: Corpus, loaded: Local) -> None:
    first_prompts = [first_prompt(dialogue) for dialogue in corpus]
    for content in CONTENTS.values():
        local = with_template(loaded, CHAT.replace(PLAIN, content))
        assert local.tokenizer.batch_decode(local.ids(first_prompts)) == [
            f"<|user|>{prompt.text}<|end|><|assistant|>" for prompt in first_prompts
        ]
        assert (local.ends, local.chat.training_end(local.ends)) == ({0}, 0)
    for content in WITHOUT_QUESTION:
        with pytest.raises(EngineError, match="leaves out its text"):
            with_template(loaded, CHAT.replace(PLAIN, content)).ids(first_prompts)


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


def test_a_multimodal_checkpoint_is_loaded_and_answers_text(corpus: Corpus, tmp_path: Path) -> None:
    folder = tmp_path / "weights"
    torch.manual_seed(7)
    lm = llama4().float().eval()
    lm.save_pretrained(folder)
    make_tokenizer(folder, CHAT.replace(PLAIN, CONTENTS["parts"]))
    made = {}
    for engine in ("reference", "wave"):
        path = run(make_model(folder, engine), corpus, out=tmp_path / engine)
        made[engine] = {(p.dialogue, p.turn): p.answer for p in read_journal(path)[1]}
    assert made["wave"] == made["reference"]
    assert len(set(made["wave"].values())) > 1
    prompt = first_prompt(corpus.dialogues[0])
    tokenizer = AutoTokenizer.from_pretrained(folder)
    ids = tokenizer(f"<|user|>{prompt.text}<|end|><|assistant|>", return_tensors="pt").input_ids
    options = {"max_new_tokens": LIMIT, "do_sample": False, "eos_token_id": 0}
    written = lm.generate(ids, **options)[0, ids.shape[1] :]
    expected = tokenizer.decode(written, skip_special_tokens=True)
    assert made["reference"][prompt.dialogue, prompt.turn] == expected


# ---- The date ------------------------------------------------------------------------

#: Templates with a date, and the beginning of their prompts on 3 March 2031.
PRINTING = {
    "gpt-oss": ('Current date: {{ strftime_now("%Y-%m-%d") }}\n', "Current date: 2031-03-03\n"),
    "llama-3.2": (
        "{% if not date_string is defined %}{% if strftime_now is defined %}"
        '{% set date_string = strftime_now("%d %b %Y") %}'
        "{% else %}{% set date_string = '26 Jul 2024' %}{% endif %}{% endif %}"
        "Today Date: {{ date_string }}\n",
        "Today Date: 03 Mar 2031\n",
    ),
}


@pytest.fixture(scope="module")
def dated(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A tiny Llama whose chat template is replaced by tests."""
    return make_weights(tmp_path_factory.mktemp("dated"))


def set_clock(monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    """Sets the clock of the library and of Transformers."""

    class FixedDatetime(datetime):
        @classmethod
        def now(cls, tz: Any = None) -> Any:
            return datetime.fromisoformat(moment).replace(tzinfo=tz)

    monkeypatch.setattr(dates, "datetime", FixedDatetime)
    monkeypatch.setattr(chat_template_utils, "datetime", FixedDatetime)


@pytest.fixture
def prompts(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """All prompts that are rendered for questions."""
    found: list[str] = []
    real = Local.ids

    def recording(self: Local, questions: Any) -> list[list[int]]:
        ids = real(self, questions)
        found.extend(map(self.tokenizer.decode, ids))
        return ids

    monkeypatch.setattr(Local, "ids", recording)
    return found


def read_record(path: Path) -> Record:
    return read_journal(path)[0]


@pytest.mark.parametrize("family", PRINTING)
def test_a_run_resumed_on_another_day_keeps_the_first_date(
    family: str,
    dated: Path,
    corpus: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    prompts: list[str],
) -> None:
    head, shown = PRINTING[family]
    (dated / "chat_template.jinja").write_text(head + CHAT)
    set_clock(monkeypatch, "2031-03-03T17:45:10")
    model, out = make_model(dated, "wave", max_new_tokens=3), tmp_path / "run.jsonl"
    run(model, corpus, out=out, limit=1)
    record = read_record(out)
    assert record.decoding["date"] == "2031-03-03"
    set_clock(monkeypatch, "2032-11-24T08:01:02")
    run(model, corpus, out=out)
    assert read_record(out).identity == record.identity
    assert prompts
    assert all(prompt.startswith(shown) for prompt in prompts)
    later = read_record(run(model, corpus, out=tmp_path / "later.jsonl", limit=1))
    assert later.decoding["date"] == "2032-11-24"
    assert later.identity != record.identity


def test_the_date_can_be_set(
    dated: Path, corpus: Corpus, tmp_path: Path, prompts: list[str]
) -> None:
    (dated / "chat_template.jinja").write_text(PRINTING["llama-3.2"][0] + CHAT)
    out = tmp_path / "set.jsonl"
    run(make_model(dated, date="2030-01-02"), corpus, out=out, limit=1)
    assert prompts[-1].startswith("Today Date: 02 Jan 2030\n")
    with pytest.raises(JournalError, match="another run: decoding"):
        run(make_model(dated, date="2030-01-03"), corpus, out=out)
    with pytest.raises(ValueError, match="date"):
        Decoding(date="soon")
    # YAML reads a date without quotes as a date object.
    assert Decoding(date=date(2030, 1, 2)).date == "2030-01-02"  # type: ignore[arg-type]


def test_shards_of_a_run_have_the_same_date(
    dated: Path, corpus: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prompts: list[str]
) -> None:
    (dated / "chat_template.jinja").write_text(PRINTING["gpt-oss"][0] + CHAT)
    set_clock(monkeypatch, "2031-03-03T17:45:10")
    first = run(make_model(dated), corpus, out=tmp_path, shard="0/2")
    set_clock(monkeypatch, "2031-03-04T00:00:01")
    second = run(make_model(dated), corpus, out=tmp_path, shard="1/2")
    assert all(prompt.startswith("Current date: 2031-03-03") for prompt in prompts)
    assert join([first, second], tmp_path / "whole.jsonl", corpus).decoding["date"] == "2031-03-03"


def test_prompts_rendered_in_two_threads_have_their_own_dates(
    dated: Path,
) -> None:
    (dated / "chat_template.jinja").write_text(PRINTING["gpt-oss"][0] + CHAT)
    clock = chat_template_utils.datetime
    tokenizer = AutoTokenizer.from_pretrained(dated)
    days = ["2030-01-02", "2031-03-04"]

    def render(day: str) -> set[str]:
        chat = Chat(tokenizer, {}, day)
        texts = (chat.render(chat.messages("Hi"), tokenize=False) for _ in range(200))
        return {re.findall("[0-9-]{10}", text)[0] for text in texts}

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(2) as pool:
            assert list(pool.map(render, days)) == [{day} for day in days]
    finally:
        sys.setswitchinterval(interval)
    assert chat_template_utils.datetime is clock
