"""Prompt templates: slots, filling without recursion, and the content of shipped prompts."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cradle_lib import paths
from cradle_lib.corpus import Dialogue, Turn
from cradle_lib.detection import Answer, Session, read_answer
from cradle_lib.errors import RegistryError
from cradle_lib.labels import LABELS, parse
from cradle_lib.prompts import load_template, parse_template
from cradle_lib.prompts.template import Template


@pytest.fixture
def own_prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(paths, "PROMPTS", tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{history}", r"lacks the slot \{current_turn\}"),
        ("{history} {current_turn} {name}", r"unknown slot \{name\}"),
        ("{history} {dialogue_history} {current_turn}", r"repeats the slot \{history\}"),
    ],
)
def test_missing_unknown_and_duplicate_slots_are_errors(text: str, message: str) -> None:
    with pytest.raises(RegistryError, match=message):
        parse_template("t", text)


def test_a_prompt_with_the_papers_slot_names_is_filled_like_ours(own_prompts: Path) -> None:
    # The end of the paper's prompt (Figure 10), abridged.
    end = "Reply.\n**Previous dialogue (REFERENCE ONLY):**\n{%s}\n**Current Turn:**\n{current_turn}"
    (own_prompts / "paper.txt").write_text(end % "dialogue_history")
    (own_prompts / "own.txt").write_text(end % "history")
    turns = (Turn(0, 0, "User", "Hi", 0), Turn(1, 1, "Listener", "Yes?", 0))
    dialogue = Dialogue(0, (*turns, Turn(2, 2, "User", "I {dialogue_history} on", 0)))
    texts = []
    for name in ("paper", "own"):
        session = Session(dialogue, load_template(name))
        asked = []
        while session.prompt is not None:
            asked.append(session.prompt.text)
            session.answer(Answer("none"))
        texts.append(asked)
    assert texts[0] == texts[1]
    assert "User: Hi\nMODEL_TAG: none\nListener: Yes?\n**Current Turn:**" in texts[0][1]


@settings(deadline=None, max_examples=100)
@given(
    before=st.text(alphabet="ab{} \n"),
    between=st.text(alphabet="ab{} \n"),
    history=st.text(alphabet="{}historycurrent_turn \\", min_size=1),
    current=st.text(alphabet="{}historycurrent_turn \\"),
)
def test_filling_is_concatenation(before: str, between: str, history: str, current: str) -> None:
    while re.search(r"\{[ab]+\}", before + "\n" + between):
        before, between = (re.sub(r"\{[ab]+\}", "", part) for part in (before, between))
    template = parse_template("t", f"{before}{{history}}{between}{{current_turn}}")
    filled = template.fill(history=history, current_turn=current)
    assert filled == before + history + between + current
    assert filled[: template.static] == before


def test_own_templates_are_found_by_name_beside_the_shipped_ones(own_prompts: Path) -> None:
    (own_prompts / "mine.txt").write_text("Hi {history}\n{current_turn}\n")
    assert load_template("mine").text == "Hi {history}\n{current_turn}"
    with pytest.raises(RegistryError, match=r"no prompt template 'turm'.*turn.*mine.*turm\.txt"):
        load_template("turm")
    # A shipped template can't be overridden.
    (own_prompts / "turn.txt").write_text("{history}{current_turn}")
    assert load_template("turn").static > 7000
    (own_prompts / "bad.txt").write_bytes(b"\xff\xfe{history}{current_turn}")
    with pytest.raises(RegistryError, match="UTF-8"):
        load_template("bad")


# ---- The shipped prompts -------------------------------------------------------------


def sections(template: Template) -> dict[str, str]:
    parts = re.split(r"^# (.+)\n", template.text, flags=re.MULTILINE)
    return dict(zip(parts[1::2], parts[2::2], strict=True))


def test_both_layouts_give_the_same_instruction() -> None:
    turn, append = sections(load_template("turn")), sections(load_template("append"))
    same = [name for name in turn if turn[name] == append.get(name)]
    # Only the layout of the examples and of the dialogue differs.
    assert set(turn) - set(same) == {
        "Examples",
        "Dialogue so far, with your tags (for reference only)",
        "Current turn",
    }
    frame = re.compile(r"^(Dialogue so far:|Current turn:|In each example.*)\n", re.MULTILINE)
    assert frame.sub("", turn["Examples"]) == frame.sub("", append["Examples"])


@pytest.mark.parametrize("name", ["turn", "append"])
def test_the_six_examples_follow_the_protocol(name: str) -> None:
    text = load_template(name).text
    examples = re.split(r"^Example \d\..*\n", text, flags=re.MULTILINE)[1:]
    assert len(examples) == 6
    for example in examples:
        shown = re.findall(r"^MODEL_TAG: (.+)$", example, flags=re.MULTILINE)
        found = re.search(r"^Answer:\n(.+)$", example, flags=re.MULTILINE)
        assert found
        answer = found[1]
        outcome, mask = read_answer(answer)
        assert outcome == "ok"
        assert not any(mask & parse(tag) for tag in shown), "no label is tagged twice"
        assert set(answer.split("; ")) <= {*LABELS, "none"}
        # The example has the layout of a session's history.
        lines = re.findall(r"^(User|Listener): (.+)$", example, flags=re.MULTILINE)
        turns = [Turn(i, i, who, utterance, 0) for i, (who, utterance) in enumerate(lines)]
        session = Session(Dialogue(0, tuple(turns)), load_template("append"))
        for tag in shown:
            session.answer(Answer(tag))
        assert session.prompt is not None
        history = session.prompt.text[session.prompt.static :]
        frame = re.compile(r"^(Dialogue so far:|Current turn:)\n", re.MULTILINE)
        assert frame.sub("", example).startswith(history + "\nAnswer:\n")
