"""What an engine learns from: each question with the gold tags in its history, and its answer."""

from __future__ import annotations

from collections.abc import Iterator

from cradle_lib.corpus import Dialogue
from cradle_lib.detection.session import Answer, Prompt, Session
from cradle_lib.labels import format_mask
from cradle_lib.prompts import Template
from cradle_lib.record import History


def gold_questions(
    dialogue: Dialogue, template: Template, history: History = "self"
) -> Iterator[tuple[Prompt, int]]:
    """Asks all questions of a dialogue as they are asked when each answer is gold.

    Yields for each user turn the question, and the mask of its gold labels.
    """
    session = Session(dialogue, template, history)
    for turn in dialogue.user_turns:
        if session.prompt is None:
            return
        yield session.prompt, turn.mask
        session.answer(Answer(format_mask(turn.mask)))
