"""What an engine is: it carries prompts to a model and answers back, and knows no protocol."""

from __future__ import annotations

import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from cradle_lib.detection.session import Answer, Prediction, Prompt, Session

Emit = Callable[[Prediction], None]


@dataclass(frozen=True, slots=True)
class Options:
    """How this machine runs a model: nothing here may change an answer.

    Attributes:
        device: For instance ``cpu`` or ``cuda:1``; ``None`` for a GPU if there is one.
        device_map: How to spread weights over several GPUs, such as ``auto``.
        concurrency: How many dialogues an API engine drives at once, at most.
        batch: How many dialogues the wave engine advances together; ``None`` for as many as
            the free memory allows.
        notice: Takes a sentence that the user should know, such as why a run is slower.
    """

    device: str | None = None
    device_map: str | None = None
    concurrency: int = 8
    batch: int | None = None
    notice: Callable[[str], None] = lambda _: None


def checksum(*files: Path | str) -> str:
    """Pins an engine that is code and text: twelve digits of its files' SHA-256."""
    digest = hashlib.sha256()
    for file in files:
        digest.update(Path(file).read_bytes())
    return digest.hexdigest()[:12]


class Engine(ABC):
    """Drives sessions to their end.

    Attributes:
        revision: What pins this engine's answers, if it knows better than the registry.
    """

    revision: str | None = None

    @abstractmethod
    def answer_all(self, sessions: Iterable[Session], emit: Emit) -> None:
        """Asks every session's prompts until all are finished.

        Args:
            sessions: The sessions, perhaps made on demand; finished ones may be among them.
            emit: Takes each prediction as soon as there is one.

        Raises:
            EngineError: If the model can't be used at all.
        """


class Sequential(Engine):
    """An engine that asks one question at a time, dialogue by dialogue."""

    @abstractmethod
    def reply(self, prompt: Prompt) -> Answer:
        """Answers one prompt."""

    def answer_all(self, sessions: Iterable[Session], emit: Emit) -> None:
        """Asks one dialogue after the other, one turn after the other; times each answer."""
        for session in sessions:
            while (prompt := session.prompt) is not None:
                started = time.perf_counter()
                answer = self.reply(prompt)
                seconds = time.perf_counter() - started
                emit(session.answer(replace(answer, seconds=seconds)))
