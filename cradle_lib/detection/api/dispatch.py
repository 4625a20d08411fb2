"""Asks the questions of many dialogues at one service: retries, back-off, the end of a run.

One coroutine for each dialogue asks one turn after the other, and repeats a call that may succeed
later. The coroutines share three things: how many calls may be in flight, a time before which no
call begins, and the error that ends the run.

A run begins with one call alone, so that a wrong key costs one call. Its answer admits as many
calls as the options allow. If the service is overloaded, the number is halved; it grows by one with
each round-trip (additive increase, multiplicative decrease, as in TCP: RFC 5681).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Self

from cradle_lib.detection.api.faults import HOPELESS_HINT, Fault
from cradle_lib.detection.engine import Emit, Questions
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer, Prediction, Prompt
from cradle_lib.errors import EngineError

if TYPE_CHECKING:
    from cradle_lib.detection.api.client import Remote

_NO_REPLY: Final = "it has not replied"
_KEPT: Final = "The answers so far are kept: run the same command again to go on."


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on with a service that does not answer. Times are in seconds.

    Attributes:
        attempts: Calls for one question before it has failed.
        deadline: For one call, all in all.
        base: Wait before the second attempt; doubled for each further one.
        cap: Longest wait between attempts, unless the service asks for a longer one.
        failures: Questions in a row that may fail before the run stops.
        connect: For a service that can't be reached at all and has not answered yet.
        notice: Without any answer until the first message about it; each later message comes
            after twice the time of the one before.
        silence: Without any answer until the run stops. If a service asks for a longer wait, the
            run stops immediately.
    """

    attempts: int = 6
    deadline: float = 120.0
    base: float = 1.0
    cap: float = 60.0
    failures: int = 10
    connect: float = 8.0
    notice: float = 10.0
    silence: float = 300.0

    @classmethod
    def of(cls, deadline: float) -> Self:
        """The usual patience for calls that may take ``deadline`` seconds."""
        usual = cls()
        return replace(usual, deadline=deadline, silence=max(usual.silence, 2.5 * deadline))

    def pause(self, attempts: int) -> float:
        """Seconds to wait after this many attempts in a row."""
        return min(self.base * 2.0 ** (attempts - 1), self.cap)


class Dispatcher:
    """Asks the questions of many dialogues at one service, and emits each prediction.

    The service's ``lost`` is given a failed prediction for each call that brought no answer,
    although it may be charged, and is made again or given up.

    Attributes:
        error: What ended the run early, if anything did.
    """

    def __init__(self, service: Remote, emit: Emit) -> None:
        self.error: Exception | None = None
        self._service, self._emit, self._patience = service, emit, service.patience
        self._most = max(service.options.concurrency, 1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []
        # No call begins before this time; back-offs since the last answer.
        self._not_before, self._back_offs = 0.0, 0
        self._answered, self._failures = False, 0
        # Time of the last answer, time until a message about silence, and the last trouble.
        self._heard, self._notice_after, self._reason = 0.0, self._patience.notice, _NO_REPLY

    def stop(self, why: str) -> None:
        """Ends the run: calls in flight come back, no further one begins. Safe from any thread.

        Only the first reason is reported.
        """
        self._end_with(EngineError(f"{self._service.model.name}: {why}. {_KEPT}"))

    def give_up(self) -> None:
        """Cancels the calls in flight, too. Safe from any thread."""
        self.stop("interrupted")
        for worker in self._workers:
            self._soon(worker.cancel)

    async def run(self, sessions: Iterable[Questions]) -> None:
        """Asks every session's prompts until all are finished, or the run is stopped.

        Raises:
            Exception: What ended the run early, after the calls in flight have ended.
        """
        import anyio

        self._loop = asyncio.get_running_loop()
        self._heard = _now()
        # How many calls may be in flight: `_limit` without its fraction.
        self._limit, self._slots = 1.0, anyio.CapacityLimiter(1)
        waiting = takewhile(lambda _: self.error is None, sessions)
        self._workers = [asyncio.create_task(self._work(waiting)) for _ in range(self._most)]
        watch = asyncio.create_task(self._watch())
        await asyncio.wait(self._workers)
        watch.cancel()
        if self.error is not None:
            raise self.error

    async def _work(self, waiting: Iterator[Questions]) -> None:
        """Asks dialogue after dialogue."""
        try:
            for session in waiting:
                while self.error is None and (prompt := session.prompt) is not None:
                    if (answer := await self._answer(prompt)) is not None:
                        self._take(session, answer)
        except Exception as error:
            self._end_with(error)

    async def _answer(self, prompt: Prompt) -> Answer | None:
        """Asks one question until it is answered or has failed; ``None`` if the run ends first."""
        attempts = 0
        while True:
            found = await self._call(prompt)
            if found is None or isinstance(found, Answer):
                return found
            if found.kind == "stop":
                self.stop(f"{found.reason}. {HOPELESS_HINT}")
                return None
            # A service that can't be reached is no fault of the question.
            attempts += not found.unreached
            if found.kind != "retry" or attempts >= self._patience.attempts:
                return found.answer
            if found.charged:
                self._service.lost(Prediction.of(prompt, found.answer))
            if not found.shared:
                self._reason = found.reason
                await self._pause(self._patience.pause(attempts))

    async def _call(self, prompt: Prompt) -> Answer | Fault | None:
        """Makes one call as soon as one may begin; ``None`` if the run ends first."""
        async with self._slots:
            while self.error is None and (wait := self._not_before - _now()) > 0:
                await self._pause(wait)
            if self.error is not None:
                return None
            began = _now()
            try:
                found = await self._service.call(prompt)
            except asyncio.CancelledError:
                given_up = Answer("", Outcome.FAILED, "given up", seconds=_now() - began)
                self._service.lost(Prediction.of(prompt, given_up))
                raise
            if isinstance(found, Fault) and found.shared:
                self._back_off(found, began)
            return found

    def _take(self, session: Questions, answer: Answer) -> None:
        """Keeps the answer to a session's question."""
        if answer.outcome is Outcome.FAILED:
            self._failures += 1
            if self._failures >= self._patience.failures:
                self.stop(f"{self._failures} questions in a row failed ({answer.reason})")
        else:
            self._allow(self._limit + 1.0 / self._limit if self._answered else self._most)
            self._answered, self._failures, self._back_offs = True, 0, 0
            # A slow service is reported once, not for every answer.
            self._notice_after = max(self._patience.notice, 2.0 * answer.seconds)
            self._heard, self._reason = _now(), _NO_REPLY
        self._emit(session.answer(answer))

    def _back_off(self, fault: Fault, began: float) -> None:
        """Lets no call begin for a while: the service is busy, away, or asked for it."""
        if began < self._not_before:
            return  # One of several calls that met the same trouble.
        self._back_offs += 1
        pause = max(self._patience.pause(self._back_offs), fault.wait or 0.0)
        self._not_before = _now() + pause
        self._reason = fault.reason
        if fault.busy:
            self._allow(self._limit / 2)
        silent = self._not_before - self._heard
        if fault.unreached:
            if not self._answered and silent >= self._patience.connect:
                self.stop(
                    f"{self._service.place} can't be reached: {fault.reason}. Check that the "
                    "server runs, the network, and base_url in models.yml"
                )
        elif fault.wait:
            self._reason += f"; it asks to wait {fault.wait:.0f} s"
            if silent >= self._patience.silence:
                self.stop(f"{self._service.place} does not answer ({self._reason})")

    def _allow(self, calls: float) -> None:
        """Sets how many calls may be in flight."""
        self._limit = min(max(calls, 1.0), self._most)
        self._slots.total_tokens = int(self._limit)

    async def _watch(self) -> None:
        """Says when there has been no answer for a while; after a long time, ends the run."""
        notice = self._service.options.notice
        while True:
            end = self._heard + self._patience.silence
            due = min(self._heard + self._notice_after, end)
            if _now() < due:
                await asyncio.sleep(due - _now())
                continue
            lasts = f"no answer from {self._service.place} for {_now() - self._heard:.0f} s"
            if due == end:
                self.stop(f"{lasts} ({self._reason}). Check whether the service works")
                self.give_up()
                return
            self._notice_after *= 2
            limit = f"{self._patience.silence:.0f} s"
            stops = f"The run stops after {limit} without one."
            notice(f"{self._service.model.name}: {lasts}: {self._reason}. {stops}")

    async def _pause(self, seconds: float) -> None:
        """Waits, but no longer than the run goes on."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    def _end_with(self, error: Exception) -> None:
        self.error = self.error or error
        self._soon(self._stopped.set)

    def _soon(self, action: Callable[[], object]) -> None:
        # There is no loop before the run begins; it is closed if everything has just ended.
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(action)


def _now() -> float:
    return asyncio.get_running_loop().time()
