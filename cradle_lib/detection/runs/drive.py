"""Drives an engine through the questions of a run, and writes, charges and reports each answer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from threading import RLock
from typing import Final

from cradle_lib import paths
from cradle_lib.detection.models.engine import KEPT, Engine, Options, Progress, Questions
from cradle_lib.detection.models.model import Prices
from cradle_lib.detection.protocol.parsing import Outcome
from cradle_lib.detection.protocol.session import Prediction
from cradle_lib.detection.runs.costs import usage_of
from cradle_lib.detection.runs.journal import Journal
from cradle_lib.detection.runs.spending import Spending
from cradle_lib.errors import EngineError

# Consecutive exceptions that stop a run: they point to the model and not to one question.
_MAX_EXCEPTIONS: Final = 3


def drive(
    engine: Engine,
    journal: Journal,
    sessions: Sequence[Questions],
    total: int,
    spending: Spending | None,
    prices: Prices | None,
    options: Options,
) -> None:
    """Asks the remaining questions.

    Args:
        engine: The engine; it may emit answers from several threads.
        journal: The open journal.
        sessions: The unfinished sessions.
        total: Number of all questions of the run.
        spending: The cost limit, if there is one.
        prices: The prices of the model, if it has any.
        options: Execution settings; ``progress`` is called at the start and after each answer.

    Raises:
        EngineError: If the cost limit is reached, three questions in a row raise an exception, or
            the engine ends before all questions are answered. Errors of the engine pass through.
    """
    name = journal.record.name
    waiting = {session.prompt.dialogue: session for session in sessions if session.prompt}
    left = {dialogue: session.remaining for dialogue, session in waiting.items()}
    stored = total - sum(left.values())
    now = Progress(stored, total, stored)
    exceptions = 0
    lock = RLock()

    def write(prediction: Prediction) -> None:
        nonlocal now
        if journal.record_fallback(engine.fallback) and stored:
            options.notice(
                f"{name}: {stored} questions were answered at an earlier start, without this "
                "fallback. If that was with another version or machine, make the run again."
            )
        journal.append(prediction)
        if prices is not None and (usage := usage_of(prediction)) is not None:
            now = replace(now, spent=now.spent + usage.cost(prices))

    def emit(prediction: Prediction) -> None:
        nonlocal now, exceptions
        with lock:
            # Falls by more than one if the next questions have stored answers.
            remaining = waiting[prediction.dialogue].remaining
            now = replace(now, done=now.done + left[prediction.dialogue] - remaining)
            left[prediction.dialogue] = remaining
            write(prediction)
            options.progress(now)
            if prediction.error is not None:
                exceptions += 1
            elif prediction.outcome is not Outcome.FAILED:
                exceptions = 0
        if spending is not None:
            spending.charge(prediction, answered=True, more=now.done < now.total)
        if exceptions == _MAX_EXCEPTIONS:
            raise EngineError(
                f"{name}: {exceptions} questions in a row raised an exception, the last one "
                f"in dialogue {prediction.dialogue}, turn {prediction.turn}: {prediction.reason}. "
                f"The answers so far are kept in {paths.shown(journal.path)}; correct the cause "
                "and start the run again to go on."
            ) from prediction.error

    def record_lost_call(prediction: Prediction) -> None:
        with lock:
            write(prediction)
        if spending is not None:
            spending.charge(prediction, answered=False)

    if prices is not None:
        # A call that may be charged is recorded in the journal, even if it is retried.
        engine.on_lost_call = record_lost_call
    options.progress(now)
    if spending is not None and waiting:
        spending.check()
    while waiting:
        before = now.done
        engine.answer_all(spending.guard(sessions) if spending else sessions, emit)
        if spending is not None:
            spending.check_stopped()
        sessions = [session for session in sessions if session.prompt is not None]
        if not sessions:
            break
        if now.done == before:
            raise EngineError(
                f"{name}: engine {journal.record.engine} ended, but {sum(left.values()):,} "
                f"questions are open. {KEPT}"
            )
