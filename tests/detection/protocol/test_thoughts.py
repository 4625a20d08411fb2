"""Reasoning is removed from answers for all known markers, and never parsed as labels."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection import Outcome, read_answer
from cradle_lib.detection.protocol.parsing import is_cut
from cradle_lib.detection.protocol.thoughts import is_open, open_marker, without_thoughts
from cradle_lib.labels import BITS

# From the chat templates and the documentation of these models.
PAIRS = {
    "DeepSeek, Qwen": ("<think>", "</think>"),
    "in capitals": ("<THINK>", "</Think>"),
    "Seed-OSS": ("<seed:think>", "</seed:think>"),
    "EXAONE": ("<thought>", "</thought>"),
    "chain of thought": ("<chain_of_thought>", "</chain_of_thought>"),
    "Magistral": ("[THINK]", "[/THINK]"),
    "Sky-T1": ("<|begin_of_thought|>", "<|end_of_thought|>"),
    "Command A": ("<|START_THINKING|>", "<|END_THINKING|>"),
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
def test_only_text_after_a_thought_is_parsed(opens: str, closes: str) -> None:
    read = (Outcome.OK, BITS[LABEL])
    assert read_answer(f"{opens}{THOUGHT}{closes}\n\n{LABEL}") == read
    # If the prompt opens the thought, the answer has the closing marker only.
    assert read_answer(f"{THOUGHT}{closes}\n\n{LABEL}") == read
    assert read_answer(f"{opens}{THOUGHT}") == (Outcome.UNPARSED, 0)
    assert read_answer(f"{THOUGHT}{closes}") == (Outcome.UNPARSED, 0)
    assert read_answer(f"{closes}{LABEL}{closes}none") == (Outcome.OK, 0)
    # A line break in a thought does not end an answer.
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
def test_tags_around_the_answer_after_a_thought_are_ignored(text: str) -> None:
    assert read_answer(text) == (Outcome.OK, BITS[LABEL])


@settings(max_examples=200)
@given(st.lists(st.sampled_from(["<think>", "</think>", "<THINK>", "</Think>", "\n", "none"])))
def test_thoughts_are_removed_like_with_regular_expressions(parts: list[str]) -> None:
    text = "".join(parts)
    without_blocks = re.sub(r"<think>.*?</think>", "", text, flags=re.DOTALL | re.IGNORECASE)
    opened = re.search("<think>", without_blocks, re.IGNORECASE)
    head = without_blocks[: opened.start()] if opened else without_blocks
    # In the rest, text up to the last closing marker belongs to a thought that the prompt opened.
    after_last_close = re.sub(r"^.*</think>", "", head, flags=re.DOTALL | re.IGNORECASE)
    assert without_thoughts(text) == after_last_close + without_blocks[len(head) :]


@pytest.mark.parametrize("piece", ["<think>", "<think_", "<a_", "<|begin_of_", "<|channel|>final"])
def test_markers_are_found_in_linear_time(piece: str) -> None:
    # Searching the rest of the text from each marker would take minutes.
    assert read_answer("<" + piece * 20_000) == (Outcome.UNPARSED, 0)
