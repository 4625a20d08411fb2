"""What follows a thought is read, also one that the chat template opens; nothing within it is.

Tiny models are trained to reason in the forms of several model families.
"""

from __future__ import annotations

import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tokenizers import AddedToken
from transformers import AutoTokenizer

from cradle_extras.training.sequences import token_tree
from cradle_lib.corpus import Corpus
from cradle_lib.detection import Options, Outcome, Prediction, read_answer, read_journal
from cradle_lib.detection.local.local_engine import Local, load_local
from cradle_lib.detection.run import run
from cradle_lib.errors import EngineError
from cradle_lib.labels import BITS
from cradle_lib.prompts import load_template

from .tiny_models import CHAT, make_model, make_weights, teach

pytestmark = pytest.mark.usefixtures("short_prompt")

LABEL = "confirm_DV_past"
LONG = 80


def make_thinker(
    folder: Path, opened: str, answer: str, *, token: str = "<|final|>", special: bool = True
) -> Path:
    """A model whose template ends with ``opened``, and which writes an answer and the end token.

    One of its tokens is called ``token``.
    """
    make_weights(folder, CHAT.replace("<|assistant|>", f"<|assistant|>{opened}"))
    name_token(folder, token, special=special)
    text = f"<|user|>Label.\nUser: hello<|end|><|assistant|>{opened}{answer}<|end|>"
    return teach(folder, [AutoTokenizer.from_pretrained(folder)(text)["input_ids"]])


def name_token(folder: Path, called: str, *, special: bool = True) -> None:
    """Renames the token ``<|final|>``."""
    file = folder / "tokenizer.json"
    content = file.read_text().replace("<|final|>", called)
    if not special:
        head, found, tail = content.partition(f'"content": "{called}"')
        content = head + found + tail.replace('"special": true', '"special": false', 1)
    file.write_text(content)


def answer_of(
    weights: Path, corpus: Corpus, out: Path, engine: str, limit: int = LONG, **decoding: Any
) -> Prediction:
    model = make_model(weights, engine, max_new_tokens=limit, **decoding)
    [answer] = read_journal(run(model, corpus, out=out / f"{engine}{limit}"))[1]
    return answer


# The marker that opens a thought, the one that closes it, whether that is one token, which may be
# special, and whether the model opens the thought itself.
@pytest.mark.parametrize(
    ("opens", "closes", "special", "opens_itself"),
    [
        ("<think>", "</think>", None, True),
        ("<think>", "</think>", False, False),
        ("[THINK]", "[/THINK]", True, False),
    ],
)
def test_a_thought_that_the_template_opens_ends_where_it_is_closed(
    hello: Corpus, tmp_path: Path, opens: str, closes: str, special: bool | None, opens_itself: bool
) -> None:
    opened = f"{opens}\n"
    thought = f"none\nso\n{closes}\n\n{LABEL}"
    weights = make_thinker(
        tmp_path / "model",
        "" if opens_itself else opened,
        opened + thought if opens_itself else thought,
        token="<|final|>" if special is None else closes,
        special=bool(special),
    )
    for engine in ("reference", "wave"):
        found = answer_of(weights, hello, tmp_path, engine)
        assert (found.outcome, found.mask, found.reason) == (Outcome.OK, BITS[LABEL], None)
        assert found.answer.endswith(thought)
        # The first line of the thought is an answer, if it is taken for one.
        cut = answer_of(weights, hello, tmp_path, engine, limit=10)
        assert (cut.outcome, cut.reason) == (Outcome.UNPARSED, "cut at 10 tokens")


def test_labels_are_neither_forced_into_a_thought_nor_taught_there(
    hello: Corpus, tmp_path: Path
) -> None:
    switch = "{% if enable_thinking is false %}<think>\n\n</think>\n{% else %}<think>{% endif %}"
    chat = CHAT.replace("<|assistant|>", f"<|assistant|>{switch}")
    weights = make_weights(tmp_path / "model", chat)
    model = make_model(weights, "wave", mode="constrained")
    with pytest.raises(EngineError, match=r"Tiny: `mode: constrained` .*\(<think>\).*`chat`"):
        run(model, hello, out=tmp_path / "a")
    local = load_local(model, Options())
    with pytest.raises(EngineError, match=r"training .*\(<think>\)"):
        token_tree(hello.dialogues[0], load_template("short"), local)
    # The switch closes the thought, and after it an answer is as without thoughts.
    off = {"enable_thinking": False}
    model = make_model(weights, "wave", mode="constrained", chat=off)
    assert [p.outcome for p in read_journal(run(model, hello, out=tmp_path / "b"))[1]] == ["ok"]
    assert token_tree(
        hello.dialogues[0], load_template("short"), load_local(model, Options())
    ).turns


def test_a_thought_that_the_prompt_opened_and_nothing_closes_is_unparsed(loaded: Local) -> None:
    tokenizer = copy.deepcopy(loaded.tokenizer)
    tokenizer.chat_template = CHAT.replace("<|assistant|>", "<|assistant|><think>\n")
    local = replace(loaded, tokenizer=tokenizer)
    ids = tokenizer(f"none</reasoning>{LABEL}")["input_ids"]
    answer = local.answer(ids, ended=True, tokens_in=1, tokens_cached=0)
    assert answer.outcome is Outcome.UNPARSED
    assert answer.reason == "the thought that the prompt opened (<think>) is not closed"


def read(local: Local, text: str, **decoding: Any) -> tuple[str, Outcome | None]:
    local = replace(local, decoding=local.decoding.model_copy(update=decoding))
    ids = local.tokenizer(text)["input_ids"]
    answer = local.answer(ids, ended=True, tokens_in=1, tokens_cached=0)
    return answer.text, answer.outcome


@pytest.mark.parametrize("called", ["</s>", "<｜User｜>"])  # noqa: RUF001
def test_special_tokens_are_those_of_the_tokenizer_not_those_of_a_spelling(
    loaded: Local, called: str
) -> None:
    local = replace(loaded, tokenizer=copy.deepcopy(loaded.tokenizer))
    local.tokenizer.add_special_tokens({"additional_special_tokens": [called, "<think>"]})
    local.tokenizer.add_tokens([AddedToken("<s_end>", special=True), AddedToken("<plain>")])
    assert read(local, f"{LABEL}<s_end>") == (LABEL, None)
    assert read(local, f"{LABEL}<plain>") == (f"{LABEL}<plain>", None)
    assert read(local, f"{LABEL}{called}<|end|>") == (LABEL, None)
    assert read(local, f"{called}{LABEL}; none{called}{called}") == (f"{LABEL}; none", None)
    # What looks like one and is none stays.
    assert read(local, f"{LABEL}<|other|>") == (f"{LABEL}<|other|>", None)
    assert read(local, f"<think>a{called}</think>{LABEL}") == (f"<think>a</think>{LABEL}", None)
    # And after the text that begins the answer.
    after = {"answer_after": "FINAL"}
    assert read(local, f"none FINAL{LABEL}{called}", **after) == (LABEL, None)
    assert read(local, f"none FINAL{LABEL}<|x|>", **after) == (f"{LABEL}<|x|>", None)


def test_gpt_oss_channels_are_told_apart_by_special_tokens(loaded: Local) -> None:
    local = replace(loaded, tokenizer=copy.deepcopy(loaded.tokenizer))
    control = ["<|channel|>", "<|message|>", "<|start|>", "<|return|>"]
    local.tokenizer.add_special_tokens({"additional_special_tokens": control})
    thought = "<|channel|>analysis<|message|>none\n"
    final = f"<|channel|>final<|message|>{LABEL}"
    text, _ = read(local, f"{thought}<|start|>assistant{final}<|return|>")
    assert text == f"{thought}assistant{final}"
    assert read(local, text, answer_after="<|channel|>final<|message|>") == (LABEL, None)
    assert read_answer(text) == (Outcome.OK, BITS[LABEL])
