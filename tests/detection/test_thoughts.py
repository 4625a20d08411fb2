"""Reasoning is taken out of answers, whatever marks it, and never read as labels."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection import Outcome, read_answer
from cradle_lib.detection.parsing import is_cut
from cradle_lib.detection.thoughts import is_open, open_marker, without_thoughts
from cradle_lib.labels import BITS

# As the chat templates and the documentation of these models write them.
PAIRS = {
    "DeepSeek, Qwen": ("<think>", "</think>"),
    "in capitals": ("<THINK>", "</Think>"),
    "Seed-OSS": ("<seed:think>", "</seed:think>"),
    "LongCat": ("<longcat_think>", "</longcat_think>"),
    "Claude": ("<thinking>", "</thinking>"),
    "EXAONE": ("<thought>", "</thought>"),
    "GRPO recipes": ("<reasoning>", "</reasoning>"),
    "scratchpad": ("<scratchpad>", "</scratchpad>"),
    "chain of thought": ("<chain_of_thought>", "</chain_of_thought>"),
    "Magistral": ("[THINK]", "[/THINK]"),
    "Sky-T1": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "Command A": ("<|START_THINKING|>", "<|END_THINKING|>"),
    "think start": ("<|think_start|>", "<|think_end|>"),
    "Kimi": ("◁think▷", "◁/think▷"),
    "gpt-oss": (
        "<|channel|>analysis<|message|>",
        "<|end|><|start|>assistant<|channel|>final<|message|>",
    ),
    "gpt-oss, with a format": (
        "<|channel|>commentary to=x <|constrain|>json<|message|>",
        "<|end|><|start|>assistant<|channel|>final <|constrain|>text<|message|>",
    ),
    "Gemma 4": ("<|channel>thought\n", "<channel|>"),
    "MedGemma": ("<unused94>thought\n", "<unused95>"),
    "Apertus": ("<|inner_prefix|>", "<|inner_suffix|>"),
}
LABEL = "confirm_DV_past"
THOUGHT = "alert_ongoing\nIt says <b>no</b>, so\nconfirm_SH_ongoing\n"


@pytest.mark.parametrize(("opens", "closes"), PAIRS.values(), ids=PAIRS)
def test_what_follows_a_thought_is_read_and_nothing_within_it(opens: str, closes: str) -> None:
    read = (Outcome.OK, BITS[LABEL])
    assert read_answer(f"{opens}{THOUGHT}{closes}\n\n{LABEL}") == read
    # The prompt has opened it, so that the answer has the closing marker only.
    assert read_answer(f"{THOUGHT}{closes}\n\n{LABEL}") == read
    assert read_answer(f"{opens}{THOUGHT}") == (Outcome.UNPARSED, 0)
    assert read_answer(f"{THOUGHT}{closes}") == (Outcome.UNPARSED, 0)
    assert read_answer(f"{closes}{LABEL}{closes}none") == (Outcome.OK, 0)
    # A line break within a thought ends no answer.
    assert is_cut(f"{opens}none\nand{closes}none")
    assert not is_cut(f"{opens}none\nand{closes}none\nMore.\n")
    assert open_marker(f"<|assistant|>{opens}") == opens.rstrip()
    assert not is_open(f"<|assistant|>{opens}\n{closes}\n\n")


def test_one_marker_does_not_close_a_thought_of_another_kind() -> None:
    assert read_answer("<think>a</reasoning>none") == (Outcome.UNPARSED, 0)
    assert read_answer("<think>a</reasoning>b</think>none") == (Outcome.OK, 0)


@pytest.mark.parametrize(
    "text",
    [
        "<think>a</think><answer>confirm_DV_past</answer>",
        "<|begin_of_thought|>a<|end_of_thought|>\n<|begin_of_solution|>\nconfirm_DV_past\n"
        "<|end_of_solution|>",
        "<|START_THINKING|>a<|END_THINKING|><|START_RESPONSE|>confirm_DV_past<|END_RESPONSE|>",
    ],
)
def test_what_frames_the_answer_after_a_thought_is_passed_over(text: str) -> None:
    assert read_answer(text) == (Outcome.OK, BITS[LABEL])


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["<think>", "</think>", "<THINK>", "</Think>", "\n", "none"])))
def test_thoughts_are_taken_out_as_patterns_for_whole_blocks_would(parts: list[str]) -> None:
    text = "".join(parts)
    whole = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL | re.IGNORECASE)
    opened = re.search("<think>", whole, re.IGNORECASE)
    head = whole[: opened.start()] if opened else whole
    # Of the rest everything up to the last closing marker belongs to the prompt's thought.
    lone = re.sub(r"^.*</think>", "", head, flags=re.DOTALL | re.IGNORECASE)
    assert without_thoughts(text) == lone + whole[len(head) :]


@pytest.mark.parametrize("piece", ["<think>", "<think_", "<a_", "<|begin_of_", "<|channel|>final"])
def test_each_marker_is_looked_at_once(piece: str) -> None:
    # Looking through the rest of the text from each of them would take minutes.
    assert read_answer("<" + piece * 20_000) == (Outcome.UNPARSED, 0)
