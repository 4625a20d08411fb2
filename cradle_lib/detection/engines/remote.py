"""What the API engines share: many dialogues at once, one retry layer, a clean stop.

The SDKs' own retries are switched off (``max_retries=0``), because they retry what
can't succeed, wait as long as a server says, and bound the time of a read, not of a
call. Here every call has a total deadline, waits have a cap, and an answer that came is
written before the next question of its dialogue is asked. Ctrl-C lets calls in flight
end and keeps their answers.

Bodies are sent with the SDK's own ``post``, and replies read as plain JSON: the typed
methods don't know every parameter that services know, take apart each message of a
request on the way, and turn an unexpected reply into objects that lack what their types
promise.
"""

from __future__ import annotations

import asyncio
import importlib
import random
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from typing import Any, Final

from cradle_lib.detection.answers import Outcome
from cradle_lib.detection.engines.base import Emit, Engine, Options
from cradle_lib.detection.engines.faults import HOPELESS_HINT, Fault, fault_of_error
from cradle_lib.detection.engines.gate import Gate
from cradle_lib.detection.engines.keys import find_key
from cradle_lib.detection.engines.parameters import Parameters
from cradle_lib.detection.engines.replies import one_line
from cradle_lib.detection.local.loading import require_packages
from cradle_lib.detection.quiet import unlogged
from cradle_lib.detection.registry import Decoding, Model
from cradle_lib.detection.session import Answer, Prompt, Session
from cradle_lib.errors import EngineError

LONGEST_REASON: Final = 300
# What carries the SDKs' requests.
_WIRE: Final = ("httpx2", "aiohttp")


@dataclass(frozen=True, slots=True)
class Patience:
    """How long to go on with a service that does not answer.

    Attributes:
        attempts: Calls for one question before it has failed.
        deadline: Seconds for one call, all in all.
        base: Seconds before the second attempt; doubled for each further one.
        cap: Longest wait in seconds, whatever the server asks for.
        failures: Questions in a row that may fail before the run stops.
    """

    attempts: int = 6
    deadline: float = 120.0
    base: float = 1.0
    cap: float = 60.0
    failures: int = 10


class Remote(Engine):
    """Drives many sessions at once against one endpoint.

    Args:
        model: An entry of the registry.
        options: Concurrency, and where to say what the user should know.
        patience: How long to go on with a service that does not answer.

    Raises:
        EngineError: If the SDK is not installed or the key is not in the environment.
    """

    package: str
    endpoint: str
    path: str

    def __init__(self, model: Model, options: Options, patience: Patience | None = None) -> None:
        require_packages(self.package, "aiohttp", extra="api", model=model)
        self.model = model
        self.decoding = model.decoding or Decoding()
        self.patience = patience or Patience()
        self._options = options
        self.base = (model.base_url or self.endpoint).rstrip("/")
        # Whole, so that the SDK need not put it together for every call.
        self._address = self.base + self.path
        self._key = find_key(model)
        self._sdk = importlib.import_module(self.package)
        self._random = random.Random(0)
        self._parameters = Parameters({})
        self._gate: Gate | None = None
        self._failures = 0
        self._error: EngineError | None = None

    @abstractmethod
    def connect(self, key: str) -> AbstractAsyncContextManager[Any]:
        """Makes the SDK's client, without retries of its own, over a wire of ours."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Says what the registry asks for, as parameters of a call."""

    @abstractmethod
    def body(self, prompt: Prompt, settings: dict[str, Any]) -> dict[str, Any]:
        """Makes the body of a call: the model's name, the messages, and the settings."""

    @abstractmethod
    def read(self, reply: object) -> Answer:
        """Reads the reply to a call, whatever JSON, or text, it is."""

    def stop(self, why: str) -> None:
        """Ends the run: calls in flight come back and are written, no further one begins.

        May be called from ``emit``, or from any thread. :meth:`answer_all` then raises
        an :class:`EngineError`.

        Args:
            why: The first reason given is the one that is told.
        """
        if self._error is None:
            self._error = EngineError(
                f"{self.model.name}: {why}. The answers so far are kept: "
                "run the same command again to go on."
            )
        if self._gate is not None:
            self._gate.close()

    def answer_all(self, sessions: Iterable[Session], emit: Emit) -> None:
        """Asks many dialogues at once, each of them one turn after the other.

        Raises:
            EngineError: If the service can't be used, failed too often in a row, or the
                run was stopped.
            KeyboardInterrupt: After Ctrl-C, when the calls in flight have ended.
        """
        self._error, self._failures = None, 0
        self._parameters = Parameters(self.settings())
        # A thread of its own, because a notebook's kernel already runs an event loop.
        with unlogged(self.package, *_WIRE), ThreadPoolExecutor(max_workers=1) as pool:
            future = pool.submit(asyncio.run, self._drive(enumerate(sessions), emit))
            try:
                future.result()
            except KeyboardInterrupt:
                self._options.notice(
                    "Interrupted: waiting for the calls in flight. Run the same command again "
                    "to go on."
                )
                self.stop("interrupted")
                # Leaving the pool waits for them.
                raise
        if self._error is not None:
            raise self._error

    async def _drive(self, sessions: Iterator[tuple[int, Session]], emit: Emit) -> None:
        limit = max(self._options.concurrency, 1)
        self._gate = gate = Gate(limit)
        # A stop may have come before there was a gate to close.
        if self._error is not None:
            return
        async with self.connect(self._key) as client:
            workers = (self._work(client, gate, sessions, emit) for _ in range(limit))
            results = await asyncio.gather(*workers, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _work(
        self, client: Any, gate: Gate, sessions: Iterator[tuple[int, Session]], emit: Emit
    ) -> None:
        try:
            for rank, session in sessions:
                # What an earlier start learned need not be learned again.
                for stored in session.taken:
                    self._parameters.drop(stored.dropped)
                while (prompt := session.prompt) is not None:
                    answer = await self._ask(client, gate, rank, prompt)
                    if answer is None:
                        return
                    emit(session.answer(answer))
        except BaseException:
            # The others end their calls and keep the answers before the error goes on.
            gate.close()
            raise

    async def _ask(self, client: Any, gate: Gate, rank: int, prompt: Prompt) -> Answer | None:
        """Asks until there is an outcome; ``None`` when the run is stopping."""
        attempt = 0
        while (began := await gate.enter(rank)) is not None:
            sent, dropped = self._parameters.sent, self._parameters.dropped
            found, seconds = await self._call(client, prompt, sent)
            if isinstance(found, Fault):
                busy = min(found.wait or 0.0, self.patience.cap) if found.busy else None
                gate.leave(began, answered=False, wait=busy)
                if self._drop(sent, found):
                    continue
                attempt += 1
                if found.kind == "retry" and attempt < self.patience.attempts:
                    await gate.pause(self._pause(found, attempt))
                    continue
                if found.kind == "stop":
                    self.stop(f"{found.reason}. {HOPELESS_HINT}")
                    return None
                outcome = Outcome.REFUSED if found.kind == "refused" else Outcome.FAILED
                found = Answer("", outcome, self._clean(found.reason))
            else:
                gate.leave(began, answered=found.outcome is not Outcome.FAILED)
            self._failures = self._failures + 1 if found.outcome is Outcome.FAILED else 0
            if self._failures >= self.patience.failures:
                self.stop(f"{self._failures} questions in a row failed ({found.reason})")
                return None
            return replace(found, seconds=seconds, dropped=dropped)
        return None

    async def _call(
        self, client: Any, prompt: Prompt, settings: dict[str, Any]
    ) -> tuple[Answer | Fault, float]:
        """Makes one call; gives what became of it, and the seconds that it took."""
        clock = asyncio.get_running_loop().time
        started = clock()
        found: Answer | Fault
        try:
            async with asyncio.timeout(self.patience.deadline):
                reply = await client.post(
                    self._address,
                    body=self.body(prompt, settings),
                    cast_to=object,
                    # Text goes to the host that was agreed to, and not where that one points.
                    options={"follow_redirects": False},
                )
        except TimeoutError:
            found = Fault("retry", f"no answer within {self.patience.deadline:g} s")
        except Exception as error:
            fault = fault_of_error(self._sdk, error)
            if fault is None:
                raise
            found = replace(fault, reason=self._without_key(fault.reason))
        else:
            read = self.read(reply)
            found = replace(
                read,
                text=self._without_key(read.text),
                reason=None if read.reason is None else self._clean(read.reason),
                served=self._clean(read.served) if read.served else None,
            )
        return found, clock() - started

    def _drop(self, sent: dict[str, Any], fault: Fault) -> bool:
        """Leaves out what the service does not take; false if that was not the trouble."""
        if fault.param is None:
            return False
        name = self._parameters.refused(sent, fault.reason, fault.param or None)
        if name is None:
            return False
        if name in self._parameters.sent:
            self._parameters.drop([name])
            self._options.notice(
                f"{self.model.name} does not take {name}: its answers from here on are given "
                "without it, and say so."
            )
        return True

    def _pause(self, fault: Fault, attempt: int) -> float:
        """Seconds before another attempt: what the service asks for, or ever longer."""
        backoff = self.patience.base * 2 ** (attempt - 1) * self._random.uniform(0.75, 1.0)
        return min(fault.wait if fault.wait is not None else backoff, self.patience.cap)

    def _clean(self, text: str) -> str:
        """Takes the key out of a service's words, and then shortens them."""
        return self._without_key(one_line(text))[:LONGEST_REASON]

    def _without_key(self, text: str) -> str:
        return text.replace(self._key, "[key]") if self._key else text
