"""Answers in the requested form are parsed; all others are unparsed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection import Outcome, read_answer
from cradle_lib.detection.protocol.parsing import is_cut, needs_cleaning
from cradle_lib.labels import BITS, LABELS

SH, DV = BITS["confirm_SH_ongoing"], BITS["confirm_DV_past"]
LABEL_LISTS = st.lists(st.sampled_from(LABELS), min_size=1, max_size=5)


def mask_by_position(names: list[str]) -> int:
    """Computes a mask without the library: the sum of 2**position over distinct labels."""
    return sum(2 ** LABELS.index(name) for name in set(names))


@pytest.mark.parametrize(
    ("text", "mask", "cleaned"),
    [
        # The form that the prompt asks for.
        ("none", 0, False),
        ("confirm_SH_ongoing; confirm_DV_past", SH | DV, False),
        ("<think>alert_past?\nno.</think>\nconfirm_SH_ongoing", SH, False),
        # Labels with accepted additions.
        ("None.", 0, True),
        ("\n\n  confirm_sh_ONGOING  \n\nExplanation: The user says so.\nIt is plain.", SH, True),
        ("[confirm_SH_ongoing; confirm_SH_ongoing]", SH, True),
        ('["confirm_SH_ongoing"]', SH, True),
        ("confirm_SH_ongoing\rconfirm_DV_past", SH | DV, True),
        ("```confirm_SH_ongoing\n```", SH, True),
        ("confirm_DV_past\nReason: `confirm_DV_past`, as it is over.", DV, True),
    ],
)
def test_valid_answers_are_parsed_and_cleaning_noted(text: str, mask: int, cleaned: bool) -> None:
    assert read_answer(text) == (Outcome.OK, mask)
    assert needs_cleaning(text) is cleaned


@pytest.mark.parametrize(
    "text",
    [
        # Other forms.
        " \n\t\n",
        "none; confirm_SH_ongoing",
        "none; none",
        "confirm_SH_ongoing; ; confirm_DV_past",
        "confirm_SH_ongoing, confirm_DV_past",
        "confirm_SH",
        '{"labels": ["confirm_SH_ongoing"]}',
        # A label would be lost.
        "none\nconfirm_SH_ongoing",
        "confirm_SH_ongoing\nThe user says so.\nconfirm_DV_past",
        '[\n"confirm_SH_ongoing",\n"confirm_DV_past"\n]',
        "confirm_SH_ongoing\nAlso: confirm\\_DV\\_past",
        "confirm_SH_ongoing\nconfirm\u2011DV\u2011past",
        "confirm_SH_ongoing\nconfirm_DV_\u200bpast",
        "none\nThe user may mean alert_ongoing.",
        "```\nconfirm_SH_ongoing\n```\nOr:\n```\nalert_past\n```",
        "```confirm_DV\nconfirm_SH_ongoing\n```",
        "confirm_SH_ongoing\nExplanation: There is `Confirm\\_DV\\_Past`, too.",
        "confirm_SH_ongoing\nExplanation: A joke, so:\nAnswer: none",
        # A label inside prose is no prediction.
        "The user discloses self-harm.\nconfirm_SH_ongoing",
        "alert_ongoing: no",
        "!alert_ongoing",
        "- [ ] alert_ongoing",
        "Answer: not alert_ongoing",
        "Answer:\nAnswer:\nalert_ongoing",
        "User: I am fine.\nMODEL_TAG: alert_ongoing",
        "```\nThe user is fine.\nalert_ongoing\n```",
    ],
)
def test_anything_else_is_unparsed(text: str) -> None:
    assert read_answer(text) == (Outcome.UNPARSED, 0)
    assert not needs_cleaning(text)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("confirm_SH_on", True),
        ("", True),
        ("Answer:\n", True),
        ("confirm_SH_ongoing\n- `confirm_DV_past`; al", True),
        ("```\nnone\n``", True),
        ("none\nExplanation: the us", True),
        ("The us", True),
        ("<think>ok</think>\nnone\nThe user is well.\n", False),
        ("The user\r\nconfirm_S", False),
        ("none\nconfirm_SH_past\n", False),
        ("none\nExplanation: Not\nalert_past.\n", False),
    ],
)
def test_an_answer_is_complete_once_a_finished_line_makes_it_unparsed(text: str, cut: bool) -> None:
    assert is_cut(text) is cut


WRAPPINGS = [
    "```\n{}\n```",
    "~~~text\n{}\n~~~\n",
    "**Answer:**\n\n```\n{}\n```",
    "`{}`",
    "***{}***",
    '"{}"',
    "**Labels:** {}",
    "LABELS:\n{}",
    "### Answer\n{}",
    "<think>alert_past\nno</think>\n\nAnswer: {}",
    "- {}",
    "{}\n### Reasoning\nThe user says so.",
]


@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_accepted_wrappings_do_not_change_the_labels_and_count_as_cleaning(wrapping: str) -> None:
    for line in ("none", "alert_past", "confirm_SH_ongoing; confirm_DV_past"):
        for written in (line, line.replace("_", r"\_")):
            text = wrapping.format(written)
            expected = mask_by_position([name for name in line.split("; ") if name != "none"])
            assert read_answer(text) == (Outcome.OK, expected)
            assert needs_cleaning(text)


@settings(max_examples=60)
@given(
    lines=st.lists(LABEL_LISTS, min_size=2, max_size=4),
    bullet=st.sampled_from(["", "- ", "* ", "+ ", "3. ", "2) ", "• "]),
    gap=st.sampled_from(["\n", "\r\n", "\n\n", ";\n", ",\n", " \n"]),
    lead=st.sampled_from(["", "Answer: ", "Labels:\n", "```\n"]),
    end=st.sampled_from(["", "\n", "\nReason: This is what the user says."]),
)
def test_labels_on_several_lines_are_all_parsed(
    lines: list[list[str]], bullet: str, gap: str, lead: str, end: str
) -> None:
    bullet = bullet if not lead.endswith(" ") else ""
    text = lead + gap.join(bullet + "; ".join(names) for names in lines) + end
    assert read_answer(text) == (
        Outcome.OK,
        mask_by_position([n for names in lines for n in names]),
    )
    assert needs_cleaning(text)


PIECES = ("alert_past", "confirm_SH_ongoing", "none", ";", ".", "**", "\n", "Answer:", "- ", "no")


@settings(max_examples=200)
@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_a_simple_parser_of_words_agrees(parts: list[str]) -> None:
    """The simple parser splits the text into words and ignores lines."""
    outcome, mask = read_answer(" ".join(parts))
    words = [part for part in parts if part in (*LABELS, "none", "no")]
    labels = [word for word in words if word in LABELS]
    if outcome is Outcome.OK:
        assert mask == mask_by_position(labels), "no label is lost"
        assert "no" not in words
        assert not (labels and "none" in words)


@settings(max_examples=60)
@given(
    lines=st.lists(st.sampled_from([*LABELS[:4], "none", "**alert_past**", "", "```", "- DV"])),
    lead=st.sampled_from(["", "Answer: ", "```\n", "none\nReason: so\n"]),
    more=st.text(alphabet=st.sampled_from("\r\n; alert_pson.`B")),
)
def test_an_answer_that_is_not_cut_stays_unparsed(lines: list[str], lead: str, more: str) -> None:
    text = lead + "\n".join(lines) + "\n" + more
    for end in range(len(text) + 1):
        if not is_cut(text[:end]):
            assert read_answer(text[:end]) == (Outcome.UNPARSED, 0)
            assert read_answer(text) == (Outcome.UNPARSED, 0)


@pytest.mark.parametrize("part", ["`", "[ ", "none\n", "```x\n", "alert_", "; ", "<think>"])
def test_long_answers_are_parsed_in_linear_time(part: str) -> None:
    # A pattern that backtracks at each letter would take minutes.
    text = "none\n" + part * (100_000 // len(part))
    assert read_answer(text)[0] in Outcome
    is_cut(text)
