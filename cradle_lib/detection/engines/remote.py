"""What the API engines share: many dialogues at once, one retry layer, a clean stop.

The SDKs' own retries are switched off (``max_retries=0``), because they retry what
can't succeed, wait as long as a server says, and bound the time of a read, not of a
call. Here every call has a total deadline, waits have a cap, and an answer that came is
written before the next question of its dialogue is asked. Ctrl-C lets calls in flight
end and keeps their answers.
"""

from __future__ import annotations

import asyncio
import os
import random
from abc import abstractmethod
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, suppress
from dataclasses import dataclass, replace
from typing import Any

from cradle_lib.detection.answers import Outcome
from cradle_lib.detection.engines.base import Emit, Engine, Options
from cradle_lib.detection.engines.faults import HOPELESS_HINT, Fault
from cradle_lib.detection.engines.local import require_packages
from cradle_lib.detection.registry import Decoding, Model
from cradle_lib.detection.session import Answer, Prompt, Session
from cradle_lib.errors import EngineError


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
        options: Concurrency.
        patience: How long to go on with a service that does not answer.

    Raises:
        EngineError: If the SDK is not installed or the key is not in the environment.
    """

    package: str

    def __init__(self, model: Model, options: Options, patience: Patience | None = None) -> None:
        require_packages(self.package, extra="api", model=model)
        self.model = model
        self.decoding = model.decoding or Decoding()
        self.patience = patience or Patience()
        self._concurrency = max(options.concurrency, 1)
        self._key = _find_key(model)
        self._random = random.Random(0)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()
        self._failures = 0
        self._error: EngineError | None = None

    @abstractmethod
    def connect(self, key: str) -> AbstractAsyncContextManager[Any]:
        """Makes the SDK's client, without retries of its own."""

    @abstractmethod
    async def call(self, client: Any, prompt: Prompt) -> Answer:
        """Sends one prompt and reads what came back; the SDK's errors pass through."""

    @abstractmethod
    def fault(self, error: Exception) -> Fault | None:
        """Says what an error of the SDK means; ``None`` if it is not the SDK's."""

    def answer_all(self, sessions: Iterable[Session], emit: Emit) -> None:
        """Asks many dialogues at once, each of them one turn after the other.

        Raises:
            EngineError: If the service can't be used, or failed too often in a row.
            KeyboardInterrupt: After Ctrl-C, when the calls in flight have ended.
        """
        # A thread of its own, because a notebook's kernel already runs an event loop.
        with ThreadPoolExecutor(max_workers=1) as pool:
            future = pool.submit(asyncio.run, self._drive(iter(sessions), emit))
            try:
                future.result()
            except KeyboardInterrupt:
                # The loop is closed if everything had ended in the same moment.
                with suppress(RuntimeError):
                    if self._loop is not None:
                        self._loop.call_soon_threadsafe(self._stopping.set)
                # Leaving the pool waits for the calls in flight.
                raise
        if self._error is not None:
            raise self._error

    async def _drive(self, sessions: Iterator[Session], emit: Emit) -> None:
        self._loop = asyncio.get_running_loop()
        self._stopping, self._error, self._failures = asyncio.Event(), None, 0
        async with self.connect(self._key) as client:
            workers = (self._work(client, sessions, emit) for _ in range(self._concurrency))
            results = await asyncio.gather(*workers, return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result

    async def _work(self, client: Any, sessions: Iterator[Session], emit: Emit) -> None:
        try:
            for session in sessions:
                while (prompt := session.prompt) is not None:
                    answer = await self._ask(client, prompt)
                    if answer is None:
                        return
                    emit(session.answer(answer))
        except BaseException:
            # The others end their calls and keep the answers before the error goes on.
            self._stopping.set()
            raise

    async def _ask(self, client: Any, prompt: Prompt) -> Answer | None:
        """Asks until there is an outcome; ``None`` when the run is stopping."""
        clock = asyncio.get_running_loop().time
        started = clock()
        fault = Fault("failed", "not asked")
        for attempt in range(self.patience.attempts):
            if attempt and await self._pause(fault, attempt):
                return None
            if self._stopping.is_set():
                return None
            try:
                async with asyncio.timeout(self.patience.deadline):
                    answer = await self.call(client, prompt)
            except TimeoutError:
                fault = Fault("retry", f"no answer within {self.patience.deadline:g} s")
            except Exception as error:
                found = self.fault(error)
                if found is None:
                    raise
                fault = replace(found, reason=self._clean(found.reason))
                if fault.kind != "retry":
                    break
            else:
                self._failures = 0
                return replace(answer, seconds=clock() - started)
        if fault.kind == "stop":
            self._stop(f"{fault.reason}. {HOPELESS_HINT}")
            return None
        outcome = Outcome.REFUSED if fault.kind == "refused" else Outcome.FAILED
        self._failures = self._failures + 1 if outcome is Outcome.FAILED else 0
        if self._failures >= self.patience.failures:
            self._stop(f"{self._failures} questions in a row failed ({fault.reason})")
            return None
        return Answer("", outcome, fault.reason, seconds=clock() - started)

    async def _pause(self, fault: Fault, attempt: int) -> bool:
        """Waits before another attempt; true if the run is stopping."""
        backoff = self.patience.base * 2 ** (attempt - 1) * self._random.uniform(0.75, 1.0)
        wait = min(fault.wait if fault.wait is not None else backoff, self.patience.cap)
        try:
            await asyncio.wait_for(self._stopping.wait(), timeout=wait)
        except TimeoutError:
            return False
        return True

    def _stop(self, why: str) -> None:
        if self._error is None:
            self._error = EngineError(
                f"{self.model.name}: {why}. The answers so far are kept: "
                "run the same command again to go on."
            )
        self._stopping.set()

    def _clean(self, text: str) -> str:
        """Shortens a service's message to one line without the key."""
        line = " ".join(text.split())
        return (line.replace(self._key, "[key]") if self._key else line)[:300]


def _find_key(model: Model) -> str:
    if model.key is None:
        return ""
    key = os.environ.get(model.key.variable, "").strip()
    if not key:
        place = f" Get a key at {model.key.url}." if model.key.url else ""
        raise EngineError(
            f"{model.name}: the environment variable {model.key.variable} is not set.{place}"
        )
    return key
