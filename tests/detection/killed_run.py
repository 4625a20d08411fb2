"""A run that kills its own process at a chosen place.

``after:N`` kills it before the answer N+1; ``torn:N`` when half of the answer N+1 has been written.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from cradle_lib.corpus import Corpus, Dialogue, Turn
from cradle_lib.detection import Answer, Model, Prompt, journal
from cradle_lib.detection import run as asking
from cradle_lib.detection.engine import Sequential
from cradle_lib.detection.run import run

CORPUS = Corpus(
    "tiny",
    tuple(
        Dialogue(
            index,
            tuple(
                Turn(row, row, "Listener" if row % 3 == 1 else "User", f"text {index} {row}", 0)
                for row in range(6)
            ),
        )
        for index in range(4)
    ),
)
MODEL = Model(id="scripted", name="Scripted", group="baseline", engine="always-none")
ANSWERS = ("none", "alert_ongoing", "something else", "confirm_SH_past; confirm_DV_past")


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


class Scripted(Sequential):
    """Answers by the length of the prompt, so that its own earlier tags matter."""

    def __init__(self, place: str) -> None:
        self.kind, _, number = place.partition(":")
        self.left = int(number or -1)

    def reply(self, prompt: Prompt) -> Answer:
        if self.left == 0:
            die() if self.kind == "after" else self.tear()
        self.left -= 1
        return Answer(ANSWERS[len(prompt.text) % len(ANSWERS)])

    def tear(self) -> None:
        """Makes the journal's next write stop half-way, for good."""
        whole_write = os.write

        def half_write(descriptor: int, data: bytes) -> int:
            whole_write(descriptor, data[: len(data) // 2])
            die()
            return 0

        journal.os.write = half_write  # type: ignore[attr-defined]


def main(folder: Path, place: str) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asking, "make_engine", lambda *_: Scripted(place))
        return run(MODEL, CORPUS, out=folder)
