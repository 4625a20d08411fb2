"""The prior of the first turn: what a system gets for knowing where labels mostly begin."""

from __future__ import annotations

from cradle_lib.detection.engine import Sequential
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.labels import NONE


class FirstTurnPrior(Sequential):
    """Answers ``alert_ongoing`` to the first user turn of each dialogue and ``none`` to all others.

    ``alert_ongoing`` is the most frequent label, and many dialogues open with it. A system that
    reads must do better than this one, which does not.
    """

    kind = "baseline"

    def reply(self, prompt: Prompt) -> Answer:
        """Tags the turn if the user has said nothing before it."""
        begun = any(line.startswith("User:") for line in prompt.history.splitlines())
        return Answer(text=NONE if begun else "alert_ongoing")
