"""Only text after a thought is parsed, also if the chat template opens the thought.

Tiny models are trained to reason in the formats of several model families.
"""

from __future__ import annotations

import copy
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken
from transformers import AutoTokenizer

from cradle_engines.local import local_engine
from cradle_engines.local.local_engine import Local, load_local
from cradle_extras.training.sequences import token_tree
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Model, Options, Outcome, Prediction, read_answer, read_journal
from cradle_lib.detection.models import model as model_module
from cradle_lib.detection.runs.matching import other_settings
from cradle_lib.detection.runs.run import run
from cradle_lib.errors import EngineError
from cradle_lib.labels import BITS
from cradle_lib.prompts import load_template

from .tiny_models import CHAT, LIMIT, make_model, make_weights, teach

pytestmark = pytest.mark.usefixtures("short_prompt")

LABEL = "confirm_DV_past"
LONG = 80


def make_thinker(
    folder: Path, opened: str, answer: str, token: str, *, special: bool | None
) -> Path:
    """Makes a model whose template ends with ``opened`` and that writes ``answer``.

    ``token`` is in its vocabulary unless ``special`` is ``None``.
    """
    make_weights(folder, CHAT.replace("<|assistant|>", f"<|assistant|>{opened}"))
    if special is not None:
        tokens = json.loads((folder / "tokenizer.json").read_text().replace("<|final|>", token))
        [named] = [each for each in tokens["added_tokens"] if each["content"] == token]
        named["special"] = special
        (folder / "tokenizer.json").write_text(json.dumps(tokens))
    text = f"<|user|>Label.\nUser: hello<|end|><|assistant|>{opened}{answer}<|end|>"
    return teach(folder, [AutoTokenizer.from_pretrained(folder)(text)["input_ids"]])


def answer_of(
    weights: Path, corpus: Corpus, out: Path, engine: str, limit: int = LONG, **decoding: Any
) -> Prediction:
    model = make_model(weights, engine, max_new_tokens=limit, **decoding)
    [answer] = read_journal(run(model, corpus, out=out / f"{engine}{limit}"))[1]
    return answer


# `special` says whether the closing marker is a special token; None if it is several tokens.
@pytest.mark.parametrize(
    ("opens", "closes", "special", "opens_itself"),
    [
        ("<think>", "</think>", None, True),
        ("<think>", "</think>", False, False),
        ("[THINK]", "[/THINK]", True, False),
    ],
)
def test_only_text_after_a_closed_thought_is_parsed(
    hello: Corpus, tmp_path: Path, opens: str, closes: str, special: bool | None, opens_itself: bool
) -> None:
    opened = f"{opens}\n"
    thought = f"none\nso\n{closes}\n\n{LABEL}"
    weights = make_thinker(
        tmp_path / "model",
        "" if opens_itself else opened,
        opened + thought if opens_itself else thought,
        closes,
        special=special,
    )
    for engine in ("reference", "wave"):
        found = answer_of(weights, hello, tmp_path, engine)
        assert (found.outcome, found.mask, found.reason) == (Outcome.OK, BITS[LABEL], None)
        assert found.answer.endswith(thought)
        # The first line of the thought would be a valid answer.
        cut = answer_of(weights, hello, tmp_path, engine, limit=10)
        found = (cut.outcome, cut.reason, cut.ending)
        assert found == (Outcome.UNPARSED, "cut at 10 tokens", "cut")


def test_constrained_decoding_and_training_refuse_a_prompt_with_an_open_thought(
    hello: Corpus, tmp_path: Path
) -> None:
    switch = "{% if quick %}<think>\n\n</think>\n{% else %}<think>{% endif %}"
    chat = CHAT.replace("<|assistant|>", f"<|assistant|>{switch}")
    weights = make_weights(tmp_path / "model", chat)
    model = make_model(weights, "wave", mode="constrained")
    with pytest.raises(EngineError, match=r"Tiny: `mode: constrained` .*\(<think>\).*`chat`"):
        run(model, hello, out=tmp_path / "a")
    local = load_local(model, Options())
    with pytest.raises(EngineError, match=r"training .*\(<think>\)"):
        token_tree(hello.dialogues[0], load_template("short"), local)
    # The switch closes the thought, so that answers have none.
    model = make_model(weights, "wave", mode="constrained", chat={"quick": True})
    assert [p.outcome for p in read_journal(run(model, hello, out=tmp_path / "b"))[1]] == ["ok"]
    assert token_tree(
        hello.dialogues[0], load_template("short"), load_local(model, Options())
    ).turns


QWEN = (
    "{% if enable_thinking is defined and enable_thinking is false %}"
    r"{{ '<think>\n\n</think>\n\n' }}{% endif %}"
)
#: What a template writes before an answer, the switch for its thoughts, and whether they are on.
SWITCHED = [
    (QWEN, "enable_thinking", True),
    ("{% if thinking is defined and not thinking %}</think>{% endif %}", "thinking", True),
    ("{% if thinking %}<think>{% else %}</think>{% endif %}", "thinking", False),
]


def chat_of(model: Model, corpus: Corpus, out: Path) -> tuple[Any, int | None]:
    """Gives the recorded variables of the template, and the length of the prompt."""
    record, [answer] = read_journal(run(model, corpus, out=out, options=Options(device="cpu")))
    return record.decoding.get("chat"), answer.tokens_in


@pytest.mark.parametrize(("before_answer", "switch", "is_on"), SWITCHED)
def test_thinking_is_off_where_answers_have_no_room_for_it(
    hello: Corpus,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    before_answer: str,
    switch: str,
    is_on: bool,
) -> None:
    # Less than the usual 2,048 tokens, so that answers are short.
    monkeypatch.setattr(model_module, "_ROOM_TO_THINK", LONG)
    chat = CHAT.replace("<|assistant|>", f"<|assistant|>{before_answer}")
    weights = make_weights(tmp_path / "model", chat)
    off, on = ({"chat": {switch: value}} for value in (False, True))
    made = {
        name: chat_of(make_model(weights, "wave", **settings), hello, tmp_path / name)
        for name, settings in {
            "plain": {},
            "off": off,
            "on": on,
            "constrained": {"mode": "constrained", "max_new_tokens": LONG},
            "long": {"max_new_tokens": LONG},
        }.items()
    }
    recorded = {switch: False} if is_on else None
    assert made["off"][1] != made["on"][1]
    assert made["on"][0] == on["chat"]
    assert made["plain"] == made["constrained"] == (recorded, made["off"][1])
    assert made["long"] == (None, made["on" if is_on else "off"][1])


def test_a_run_that_began_with_thoughts_goes_on_with_them(
    hello: Corpus, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights = make_weights(
        tmp_path / "model", CHAT.replace("<|assistant|>", f"<|assistant|>{QWEN}"), context=4096
    )
    model, file = make_model(weights, "wave"), tmp_path / "run.jsonl"
    with monkeypatch.context() as patch:
        patch.setattr(local_engine, "_added_switches", lambda *_: {})
        first = chat_of(model, hello, file)
    header = file.read_text().splitlines()[0]
    file.write_text(f"{header}\n")
    assert chat_of(model, hello, file) == first
    assert first[0] is None
    assert file.read_text().splitlines()[0] == header
    # A run with thinking off answers the same question, unless its answers have room for thoughts.
    said: list[str] = []
    path = run(model, hello, out=tmp_path / "off", options=Options(notice=said.append))
    assert "thinking is switched off (enable_thinking=false)" in " ".join(said)
    record = read_journal(path)[0]
    assert not other_settings(model, hello, "self", record)
    off = {"enable_thinking": False}
    roomy = make_model(weights, "wave", max_new_tokens=2048)
    explicit = make_model(weights, "wave", max_new_tokens=2048, chat=off)
    record = read_journal(run(explicit, hello, out=tmp_path / "explicit"))[0]
    assert other_settings(roomy, hello, "self", record) == {"chat": (None, off)}


@pytest.fixture
def local(loaded: Local) -> Local:
    """The tiny Llama with a tokenizer that a test may change."""
    return replace(loaded, tokenizer=copy.deepcopy(loaded.tokenizer))


def read(local: Local, text: str, *, ended: bool = True, **decoding: Any) -> tuple[Any, ...]:
    """Gives the text, outcome and reason of an answer."""
    local = replace(local, decoding=local.decoding.model_copy(update=decoding))
    ids = local.tokenizer(text)["input_ids"]
    answer = local.answer(ids, ended=ended, tokens_in=1, tokens_cached=0)
    return answer.text, answer.outcome, answer.reason


def test_a_cut_answer_and_an_answer_in_a_thought_are_unparsed(local: Local) -> None:
    cut = f"cut at {LIMIT} tokens"
    for text in ("alert_past", "alert_past\nconf", "alert_past\nReason: it"):
        assert read(local, text, ended=False) == (text, Outcome.UNPARSED, cut)
    text = "The user is well.\nalert"
    assert read(local, text, ended=False) == (text, None, None)
    raw, problem = "I think and think<|end|>", "no <|final|> in the answer"
    assert read(local, raw, answer_after="<|final|>") == (raw, Outcome.UNPARSED, problem)
    local.tokenizer.chat_template = CHAT.replace("<|assistant|>", "<|assistant|><think>\n")
    raw, problem = f"none</reasoning>{LABEL}", "the thought that the prompt opened (<think>) is"
    assert read(local, raw) == (raw, Outcome.UNPARSED, f"{problem} not closed")


@pytest.mark.parametrize("token", ["</s>", "<｜User｜>"])  # noqa: RUF001
def test_only_special_tokens_of_the_tokenizer_are_removed(local: Local, token: str) -> None:
    local.tokenizer.add_special_tokens({"additional_special_tokens": [token, "<think>"]})
    local.tokenizer.add_tokens([AddedToken("<s_end>", special=True), AddedToken("<plain>")])
    texts = {
        f"{LABEL}<s_end>": LABEL,
        f"{LABEL}<plain>": f"{LABEL}<plain>",
        f"{LABEL}{token}<|end|>": LABEL,
        f"{token}{LABEL}; none{token}{token}": f"{LABEL}; none",
        # Text that only looks like a special token stays.
        f"{LABEL}<|other|>": f"{LABEL}<|other|>",
        f"<think>a{token}</think>{LABEL}": f"<think>a</think>{LABEL}",
    }
    for written, text in texts.items():
        assert read(local, written) == (text, None, None)
    # The same after the text that begins the answer.
    for end, left in ((token, ""), ("<|x|>", "<|x|>")):
        found = read(local, f"none FINAL{LABEL}{end}", answer_after="FINAL")
        assert found == (f"{LABEL}{left}", None, None)


def test_gpt_oss_channels_are_recognised_by_special_tokens(local: Local) -> None:
    control = ["<|channel|>", "<|message|>", "<|start|>", "<|return|>"]
    local.tokenizer.add_special_tokens({"additional_special_tokens": control})
    thought = "<|channel|>analysis<|message|>none\n"
    final = f"<|channel|>final<|message|>{LABEL}"
    text, *_ = read(local, f"{thought}<|start|>assistant{final}<|return|>")
    assert text == f"{thought}assistant{final}"
    assert read(local, text, answer_after="<|channel|>final<|message|>") == (LABEL, None, None)
    assert read_answer(text) == (Outcome.OK, BITS[LABEL])
