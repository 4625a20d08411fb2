"""Answers are read as the prompt asks for them, and anything else is unparsed."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib.detection import Outcome, read_answer
from cradle_lib.detection.parsing import is_cut, needs_cleaning
from cradle_lib.labels import BITS, LABELS

SH, DV = BITS["confirm_SH_ongoing"], BITS["confirm_DV_past"]
LABEL_LISTS = st.lists(st.sampled_from(LABELS), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("none", 0),
        ("None.", 0),
        ("confirm_SH_ongoing", SH),
        ("\n\n  confirm_sh_ONGOING  \n\nExplanation: The user says so.\nIt is plain.", SH),
        ("confirm_SH_ongoing; confirm_DV_past", SH | DV),
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
        "none; confirm_SH_ongoing",
        "none; none",
        "confirm_SH_ongoing; ; confirm_DV_past",
        "confirm_SH_ongoing, confirm_DV_past",
        "confirm_SH",
        "The user discloses self-harm.\nconfirm_SH_ongoing",
        "<think>it is none",
        "none</think>",
        "<think>a</think><think>\nnone",
    ],
)
def test_anything_else_is_unparsed(text: str) -> None:
    assert read_answer(text) == (Outcome.UNPARSED, 0)


@settings(deadline=None, max_examples=60)
@given(
    names=LABEL_LISTS,
    wrap=st.sampled_from(["", "`", '"', "**", "'"]),
    end=st.sampled_from(["", ".", ";", " ", ";.", "!"]),
    upper=st.booleans(),
    blank=st.sampled_from(["", "\n", "  \r\n\n"]),
    rest=st.text(alphabet=" .,!?:()\n\u2028xyz0123456789"),
    thought=st.text(alphabet=st.characters(exclude_characters="<>")),
)
def test_decoration_never_changes_what_is_read(
    names: list[str], wrap: str, end: str, upper: bool, blank: str, rest: str, thought: str
) -> None:
    line = "; ".join(f"{wrap}{name}{wrap}" for name in names) + end
    line = line.upper() if upper else line
    # The oracle packs the bits itself: 2**position for each distinct label.
    expected = sum(2 ** LABELS.index(name) for name in set(names))
    text = f"<think>{thought}</think>{blank}{line}\nExplanation: {rest}"
    assert read_answer(text) == (Outcome.OK, expected)


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("confirm_SH_on", True),
        ("", True),
        ("Answer:\n", True),
        ("\n\nconfirm_SH_ongoing", True),
        ("<think>it may be", True),
        ("none\n", True),
        ("confirm_SH_ongoing\nconfirm_D", True),
        ("confirm_SH_ongoing\n- `confirm_DV_past`; al", True),
        ("```\nnone\n``", True),
        ("none\nBecause the us", True),
        ("none\nExplanation: the us", True),
        ("<think>ok</think>\nnone", True),
        ("The us", True),
        ("The user is well.\n", False),
        ("<think>ok</think>\nnone\nThe user is well.\n", False),
        ("The user\r\nconfirm_S", False),
        ("none\nconfirm_SH_past\n", False),
        ("none\nExplanation: Not\nalert_past.\n", False),
    ],
)
def test_an_answer_is_cut_unless_a_finished_line_makes_it_unparsed(text: str, cut: bool) -> None:
    assert is_cut(text) is cut


# ---- What is accepted around labels -------------------------------------------------

WRAPPINGS = {
    "fence": "```\n{}\n```",
    "fence with a language": "~~~text\n{}\n~~~\n",
    "fence after a lead": "**Answer:**\n\n```\n{}\n```",
    "backticks": "`{}`",
    "bold": "**{}**",
    "both": "***{}***",
    "quotes": '"{}"',
    "lead": "Answer: {}",
    "bold lead": "**Labels:** {}",
    "lead on a line before": "LABELS:\n{}",
    "heading": "### Answer\n{}",
    "thought": "<think>alert_past\nno</think>\n\nAnswer: {}",
    "list": "- {}",
    "explained": "{}\n\n**Explanation:** The user\nsays so.",
    "explained below a heading": "{}\n### Reasoning\nThe user says so.",
    "closed": "{}.",
}


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@settings(deadline=None, max_examples=10)
@given(names=st.lists(st.sampled_from(LABELS), max_size=4), escaped=st.booleans())
def test_what_is_accepted_around_labels_changes_nothing_and_is_counted(
    wrapping: str, names: list[str], escaped: bool
) -> None:
    line = "; ".join(names) or "none"
    line = line.replace("_", r"\_") if escaped else line
    text = WRAPPINGS[wrapping].format(line)
    expected = sum(2 ** LABELS.index(name) for name in set(names))
    assert read_answer(text) == (Outcome.OK, expected)
    assert needs_cleaning(text)


@settings(deadline=None, max_examples=60)
@given(
    lines=st.lists(LABEL_LISTS, min_size=2, max_size=4),
    bullet=st.sampled_from(["", "- ", "* ", "+ ", "3. ", "2) ", "• "]),
    gap=st.sampled_from(["\n", "\r\n", "\n\n", ";\n", ",\n", " \n"]),
    lead=st.sampled_from(["", "Answer: ", "Labels:\n", "```\n"]),
    end=st.sampled_from(["", "\n", "\nReason: This is what the user says."]),
)
def test_labels_on_several_lines_are_all_read(
    lines: list[list[str]], bullet: str, gap: str, lead: str, end: str
) -> None:
    bullet = bullet if not lead.endswith(" ") else ""
    text = lead + gap.join(bullet + "; ".join(names) for names in lines) + end
    expected = sum(2 ** LABELS.index(name) for name in {n for names in lines for n in names})
    assert read_answer(text) == (Outcome.OK, expected)
    assert needs_cleaning(text)


@pytest.mark.parametrize(
    "text",
    [
        "none\nconfirm_SH_ongoing",
        "confirm_SH_ongoing\nnone",
        "confirm_SH_ongoing\n\nFinal answer: none",
        "confirm_SH_ongoing\nThe user says so.\nconfirm_DV_past",
        "confirm_SH_ongoing and confirm_DV_past",
        "confirm_SH_ongoing | confirm_DV_past",
        '[\n"confirm_SH_ongoing",\n"confirm_DV_past"\n]',
        '{"labels": ["confirm_SH_ongoing"]}',
        "confirm_SH_ongoing\nAlso: confirm\\_DV\\_past",
        "confirm_SH_ongoing\n- confirm_DV_past (the user tells of it)",
        "confirm_SH_ongoing\nconfirm\u2011DV\u2011past",
        "confirm_SH_ongoing\nconfirm_DV_\u200bpast",
        "confirm_SH_ongoing\nconfirm_DV_past?",
        "none\nThe user may mean alert_ongoing.",
        "```\nconfirm_SH_ongoing\n```\nOr:\n```\nalert_past\n```",
        "```confirm_DV\nconfirm_SH_ongoing\n```",
        "confirm_SH_ongoing\nExplanation: There is confirm_DV_past, too.",
        "confirm_SH_ongoing\nExplanation: There is `Confirm\\_DV\\_Past`, too.",
        "confirm_SH_ongoing\nExplanation: There is confirm\u2011DV\u2011past.\nSo it is.",
        "confirm_SH_ongoing\nExplanation: A joke, so:\nAnswer: none",
    ],
)
def test_a_label_that_would_be_lost_makes_the_answer_unparsed(text: str) -> None:
    assert read_answer(text) == (Outcome.UNPARSED, 0)
    assert not needs_cleaning(text)


@pytest.mark.parametrize(
    ("text", "mask"),
    [
        ("confirm_SH_ongoing\nconfirm_DV_past", SH | DV),
        ("confirm_SH_ongoing\r\n\r\nconfirm_DV_past\r\n", SH | DV),
        ("confirm_SH_ongoing\rconfirm_DV_past", SH | DV),
        ("1. confirm_SH_ongoing\n2. confirm_DV_past", SH | DV),
        ("```json\nconfirm_SH_ongoing\n```", SH),
        ("```confirm_SH_ongoing\n```", SH),
        ('["confirm_SH_ongoing"]', SH),
        ("confirm_SH_ongoing\nconfirm_SH_ongoing", SH),
        ("none\nReason: no alert, nothing confirmed.", 0),
        ("confirm_DV_past\nReason: `confirm_DV_past`, as it is over.", DV),
    ],
)
def test_what_is_written_around_labels_is_read_and_counted(text: str, mask: int) -> None:
    assert read_answer(text) == (Outcome.OK, mask)
    assert needs_cleaning(text)


@pytest.mark.parametrize(
    "text",
    [
        "I would not say {}",
        "{} is not present",
        "{}\nis not present here",
        "{}\nThe user says so.",
        "{}: no",
        "not: {}",
        "!{}",
        "~~{}~~",
        "- [ ] {}",
        "( ) {}",
        "{}?",
        "none of the labels, not {}",
        "None of the labels applies.\n{}",
        "The answer is {}",
        "Answer: not {}",
        "Answer:\nAnswer:\n{}",
        "Labels considered: {}",
        "User: I am fine.\nMODEL_TAG: {}",
        "```\nThe user is fine.\n{}\n```",
        "<b>{}</b>",
        "{}/none",
    ],
)
@pytest.mark.parametrize("label", ["alert_ongoing", "confirm_SI_active_past"])
def test_a_label_inside_prose_is_never_a_prediction(text: str, label: str) -> None:
    assert read_answer(text.format(label)) == (Outcome.UNPARSED, 0)


PROSE = st.lists(st.sampled_from(["the", "user", "not", "none", "No", "maybe", "is"]), min_size=1)


@settings(deadline=None, max_examples=60)
@given(before=PROSE, after=PROSE, names=LABEL_LISTS, first=st.booleans())
def test_prose_on_the_line_of_labels_is_never_a_prediction(
    before: list[str], after: list[str], names: list[str], first: bool
) -> None:
    line = "; ".join(names)
    line = " ".join([*before, line]) if first else " ".join([line, *after])
    assert read_answer(line) == (Outcome.UNPARSED, 0)


PIECES = ("alert_past", "confirm_SH_ongoing", "none", ";", ".", "**", "\n", "Answer:", "- ", "no")


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_a_second_reader_agrees(parts: list[str]) -> None:
    """The other reader splits the text into words and knows nothing of lines but their order."""
    text = " ".join(parts)
    outcome, mask = read_answer(text)
    words = [part for part in parts if part in (*LABELS, "none", "no")]
    labels = {word for word in words if word in LABELS}
    if outcome is Outcome.OK:
        assert mask == sum(2 ** LABELS.index(name) for name in labels), "no label is lost"
        assert "no" not in words
        assert not (labels and "none" in words)


@settings(deadline=None, max_examples=60)
@given(
    lines=st.lists(st.sampled_from([*LABELS[:4], "none", "**alert_past**", "", "```", "- DV"])),
    lead=st.sampled_from(["", "Answer: ", "```\n", "none\nReason: so\n"]),
    more=st.text(alphabet=st.sampled_from("\r\n; alert_pson.`B")),
)
def test_whatever_follows_an_answer_that_is_not_cut_it_stays_unparsed(
    lines: list[str], lead: str, more: str
) -> None:
    text = lead + "\n".join(lines) + "\n" + more
    for end in range(len(text) + 1):
        if not is_cut(text[:end]):
            assert read_answer(text[:end]) == (Outcome.UNPARSED, 0)
            assert read_answer(text) == (Outcome.UNPARSED, 0)


@pytest.mark.parametrize(
    "text",
    [
        "none",
        "confirm_SH_ongoing; alert_past",
        "alert_past;alert_ongoing\n",
        "<think>a</think>\nnone",
    ],
)
def test_an_answer_as_the_prompt_asks_for_it_needs_no_cleaning(text: str) -> None:
    assert read_answer(text)[0] is Outcome.OK
    assert not needs_cleaning(text)


@pytest.mark.parametrize(
    "part", ["`", "[ ", "a", "none\n", "```x\n", "alert_", "; ", "Answer: ", "<think>"]
)
def test_long_answers_are_read_in_linear_time(part: str) -> None:
    # With a pattern that starts again at each letter this takes minutes.
    text = "none\n" + part * (100_000 // len(part))
    assert read_answer(text)[0] in Outcome
    is_cut(text)
