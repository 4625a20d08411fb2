"""The first-turn baseline, which predicts from the position of a turn alone."""

from __future__ import annotations

from cradle_lib.detection.models.engine import Sequential
from cradle_lib.detection.protocol.session import Answer, Prompt
from cradle_lib.labels import NONE


class FirstTurnPrior(Sequential):
    """Answers ``alert_ongoing`` to the first user turn of each dialogue and ``none`` to all others.

    ``alert_ongoing`` is the most frequent label, and many dialogues begin with it. A system that
    reads the text must do better than this one, which ignores it.
    """

    kind = "baseline"

    def reply(self, prompt: Prompt) -> Answer:
        """Predicts ``alert_ongoing`` if no earlier turn of the user is in the history."""
        begun = any(line.startswith("User:") for line in prompt.history.splitlines())
        return Answer(text=NONE if begun else "alert_ongoing")
