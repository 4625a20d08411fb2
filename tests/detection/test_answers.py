"""Answers are read as the prompt asks for them, and anything else is unparsed."""

from __future__ import annotations

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection import Outcome, read_answer
from cradle_lib.detection.parsing import is_cut, spoken
from cradle_lib.labels import BITS, LABELS

SH, DV = BITS["confirm_SH_ongoing"], BITS["confirm_DV_past"]
LABEL_LISTS = st.lists(st.sampled_from(LABELS), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("none", 0),
        ("None.", 0),
        ("  **none**\n", 0),
        ("confirm_SH_ongoing", SH),
        ("\n\n  confirm_sh_ONGOING  \nBecause the user says so.", SH),
        ("confirm_SH_ongoing; confirm_DV_past", SH | DV),
        ("confirm_SH_ongoing;confirm_DV_past;", SH | DV),
        ("`confirm_SH_ongoing`; 'confirm_DV_past'.", SH | DV),
        ("“confirm_SH_ongoing”", SH),
        ("[confirm_SH_ongoing; confirm_SH_ongoing]", SH),
        ("<think>alert_past?\nno.</think>\nconfirm_SH_ongoing", SH),
        ("<think>\n\n</think>\n\nnone", 0),
    ],
)
def test_an_answer_in_the_asked_form_is_read(text: str, mask: int) -> None:
    assert read_answer(text) == (Outcome.OK, mask)


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \n\t\n",
        ";",
        "**",
        "none; confirm_SH_ongoing",
        "none; none",
        "confirm_SH_ongoing; ; confirm_DV_past",
        "confirm_SH_ongoing, confirm_DV_past",
        "confirm_SH_ongoing or confirm_DV_past",
        "Label: none",
        "confirm_SH",
        "The user discloses self-harm.\nconfirm_SH_ongoing",
        "<think>it is none",
        "none</think>",
        "<think>a</think><think>\nnone",
    ],
)
def test_anything_else_is_unparsed(text: str) -> None:
    assert read_answer(text) == (Outcome.UNPARSED, 0)


@settings(deadline=None, max_examples=100)
@given(
    names=LABEL_LISTS,
    wrap=st.sampled_from(["", "`", '"', "**", "'"]),
    end=st.sampled_from(["", ".", ";", " ", ";.", "!"]),
    upper=st.booleans(),
    blank=st.sampled_from(["", "\n", "  \r\n\n"]),
    rest=st.text(),
    thought=st.text(alphabet=st.characters(exclude_characters="<>")),
)
def test_decoration_never_changes_what_is_read(
    names: list[str], wrap: str, end: str, upper: bool, blank: str, rest: str, thought: str
) -> None:
    line = "; ".join(f"{wrap}{name}{wrap}" for name in names) + end
    line = line.upper() if upper else line
    # The oracle packs the bits itself: 2**position for each distinct label.
    expected = sum(2 ** LABELS.index(name) for name in set(names))
    rest = rest.replace("<", "").replace(">", "")
    assert read_answer(f"<think>{thought}</think>{blank}{line}\n{rest}") == (Outcome.OK, expected)


@settings(deadline=None, max_examples=100)
@given(text=st.text())
def test_reading_never_fails_and_only_ok_answers_have_labels(text: str) -> None:
    outcome, mask = read_answer(text)
    assert outcome in (Outcome.OK, Outcome.UNPARSED)
    assert mask == 0 or outcome is Outcome.OK


@settings(deadline=None, max_examples=100)
@given(names=LABEL_LISTS, word=st.from_regex(r"[a-z]{1,12}", fullmatch=True), place=st.integers(0))
def test_one_unknown_word_spoils_the_line(names: list[str], word: str, place: int) -> None:
    position = place % (len(names) + 1)
    parts = [*names[:position], word, *names[position:]]
    assert read_answer("; ".join(parts)) == (Outcome.UNPARSED, 0)


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(["<think>", "</think>", "<THINK>", "</Think>", "\n", "none"])))
def test_thoughts_are_taken_out_as_a_pattern_for_the_whole_block_would(parts: list[str]) -> None:
    text = "".join(parts)
    block = re.compile(r"<think>.*?</think>", re.DOTALL | re.IGNORECASE)
    assert spoken(text) == block.sub("", text)


def test_tags_that_are_never_closed_are_each_looked_at_once() -> None:
    # The pattern above would look at every character after each of them: 10^10 looks.
    assert read_answer("<think>" * 20_000) == (Outcome.UNPARSED, 0)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("confirm_SH_on", True),
        ("", True),
        ("\n\nconfirm_SH_ongoing", True),
        ("<think>it may be", True),
        ("none\n", False),
        ("none\nBecause the us", False),
        ("<think>ok</think>\nnone\nBec", False),
        ("<think>ok</think>\nnone", True),
    ],
)
def test_an_answer_is_cut_unless_its_first_line_has_ended(text: str, cut: bool) -> None:
    assert is_cut(text) is cut
