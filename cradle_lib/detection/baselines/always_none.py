"""The baseline that says nothing: what exact match alone rewards."""

from __future__ import annotations

from cradle_lib.detection.engine import Sequential
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.labels import NONE


class AlwaysNone(Sequential):
    """Answers ``none`` to everything.

    Most user turns carry no label, so that its turn-level exact match is high while
    it finds nobody (84.47 % on the real test split).
    """

    kind = "baseline"

    def reply(self, prompt: Prompt) -> Answer:
        """Answers ``none``."""
        return Answer(text=NONE)
