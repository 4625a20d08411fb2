"""Enforces the cost limit of a run, whatever its engine.

The engine gets guarded sessions. A guarded session has a prompt only if the limit allows its call
together with those of all open questions. So the limit holds for engines that ask one question at a
time, in parallel or in batches, even if they know nothing about it.
"""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock

from cradle_lib.detection.models.engine import KEPT, Engine, Questions
from cradle_lib.detection.protocol.session import Answer, Prediction, Prompt
from cradle_lib.detection.runs.costs import Budget
from cradle_lib.errors import EngineError


class Spending:
    """The cost of a run, and the guarded sessions of its engine.

    Args:
        budget: The budget, charged with the answers of earlier starts.
        calls: Maximum number of open questions.
        engine: The engine.
        name: Name of the model, for messages.

    Attributes:
        stopped: Why the run must end; ``None`` while it may go on.
    """

    def __init__(self, budget: Budget, calls: int, engine: Engine, name: str) -> None:
        self.stopped: str | None = None
        self._budget, self._engine, self._name = budget, engine, name
        self._calls = budget.parallel(calls)
        # Dialogues with an open question, and those of them whose answer was not charged yet.
        self._open: set[str] = set()
        self._answered: set[str] = set()
        self._lock = Lock()
        engine.limit_calls(self._calls)

    def check(self) -> None:
        """Checks that the limit allows one more call.

        Raises:
            EngineError: If it does not.
        """
        self._budget.check()

    def guard(self, sessions: Sequence[Questions]) -> list[Questions]:
        """Wraps unfinished sessions for the engine."""
        return [_Guarded(session, self) for session in sessions]

    def admits(self, dialogue: str) -> bool:
        """Whether a question about a dialogue may be asked now; if so, it counts as open."""
        with self._lock:
            if self.stopped is not None or dialogue in self._answered:
                return False
            calls = len(self._open) + 1
            if dialogue not in self._open and calls <= self._calls and self._budget.allows(calls):
                self._open.add(dialogue)
            return dialogue in self._open

    def expect_charge(self, dialogue: str) -> None:
        """Admits no further question about a dialogue until its answer is charged."""
        with self._lock:
            self._answered.add(dialogue)

    def charge(self, prediction: Prediction, *, answered: bool, more: bool = True) -> None:
        """Charges one call, and stops the engine if another one could exceed the limit.

        Args:
            prediction: The answer, or the failure of a call that may be charged.
            answered: Whether the question is answered. Otherwise the call may be repeated.
            more: Whether the run has further questions.

        Raises:
            EngineError: After a failed call, if the run was stopped: the call may not be repeated.
        """
        with self._lock:
            self._budget.add(prediction)
            if answered:
                self._open.discard(prediction.dialogue)
                self._answered.discard(prediction.dialogue)
            calls = len(self._open) or 1
            stops = self.stopped is None and more and not self._budget.allows(calls)
            if stops:
                self.stopped = self._budget.state(calls)
        if stops and self.stopped is not None:
            self._engine.stop(self.stopped)
        if not answered:
            self.check_stopped()

    def check_stopped(self) -> None:
        """Checks that the run may go on.

        Raises:
            EngineError: If it was stopped.
        """
        if self.stopped is not None:
            raise EngineError(f"{self._name}: {self.stopped}. {KEPT}")


class _Guarded:
    """A session that has a prompt only if the cost limit allows its question."""

    def __init__(self, session: Questions, spending: Spending) -> None:
        self._session, self._spending = session, spending
        self.taken = session.taken

    @property
    def prompt(self) -> Prompt | None:
        """The next question; ``None`` if there is none, or it may not be asked now."""
        prompt = self._session.prompt
        return prompt if prompt and self._spending.admits(prompt.dialogue) else None

    @property
    def remaining(self) -> int:
        """Number of unanswered questions."""
        return self._session.remaining

    def answer(self, answer: Answer) -> Prediction:
        """Records the answer and advances to the next question."""
        prediction = self._session.answer(answer)
        self._spending.expect_charge(prediction.dialogue)
        return prediction
