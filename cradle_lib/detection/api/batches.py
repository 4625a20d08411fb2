"""A provider's batch interface: all questions at once, answers within a day, half the price.

Each round sends the questions that are open now as one batch. Before it is sent, a token that the
batch will carry is written down, and its id as soon as the provider has given it, so that a run
that was stopped or killed takes up its batch again and does not pay twice: a batch whose id never
came is found among the provider's by its token. What the provider did not get to is a failed
answer, which the next start asks again.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final, Protocol

from pydantic import TypeAdapter

from cradle_lib import paths, strict_json
from cradle_lib.detection.api.faults import Fault
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


# How far a provider's clock may be behind this machine's.
_CLOCKS: Final = timedelta(hours=1)


class BatchRefusedError(EngineError):
    """A batch that the provider refused as a whole."""


class _PerhapsSentError(Exception):
    """A batch was sent whose id did not come, and the provider has one that may be it."""


@dataclass(frozen=True, slots=True)
class Intent:
    """A batch that is to be sent, or was.

    Attributes:
        token: What it carries, and no other.
        questions: How many it has.
        since: No batch that was made before this time is it.
    """

    token: str
    questions: int
    since: datetime


class Provider(Protocol):
    """What an engine does for its batches, with its own SDK."""

    async def submit(self, asked: Mapping[str, Prompt], token: str) -> str:
        """Sends questions, by their ids, as one batch that carries a token; gives its id."""

    async def perhaps(self, intent: Intent) -> list[str]:
        """Lists the batches that may be one that was sent, as far as their list tells."""

    async def ended(self, batch: str) -> bool:
        """Whether a batch is finished, in whatever way."""

    def results(self, batch: str) -> AsyncIterator[tuple[str, Answer | Fault]]:
        """Gives what came of each question of a finished batch, by its id."""


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
        self._others: set[str] = set()
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
        batch = self._open_batch() or await self._sent_before()
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
            if batch is None or not await self._wait(batch):
                return
            await self._take(batch, asked)
            self._note({"done": batch})
            batch = None

    async def _send(self, chosen: Mapping[str, Questions]) -> str | None:
        """Sends a batch and gives its id; ``None`` if the run was stopped before it came."""
        prompts = {key: s.prompt for key, s in chosen.items() if s.prompt is not None}
        intent = Intent(secrets.token_hex(8), len(prompts), datetime.now(UTC))
        keys = sorted(prompts)
        since = intent.since.isoformat()
        self._note({"intent": intent.token, "since": since, "questions": keys})
        tried = False

        async def submit() -> str:
            nonlocal tried
            # The call before may have got through, and its answer not.
            if tried and await self._perhaps(intent):
                raise _PerhapsSentError
            tried = True
            return await self._provider.submit(prompts, intent.token)

        batch: str | None = None
        while batch is None and not self._stopped.is_set():
            try:
                batch = await self._attempt(submit)
            except _PerhapsSentError:
                batch = await self._adopted(intent)
        if batch is not None:
            self._note({"batch": batch, "intent": intent.token, "questions": keys})
            self._notice(f"{self._name}: sent batch {batch} with {len(prompts):,} questions.")
        return batch

    async def _sent_before(self) -> str | None:
        """Finds the batch that an earlier start sent, and whose id it did not live to see."""
        lines = self._lines()
        line = lines[-1] if lines else {}
        if "intent" not in line or "batch" in line:
            return None
        keys = line["questions"]
        intent = Intent(line["intent"], len(keys), datetime.fromisoformat(line["since"]))
        batch = await self._adopted(intent)
        if batch is not None:
            self._note({"batch": batch, "intent": intent.token, "questions": keys})
        return batch

    async def _perhaps(self, intent: Intent) -> list[str]:
        early = replace(intent, since=intent.since - _CLOCKS)
        known = {line["batch"] for line in self._lines() if "batch" in line} | self._others
        return [batch for batch in await self._provider.perhaps(early) if batch not in known]

    async def _adopted(self, intent: Intent) -> str | None:
        """Finds the batch that carries a token; only its results may say that it does."""
        try:
            found = await self._attempt(lambda: self._perhaps(intent))
        except EngineError as error:
            raise EngineError(
                f"{error} A batch may have been sent before, and can't be looked for. To send it "
                f"again whatever the cost, delete the last line of {paths.shown(self._path)}."
            ) from error
        for batch in found:
            self._notice(f"{self._name}: looks whether batch {batch} was sent by this run.")
            if not await self._wait(batch):
                return None
            try:
                answered = await self._fetch(batch)
            except BatchRefusedError:
                answered = {}
            if any(token == intent.token for _, token in answered):
                return str(batch)
            self._others.add(batch)
        return None

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
        try:
            results = {key: found for (key, _), found in (await self._fetch(batch)).items()}
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

    async def _fetch(self, batch: str) -> dict[tuple[str, str], Answer | Fault]:
        """Gives what came of a batch, by question and token."""

        async def fetch() -> dict[tuple[str, str], Answer | Fault]:
            return {_parted(key): found async for key, found in self._provider.results(batch)}

        found: dict[tuple[str, str], Answer | Fault] = await self._attempt(fetch)
        return found

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


def with_token(question: str, token: str) -> str:
    """Names a question of a batch for the provider: both take letters, digits and a dash."""
    return f"{question}-{token}"


def _parted(name: str) -> tuple[str, str]:
    question, _, token = name.partition("-")
    return question, token
