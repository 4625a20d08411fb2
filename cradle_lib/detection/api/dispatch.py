"""Schedules the calls of many dialogues to one service: order, retries, back-off, end of a run.

One coroutine takes all decisions. Each call is a task that puts its result into the coroutine's
queue, and each wait is a time at which the coroutine wakes up. There are no locks, and Ctrl-C, a
cost limit, a requested wait and a long silence end a run in the same way.

Older dialogues go first. If few calls may be in flight, few dialogues then advance quickly, while
the provider still has their prefixes in its cache.
"""

from __future__ import annotations

import asyncio
import heapq
import random
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import Final, Protocol, Self

from cradle_lib.detection.api.faults import HOPELESS_HINT, Fault
from cradle_lib.detection.engine import Emit, Options, Questions, failure
from cradle_lib.detection.model import Model
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer, Prediction, Prompt
from cradle_lib.errors import CradleError, EngineError

_NO_REPLY: Final = "it has not replied"
_KEPT: Final = "The answers so far are kept: run the same command again to go on."
# Calls that may be in flight after the first answer.
_FIRST: Final = 10.0


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on with a service that does not answer.

    Attributes:
        attempts: Calls for one question before it has failed.
        deadline: For one call, all in all.
        base: Before the second attempt; doubled for each further one.
        cap: Longest wait between attempts of our own choice.
        failures: Questions in a row that may fail before the run stops.
        connect: For a service that can't be reached at all and has not answered yet.
        notice: Without any answer until the first message about it; each later one comes at twice
            the time of the one before.
        silence: Without any answer until the run stops. A service that asks for a longer wait
            is left alone at once.
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
        """The usual patience for calls that may last so long."""
        usual = cls()
        return replace(usual, deadline=deadline, silence=max(usual.silence, 2.5 * deadline))

    def pause(self, attempts: int, share: float = 1.0) -> float:
        """Before another attempt after so many: a share of a time that doubles with each."""
        return min(self.base * 2.0 ** min(attempts - 1, 30) * share, self.cap)


class Admission:
    """Decides whether another call may begin; times are those of any clock.

    A run begins with one call alone, so that a wrong key costs one call and a prompt's static part
    is in a provider's cache before others need it. Its answer admits ten, each further one one
    more, up to the limit or the first overload. An overload halves the number; after that it grows
    by one with each round-trip (additive increase, multiplicative decrease, as in TCP: RFC 5681).
    """

    def __init__(self, limit: int) -> None:
        self._limit = float(max(limit, 1))
        self._size = 1.0
        self._opening = True
        self._cut = float("-inf")
        self.shut_until = float("-inf")

    def admits(self, flying: int, now: float) -> bool:
        """Whether a call may begin beside those in flight."""
        return flying < int(self._size) and now >= self.shut_until

    def answered(self, began: float) -> None:
        """Counts an answer to a call that began at a time."""
        # One that was in flight at the last overload says nothing about the number since.
        if began >= self._cut:
            steady = self._size + 1.0 / self._size
            self._size = max(self._size + 1.0, _FIRST) if self._opening else steady
            self._size = min(self._size, self._limit)

    def overloaded(self, began: float, now: float) -> None:
        """Counts a call that the service was too busy for; a burst of them counts once."""
        if began >= self._cut:
            self._size, self._opening, self._cut = max(self._size / 2, 1.0), False, now

    def shut(self, until: float) -> None:
        """Lets nobody through until a time: the service asked for it, or is away."""
        self.shut_until = max(self.shut_until, until)


def span(seconds: float) -> str:
    """Writes a time for people: ``40 s``, ``5 min``, ``24 h``."""
    for unit, size in (("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


class Service(Protocol):
    """What the dispatcher needs of a service; see :class:`.Remote`."""

    model: Model
    options: Options
    patience: Patience
    place: str
    lost: Emit

    async def call(self, prompt: Prompt) -> Answer | Fault:
        """Asks one question."""

    def clean(self, text: str) -> str:
        """Removes the key from a text."""


@dataclass(slots=True)
class _Dialogue:
    """A dialogue that has begun, with the attempts and the start of its current question."""

    rank: int
    session: Questions
    attempts: int = 0
    began: float = 0.0

    @property
    def prompt(self) -> Prompt:
        assert self.session.prompt is not None
        return self.session.prompt


class Dispatcher:
    """Sends the questions of many dialogues to one service, and emits each prediction.

    The service's ``lost`` is given a failed prediction for each call that brought no answer,
    although it may be charged, and is made again or given up.

    Attributes:
        error: Why the run was stopped, if it was.
    """

    def __init__(self, service: Service, emit: Emit) -> None:
        self.error: EngineError | None = None
        self._service, self._emit, self._patience = service, emit, service.patience
        self._limit = max(service.options.concurrency, 1)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._admission = Admission(self._limit)
        self._random = random.Random(0)
        # What is to be done next, by the coroutine that decides everything.
        self._events: asyncio.Queue[Callable[[], None]] = asyncio.Queue()
        self._trouble: Exception | None = None
        self._flying: dict[int, tuple[_Dialogue, asyncio.Task[None]]] = {}
        self._ready: list[tuple[int, _Dialogue]] = []
        self._begun = 0
        self._failures = 0
        # When the last answer came, how long after it silence is spoken of, and why it may last.
        self._heard, self._notice_after, self._reason = 0.0, self._patience.notice, _NO_REPLY
        self._answered = False
        # When the service was found to be away, the last time that this was news, and how often.
        self._away: tuple[float, float, int] | None = None

    def stop(self, why: str) -> None:
        """Ends the run: calls in flight come back, no further one begins. Safe from any thread.

        Only the first reason is reported.
        """
        if self.error is None:
            self.error = EngineError(f"{self._service.model.name}: {why}. {_KEPT}")
        self._soon(self._watch)

    def give_up(self) -> None:
        """Gives up the calls in flight, too. Safe from any thread."""
        self.stop("interrupted")
        self._soon(self._abandon)

    @property
    def _closed(self) -> bool:
        return self.error is not None or self._trouble is not None

    async def run(self, sessions: Iterable[Questions]) -> None:
        """Asks every session's prompts until all are finished, or the run is stopped.

        Raises:
            Exception: What ``emit`` raised, or an error of the project that a call raised, after
                the calls in flight have ended.
        """
        self._loop = asyncio.get_running_loop()
        self._heard = _now()
        waiting = (_Dialogue(rank, s) for rank, s in enumerate(sessions) if s.prompt is not None)
        while True:
            try:
                self._begin(waiting)
                if not self._flying and (self._closed or not self._begun):
                    break
                event = await self._event()
                event()
            except Exception as error:
                # The others end their calls and keep the answers before the error goes on.
                self._trouble = self._trouble or error
        if self._trouble is not None:
            raise self._trouble

    # ---- What goes out ---------------------------------------------------------------

    def _begin(self, waiting: Iterator[_Dialogue]) -> None:
        while not self._closed and self._admission.admits(len(self._flying), _now()):
            if self._ready:
                dialogue = heapq.heappop(self._ready)[1]
            elif self._begun < self._limit and (new := next(waiting, None)) is not None:
                dialogue = new
                self._begun += 1
            else:
                return
            dialogue.began = _now()
            task = asyncio.create_task(self._ask(dialogue))
            self._flying[dialogue.rank] = dialogue, task

    async def _ask(self, dialogue: _Dialogue) -> None:
        found: Answer | Fault | Exception
        try:
            found = await self._service.call(dialogue.prompt)
        except Exception as error:
            found = error
        self._events.put_nowait(partial(self._handle, dialogue, found))

    async def _event(self) -> Callable[[], None]:
        due = self._due
        if self._ready and self._admission.shut_until > _now():
            due = min(due, self._admission.shut_until)
        with suppress(TimeoutError):
            async with asyncio.timeout_at(due):
                return await self._events.get()
        return self._watch

    # ---- What comes back -------------------------------------------------------------

    def _handle(self, dialogue: _Dialogue, found: Answer | Fault | Exception) -> None:
        # What was given up may have come back in the same moment.
        if self._flying.pop(dialogue.rank, None) is None:
            return
        if isinstance(found, CradleError):
            raise found
        if isinstance(found, Exception):
            self._take(dialogue, self._raised(found))
        elif isinstance(found, Fault):
            self._fault(dialogue, found)
        else:
            self._take(dialogue, found)

    def _raised(self, error: Exception) -> Answer:
        """Makes the failure of a question on which this program, or an SDK, raised an exception."""
        answer = failure(error, self._service.clean)
        # Its message may quote the key.
        shown = EngineError(answer.reason or "").with_traceback(error.__traceback__)
        return replace(answer, error=shown)

    def _take(self, dialogue: _Dialogue, answer: Answer) -> None:
        if answer.outcome is Outcome.FAILED:
            self._failures += 1
            if self._failures >= self._patience.failures:
                self._lost(dialogue, answer.reason, answer.seconds)
                self.stop(f"{self._failures} questions in a row failed ({answer.reason})")
                return
        else:
            self._failures, self._answered, self._away = 0, True, None
            # What takes up to twice as long as the last answer is no news.
            notice_after = max(self._patience.notice, 2.0 * answer.seconds)
            self._heard, self._notice_after, self._reason = _now(), notice_after, _NO_REPLY
            self._admission.answered(dialogue.began)
        prediction = dialogue.session.answer(answer)
        if dialogue.session.prompt is None:
            self._begun -= 1
        else:
            dialogue.attempts = 0
            self._queue(dialogue)
        self._emit(prediction)

    def _fault(self, dialogue: _Dialogue, fault: Fault) -> None:
        now = _now()
        if fault.kind == "again":
            self._queue(dialogue)
            return
        if fault.busy:
            self._admission.overloaded(dialogue.began, now)
        if fault.kind == "stop":
            self.stop(f"{fault.reason}. {HOPELESS_HINT}")
            return
        self._reason = fault.reason
        if fault.unreached:
            self._is_away(dialogue, fault, now)
            return
        dialogue.attempts += 1
        if fault.kind != "retry" or dialogue.attempts >= self._patience.attempts:
            self._take(dialogue, fault.answer)
            return
        if fault.wait:
            self._reason += f"; it asks to wait {span(fault.wait)}"
            if now + fault.wait >= self._end:
                asked = f"{self._service.place} asks to be left alone for {span(fault.wait)}"
                before = now - self._heard
                already = f" and has not answered for {span(before)}" if before >= 1 else ""
                self.stop(f"{asked}{already} ({fault.reason})")
        pause = self._pause(dialogue.attempts) if fault.wait is None else fault.wait
        again = partial(self._queue, dialogue)
        if fault.busy and fault.wait:
            self._admission.shut(now + pause)
            again()
        else:
            asyncio.get_running_loop().call_later(pause, self._events.put_nowait, again)
        if fault.charged:
            self._lost(dialogue, fault.reason, fault.seconds)

    def _is_away(self, dialogue: _Dialogue, fault: Fault, now: float) -> None:
        """Waits for a service that can't be reached: no fault of the question."""
        since, news, times = self._away or (now, float("-inf"), 0)
        # What began before the last news of it is no news.
        if dialogue.began >= news:
            news, times = now, times + 1
            pause = self._pause(times)
            self._admission.shut(now + pause)
            away = f"{self._service.place} can't be reached: {fault.reason}."
            if not self._answered and now + pause >= since + self._patience.connect:
                where = "Check that the server runs, the network, and base_url in models.yml"
                self.stop(f"{away} {where}")
            elif times == 1:
                self._say(f"{away} Trying again.")
        self._away = since, news, times
        self._queue(dialogue)

    def _pause(self, times: int) -> float:
        """Seconds before another attempt; not all calls in step."""
        return self._patience.pause(times, self._random.uniform(0.75, 1.0))

    def _queue(self, dialogue: _Dialogue) -> None:
        heapq.heappush(self._ready, (dialogue.rank, dialogue))

    def _soon(self, event: Callable[[], None]) -> None:
        # There is no loop before the run begins; it is closed if everything has just ended.
        if self._loop is not None:
            with suppress(RuntimeError):
                self._loop.call_soon_threadsafe(self._events.put_nowait, event)

    def _say(self, sentence: str) -> None:
        self._service.options.notice(f"{self._service.model.name}: {sentence}")

    def _lost(self, dialogue: _Dialogue, reason: str | None, seconds: float) -> None:
        answer = Answer("", Outcome.FAILED, reason, seconds=seconds)
        self._service.lost(Prediction.of(dialogue.prompt, answer, Outcome.FAILED, 0, reason))

    # ---- Silence, and the end --------------------------------------------------------

    @property
    def _end(self) -> float:
        return self._heard + self._patience.silence

    @property
    def _due(self) -> float:
        return min(self._heard + self._notice_after, self._end)

    def _watch(self) -> None:
        now = _now()
        if now < self._due:
            return
        lasts = f"no answer from {self._service.place} for {span(now - self._heard)}"
        if now >= self._end:
            self.stop(f"{lasts} ({self._reason}). Check whether the service works")
            self._abandon()
        else:
            # The next message comes at twice the time of this one.
            self._notice_after *= 2
            limit = span(self._patience.silence)
            self._say(f"{lasts}: {self._reason}. The run stops after {limit} without one.")

    def _abandon(self) -> None:
        flying, self._flying = self._flying, {}
        for dialogue, task in flying.values():
            task.cancel()
            self._lost(dialogue, "given up", 0.0)


def _now() -> float:
    return asyncio.get_running_loop().time()
