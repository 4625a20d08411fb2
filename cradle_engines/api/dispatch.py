"""Schedules the calls of a run: concurrency, retries, back-off, and the end of the run.

Each worker coroutine asks about one dialogue after the other, turn by turn, and retries calls that
may succeed later. The workers share three values: the limit of calls in flight, a time before which
no call begins, and the error that ends the run.

A run begins with a single call, so that a wrong key costs one call. After its answer, as many calls
are in flight as the options allow. If the service is overloaded, the limit is halved; it then grows
by one per round-trip (additive increase, multiplicative decrease, as in TCP: RFC 5681).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import TYPE_CHECKING, Final, Self

from cradle_engines.api.faults import PERMANENT_HINT, Fault
from cradle_lib.detection.models.engine import KEPT, Emit, Questions
from cradle_lib.detection.protocol.parsing import Outcome
from cradle_lib.detection.protocol.session import Answer, Prediction, Prompt
from cradle_lib.errors import EngineError

if TYPE_CHECKING:
    from cradle_engines.api.client import Remote

_NO_REPLY: Final = "it has not replied"
_LATER: Final = (
    "Go on later, or let the run wait longer with `--set silence=SECONDS` "
    "(in Python `Options(silence=...)`)"
)


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Timeouts and retries of the calls to a service. Times are in seconds.

    Attributes:
        attempts: Maximum number of calls for one question, without those that did not reach the
            service, or that a rate limit or an overload rejected.
        deadline: Total timeout of one call.
        base: Wait before the second attempt; doubled for each further one.
        cap: Longest wait between attempts, unless the service asks for a longer one.
        failures: Number of consecutive failed questions that stops the run.
        connect: Time after which the run stops if the service can't be reached and has never
            answered.
        notice: Time without any answer until the first message about it; each later message comes
            after twice the time of the one before.
        silence: Time without any answer until the run stops. If a service asks for a longer wait,
            the run stops immediately.
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
    def of(cls, deadline: float | None = None, silence: float | None = None) -> Self:
        """The default policy, with a user's deadline and silence."""
        policy = cls() if deadline is None else cls(deadline=deadline)
        usual = max(policy.silence, 2.5 * policy.deadline)
        return replace(policy, silence=usual if silence is None else silence)

    def pause(self, attempts: int) -> float:
        """Seconds to wait after this many attempts in a row."""
        return min(self.base * 2.0 ** (attempts - 1), self.cap)


class Dispatcher:
    """Asks the questions of many dialogues at one service, and emits each prediction.

    The service's ``on_lost_call`` is called for each call that got no answer but may be charged.

    Attributes:
        error: The exception that ended the run early; ``None`` if there is none.
    """

    def __init__(self, service: Remote, emit: Emit) -> None:
        self.error: Exception | None = None
        self._service, self._emit, self._policy = service, emit, service.policy
        self._max_calls = max(service.options.concurrency, 1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopped = asyncio.Event()
        self._workers: list[asyncio.Task[None]] = []
        # No call begins before this time; back-offs since the last answer.
        self._not_before, self._back_offs = 0.0, 0
        self._answered, self._failures = False, 0
        # Time of the last answer, time until a message about silence, and the last problem.
        self._last_answer, self._notice_after = 0.0, self._policy.notice
        self._reason, self._busy = _NO_REPLY, False

    def stop(self, why: str) -> None:
        """Ends the run: calls in flight are completed, and no further call begins. Thread-safe.

        Only the first reason is reported.
        """
        self._end(EngineError(f"{self._service.model.name}: {why}. {KEPT}"))

    def cancel(self) -> None:
        """Ends the run and cancels the calls in flight. Thread-safe."""
        self.stop("interrupted")
        for worker in self._workers:
            self._call_soon(worker.cancel)

    async def run(self, sessions: Iterable[Questions]) -> None:
        """Asks every session's prompts until all are finished, or the run is stopped.

        Raises:
            Exception: The exception that ended the run early, after the calls in flight have ended.
        """
        import anyio

        self._loop = asyncio.get_running_loop()
        self._last_answer = _now()
        # The number of calls that may be in flight is the integer part of `_limit`.
        self._limit, self._slots = 1.0, anyio.CapacityLimiter(1)
        waiting = takewhile(lambda _: self.error is None, sessions)
        self._workers = [asyncio.create_task(self._work(waiting)) for _ in range(self._max_calls)]
        watch = asyncio.create_task(self._watch())
        await asyncio.wait(self._workers)
        watch.cancel()
        if self.error is not None:
            raise self.error

    async def _work(self, waiting: Iterator[Questions]) -> None:
        """Asks about one dialogue after the other."""
        try:
            for session in waiting:
                while self.error is None and (prompt := session.prompt) is not None:
                    if (answer := await self._answer(prompt)) is not None:
                        self._record(session, answer)
        except Exception as error:
            self._end(error)

    async def _answer(self, prompt: Prompt) -> Answer | None:
        """Asks one question until it is answered or has failed; ``None`` if the run ends first."""
        attempts = 0
        while True:
            found = await self._call(prompt)
            if found is None or isinstance(found, Answer):
                return found
            if found.kind == "stop":
                self.stop(f"{found.reason}. {PERMANENT_HINT}")
                return None
            attempts += not (found.unreachable or found.busy)
            if found.kind != "retry" or attempts >= self._policy.attempts:
                return found.answer
            if found.charged:
                self._service.on_lost_call(Prediction.of(prompt, found.answer))
            # After a shared fault, `_call` waits.
            if not found.shared:
                self._reason, self._busy = found.reason, False
                await self._pause(self._policy.pause(attempts))

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
                self._service.on_lost_call(Prediction.of(prompt, given_up))
                raise
            if isinstance(found, Fault) and found.shared:
                self._back_off(found, began)
            return found

    def _record(self, session: Questions, answer: Answer) -> None:
        """Records the answer to a session's question, and updates the limits."""
        if answer.outcome is Outcome.FAILED:
            self._failures += 1
            if self._failures >= self._policy.failures:
                self.stop(f"{self._failures} questions in a row failed ({answer.reason})")
        else:
            self._set_limit(self._limit + 1.0 / self._limit if self._answered else self._max_calls)
            self._answered, self._failures, self._back_offs = True, 0, 0
            # A slow service is reported once, not for every answer.
            self._notice_after = max(self._policy.notice, 2.0 * answer.seconds)
            self._last_answer, self._reason, self._busy = _now(), _NO_REPLY, False
        self._emit(session.answer(answer))

    def _back_off(self, fault: Fault, began: float) -> None:
        """Delays all calls: the service is overloaded or unreachable, or has asked for a wait."""
        pause = fault.wait or 0.0
        # Otherwise another call has already reported the same problem.
        if began >= self._not_before:
            self._back_offs += 1
            pause = max(pause, self._policy.pause(self._back_offs))
            if fault.busy:
                self._set_limit(self._limit / 2)
        self._not_before = max(self._not_before, _now() + pause)
        self._reason, self._busy = fault.reason, fault.busy
        silent = self._not_before - self._last_answer
        if fault.unreachable:
            if not self._answered and silent >= self._policy.connect:
                self.stop(
                    f"{self._service.address} can't be reached: {fault.reason}. Check that the "
                    "server runs, the network, and base_url in models.yml"
                )
        elif fault.wait:
            self._reason += f"; it asks to wait {fault.wait:.0f} s"
            if silent >= self._policy.silence:
                self.stop(f"{self._service.address} does not answer ({self._reason}). {_LATER}")

    def _set_limit(self, calls: float) -> None:
        """Sets the limit of calls in flight."""
        self._limit = min(max(calls, 1.0), self._max_calls)
        self._slots.total_tokens = int(self._limit)

    async def _watch(self) -> None:
        """Reports that there has been no answer for some time; later ends the run."""
        notice = self._service.options.notice
        while True:
            end = self._last_answer + self._policy.silence
            due = min(self._last_answer + self._notice_after, end)
            if _now() < due:
                await asyncio.sleep(due - _now())
                continue
            lasts = f"no answer from {self._service.address} for {_now() - self._last_answer:.0f} s"
            if due == end:
                advice = _LATER if self._busy else "Check whether the service works"
                self.stop(f"{lasts} ({self._reason}). {advice}")
                self.cancel()
                return
            self._notice_after *= 2
            limit = f"{self._policy.silence:.0f} s"
            stops = f"The run stops after {limit} without one."
            notice(f"{self._service.model.name}: {lasts}: {self._reason}. {stops}")

    async def _pause(self, seconds: float) -> None:
        """Waits; returns early if the run is stopped."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._stopped.wait()

    def _end(self, error: Exception) -> None:
        self.error = self.error or error
        self._call_soon(self._stopped.set)

    def _call_soon(self, action: Callable[[], object]) -> None:
        # The event loop does not exist before the run, and may be closed at its end.
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(action)


def _now() -> float:
    return asyncio.get_running_loop().time()
