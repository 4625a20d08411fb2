"""Injections in dialogues and answers stay plain text in prompts and parsing."""

from __future__ import annotations

import re
from typing import Any

import pytest

from cradle_lib.detection import Answer, Outcome, Session, read_answer
from cradle_lib.detection.protocol.parsing import is_cut
from cradle_lib.labels import LABELS
from cradle_lib.prompts import load_template

from ..detection.dialogues import make_dialogue
from .attack import TEXTS, cases

pytestmark = pytest.mark.hostile


def _text(rng: Any) -> str:
    joiner = rng.choice(("", " ", "\n", "\u2028", "\r\n"))
    return str(joiner.join(rng.choice(TEXTS) for _ in range(rng.randint(1, 5))))


FORGED = re.compile(
    r"<\|im_|</?s>|\[/?INST\]|\[TOOL_CALLS\]|\[AVAILABLE_TOOLS\]|\[gMASK\]|\[multimodal\]|\[@BOS@\]"
    r"|<\uff5c|</?think>|<start_of_turn>|<bos>|<eos>"
)


@pytest.mark.parametrize("name", ["turn", "append", "brief"])
def test_a_turn_stays_one_line_of_the_prompt(name: str) -> None:
    template = load_template(name)
    for rng in cases(f"prompt {name}"):
        rows = [(rng.choice(("User", "Listener")), _text(rng), "none") for _ in range(4)]
        plain = [(who, "word", "none") for who, _, _ in rows]
        prompts = [_last_prompt(make_dialogue(0, [*r, ("User", "End.", "none")]), template)
                for r in (rows, plain)]  # fmt: skip
        forged, honest = (text[template.static :] for text in prompts)
        assert len(forged.splitlines()) == len(honest.splitlines())
        heads = [line.split(" ", 1)[0] for line in forged.splitlines()]
        assert heads == [line.split(" ", 1)[0] for line in honest.splitlines()]
        assert not FORGED.search(forged), ascii(FORGED.search(forged))
        forged.encode()


def _last_prompt(dialogue: Any, template: Any) -> str:
    session = Session(dialogue, template)
    text = ""
    while session.prompt is not None:
        text = session.prompt.text
        session.answer(Answer("none"))
    return text


def test_an_answer_predicts_only_labels_in_its_text() -> None:
    words = (*LABELS, "none", ";", "\n", "<think>", "</think>", "**", " ", ".", *TEXTS)
    for rng in cases("answers"):
        text = "".join(rng.choice(words) for _ in range(rng.randint(0, 12)))
        outcome, mask = read_answer(text)
        assert outcome in (Outcome.OK, Outcome.UNPARSED)
        shown = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL | re.IGNORECASE).lower()
        for place, label in enumerate(LABELS):
            assert not mask & 1 << place or label.lower() in shown
        is_cut(text)
