"""A provider's batch interface: all questions at once, answers within a day, half the price.

Each round sends the questions that are open now as one batch. A batch's id is written down as soon
as the provider has given it, so that a run that was stopped or killed takes up its batch again and
does not pay twice. What the provider did not get to is a failed answer, which the next start asks
again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import TypeAdapter

from cradle_lib import paths, strict_json
from cradle_lib.detection.api.faults import Fault, fault_of_error
from cradle_lib.detection.api.patience import Patience
from cradle_lib.detection.engine import Emit, Questions
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import EngineError, JournalError
from cradle_lib.files import read_bounded, replacing

# Fewer than either provider takes; a batch that is too large is refused as a whole.
MOST: Final = 10_000
_POLL: Final = 30.0
# The file of ids: 32 letters a question.
_LARGEST: Final = 1 << 28
_IDS: Final = TypeAdapter(dict[str, str | list[str]])


class BatchRefusedError(EngineError):
    """A batch that the provider refused as a whole."""


class Provider(Protocol):
    """What an engine does for its batches, with its own SDK."""

    async def submit(self, asked: Mapping[str, Prompt]) -> str:
        """Sends questions, by their ids, as one batch; gives the batch's id."""

    async def ended(self, batch: str) -> bool:
        """Whether a batch is finished, in whatever way."""

    def results(self, batch: str) -> AsyncIterator[tuple[str, Answer | Fault]]:
        """Gives what came of each question of a finished batch, by its id."""


async def attempt(
    call: Callable[[], Awaitable[Any]],
    sdk: Any,
    patience: Patience,
    complain: Callable[[str], EngineError],
) -> Any:
    """Makes a call about a batch, again where that may help.

    Args:
        call: Makes it once.
        sdk: The SDK whose errors may come.
        patience: How often, and how long each may take.
        complain: Makes the error of a reason.

    Returns:
        What the call brought.

    Raises:
        EngineError: If it does not help.
    """
    for number in range(1, patience.attempts + 1):
        try:
            async with asyncio.timeout(patience.deadline):
                return await call()
        except TimeoutError:
            fault = Fault("retry", f"no answer within {patience.deadline:g} s")
        except Exception as error:
            known = fault_of_error(sdk, error)
            if known is None:
                raise
            fault = known
        if fault.kind != "retry" or number == patience.attempts:
            break
        pause = patience.base * 2.0 ** (number - 1)
        await asyncio.sleep(min(pause if fault.wait is None else fault.wait, patience.cap))
    raise complain(fault.reason)


class Batches:
    """Leads one start of a run through batches; stands in the place of the dispatcher.

    Args:
        name: The model's name, as sentences have it.
        path: File that keeps the ids of batches, one JSON object a line.
        limit: Questions in one batch at most.
        provider: What sends and fetches batches.
        attempt: Makes a call, again where that may help.
        emit: Takes each prediction.
        notice: Takes a sentence for the user.
        poll: Seconds between two looks at a batch.
    """

    def __init__(
        self,
        *,
        name: str,
        path: Path,
        limit: int,
        provider: Provider,
        attempt: Callable[[Callable[[], Awaitable[Any]]], Awaitable[Any]],
        emit: Emit,
        notice: Callable[[str], None],
        poll: float = _POLL,
    ) -> None:
        self.error: EngineError | None = None
        self._name, self._path, self._limit, self._poll = name, path, max(limit, 1), poll
        self._provider, self._attempt = provider, attempt
        self._emit, self._notice = emit, notice
        self._stopped = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None

    def stop(self, why: str) -> None:
        """Ends the run: no further batch is sent. Safe from any thread."""
        if self.error is None:
            self.error = EngineError(
                f"{self._name}: {why}. A batch that was sent goes on at the provider: "
                "run the same command again to fetch it."
            )
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopped.set)

    def give_up(self) -> None:
        """The same: nothing is in flight that could be lost."""
        self.stop("interrupted")

    async def run(self, sessions: Iterable[Questions]) -> None:
        """Asks all sessions' questions, round by round.

        Raises:
            EngineError: If the provider refuses a batch.
            JournalError: If the file of ids is damaged.
        """
        self._loop = asyncio.get_running_loop()
        open_sessions = [session for session in sessions if session.prompt is not None]
        batch = self._open_batch()
        while self.error is None:
            asked = {
                question_id(prompt): session
                for session in open_sessions
                if (prompt := session.prompt) is not None
            }
            if not asked and batch is None:
                return
            if batch is None:
                chosen = dict(list(asked.items())[: self._limit])
                batch = await self._send(chosen)
            else:
                self._notice(f"{self._name}: goes on with batch {batch}.")
            if not await self._wait(batch):
                return
            await self._take(batch, asked)
            self._note({"done": batch})
            batch = None

    async def _send(self, chosen: Mapping[str, Questions]) -> str:
        prompts = {key: s.prompt for key, s in chosen.items() if s.prompt is not None}
        batch: str = await self._attempt(lambda: self._provider.submit(prompts))
        self._note({"batch": batch, "questions": sorted(prompts)})
        self._notice(f"{self._name}: sent batch {batch} with {len(prompts):,} questions.")
        return batch

    async def _wait(self, batch: str) -> bool:
        """Waits for a batch; false if the run was stopped before."""
        while not self._stopped.is_set():
            if await self._attempt(lambda: self._provider.ended(batch)):
                return True
            try:
                await asyncio.wait_for(self._stopped.wait(), self._poll)
            except TimeoutError:
                continue
        return False

    async def _take(self, batch: str, asked: Mapping[str, Questions]) -> None:
        """Gives each answer to its session. What a batch does not hold, nobody answered."""
        sent = self._questions(batch)

        async def fetch() -> dict[str, Answer | Fault]:
            return {key: found async for key, found in self._provider.results(batch)}

        try:
            results = await self._attempt(fetch)
        except BatchRefusedError:
            # Nothing in it was worked on: the next start sends another.
            self._note({"done": batch})
            raise
        for key in sent:
            session = asked.get(key)
            found = results.get(key, Fault("failed", "the batch ended without an answer"))
            # The question may have changed since, or be of a parameter that is now left out.
            if session is None or (isinstance(found, Fault) and found.kind == "again"):
                continue
            if isinstance(found, Fault):
                outcome = Outcome.REFUSED if found.kind == "refused" else Outcome.FAILED
                found = Answer("", outcome, found.reason)
            self._emit(session.answer(found))

    # ---- The file of ids ---------------------------------------------------------------

    def _lines(self) -> list[dict[str, Any]]:
        if not self._path.exists():
            return []
        try:
            content = read_bounded(self._path, _LARGEST)
        except OSError as error:
            raise JournalError(
                f"{paths.shown(self._path)}: can't be read ({error.strerror})"
            ) from None
        # A last line that was torn is of a batch whose id is lost.
        whole = content[: content.rfind(b"\n") + 1]
        try:
            return [_IDS.validate_python(strict_json.loads(line)) for line in whole.splitlines()]
        except ValueError:
            raise JournalError(
                f"{paths.shown(self._path)}: not the ids of batches. Restore the file, or move "
                "it away to send all questions again."
            ) from None

    def _open_batch(self) -> str | None:
        lines = self._lines()
        done = {line["done"] for line in lines if "done" in line}
        left = [line["batch"] for line in lines if "batch" in line and line["batch"] not in done]
        return left[-1] if left else None

    def _questions(self, batch: str) -> list[str]:
        found = (line["questions"] for line in self._lines() if line.get("batch") == batch)
        return next(found, [])

    def _note(self, line: Mapping[str, Any]) -> None:
        # A torn last line is written over.
        kept = b"".join((json.dumps(old) + "\n").encode() for old in self._lines())
        with replacing(self._path) as part, part.open("wb") as file:
            file.write(kept + (json.dumps(line) + "\n").encode())
            file.flush()
            os.fsync(file.fileno())


def question_id(prompt: Prompt) -> str:
    """Names a question within a batch: the same for the same question, and for no other."""
    place = f"{prompt.dialogue}\x1f{prompt.turn}\x1f{prompt.key}"
    return hashlib.sha256(place.encode()).hexdigest()[:32]
