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
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Any, Final

from pydantic import TypeAdapter

from cradle_lib import paths, strict_json
from cradle_lib.detection.api.dispatch import Leader
from cradle_lib.detection.api.faults import Fault
from cradle_lib.detection.api.replies import look
from cradle_lib.detection.engine import Emit, Questions
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import EngineError, JournalError
from cradle_lib.files import read_bounded, replacing

if TYPE_CHECKING:
    from cradle_lib.detection.api.remote import Remote

# Fewer than either provider takes; a batch that is too large is refused as a whole.
MOST: Final = 10_000
# The file of ids: 32 letters a question.
_LARGEST: Final = 1 << 28
_IDS: Final = TypeAdapter(dict[str, str | list[str]])
# How far a provider's clock may be behind this machine's.
_CLOCKS: Final = timedelta(hours=1)


class BatchRefusedError(EngineError):
    """A batch that the provider refused as a whole."""


class Batches(Leader):
    """Leads through batches, round by round.

    A file keeps their ids, one JSON object a line: the token and the questions of the batch that is
    to be sent, its id when it came, and the id again when its answers are taken. So the last line
    says what an earlier start left open.
    """

    kept = "A batch that was sent goes on at the provider: run the same command again to fetch it."

    def __init__(self, service: Remote, emit: Emit) -> None:
        super().__init__(service, emit)
        assert service.options.batches is not None
        self._path = service.options.batches
        self._lines: list[dict[str, Any]] = []
        self._others: set[str] = set()
        self._stopped = asyncio.Event()

    def _wake(self) -> None:
        self._soon(self._stopped.set)

    async def run(self, sessions: Iterable[Questions]) -> None:
        """Asks all sessions' questions, round by round.

        Raises:
            EngineError: If the provider refuses a batch.
            JournalError: If the file of ids is damaged.
        """
        self._loop = asyncio.get_running_loop()
        self._lines = self._read()
        open_sessions = [session for session in sessions if session.prompt is not None]
        batch = await self._left_open()
        while self.error is None:
            asked = {_question_id(s.prompt): s for s in open_sessions if s.prompt is not None}
            if batch is not None:
                self._say(f"goes on with batch {batch}.")
            elif asked:
                batch = await self._send(asked)
            if batch is None or not await self._wait(batch):
                return
            await self._take(batch, asked)
            batch = None

    async def _left_open(self) -> str | None:
        """Finds the batch that an earlier start sent, even if it did not live to see its id."""
        last = self._lines[-1] if self._lines else {}
        if "intent" not in last or "batch" in last:
            return last.get("batch")
        return self._sent(await self._adopted())

    async def _send(self, asked: Mapping[str, Questions]) -> str | None:
        """Sends a batch and gives its id; ``None`` if the run was stopped before it came."""
        chosen = islice(asked.items(), min(self._limit, MOST))
        prompts = {key: s.prompt for key, s in chosen if s.prompt is not None}
        token, since = secrets.token_hex(8), datetime.now(UTC).isoformat()
        self._note({"intent": token, "since": since, "questions": sorted(prompts)})
        # Both providers take letters, digits and a dash in the name of a question.
        bodies = {f"{key}-{token}": self._service.body(prompt) for key, prompt in prompts.items()}
        tried = False

        async def submit() -> str | None:
            nonlocal tried
            # The call before may have got through, and its answer not.
            if tried and await self._perhaps():
                return None
            tried = True
            return await self._service.submit(bodies, token)

        batch: str | None = None
        while batch is None and self.error is None:
            batch = await self._attempt(submit) or await self._adopted()
        if self._sent(batch) is not None:
            self._say(f"sent batch {batch} with {len(prompts):,} questions.")
        return batch

    def _sent(self, batch: str | None) -> str | None:
        """Notes the id of the batch that the last line of the file is about."""
        if batch is not None:
            last = self._lines[-1]
            self._note({"batch": batch, "intent": last["intent"], "questions": last["questions"]})
        return batch

    async def _perhaps(self) -> list[str]:
        """Lists the batches that may be the one that the last line of the file is about."""
        last = self._lines[-1]
        early = datetime.fromisoformat(last["since"]) - _CLOCKS
        known = {line["batch"] for line in self._lines if "batch" in line} | self._others
        found = await self._service.perhaps(last["intent"], len(last["questions"]), early)
        return [batch for batch in found if batch not in known]

    async def _adopted(self) -> str | None:
        """Finds the batch that carries the last token; only its results may say that it does."""
        try:
            found = await self._attempt(self._perhaps)
        except EngineError as error:
            raise EngineError(
                f"{error} A batch may have been sent before, and can't be looked for. To send it "
                f"again whatever the cost, delete the last line of {paths.shown(self._path)}."
            ) from error
        for batch in found:
            self._say(f"looks whether batch {batch} was sent by this run.")
            if not await self._wait(batch):
                return None
            with suppress(BatchRefusedError):
                token = self._lines[-1]["intent"]
                if any(carried == token for _, carried in await self._fetch(batch)):
                    return str(batch)
            self._others.add(batch)
        return None

    async def _wait(self, batch: str) -> bool:
        """Waits for a batch; false if the run was stopped before."""
        while self.error is None:
            if await self._attempt(lambda: self._service.ended(batch)):
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(self._patience.poll):
                    await self._stopped.wait()
        return False

    async def _take(self, batch: str, asked: Mapping[str, Questions]) -> None:
        """Gives each answer to its session. What a batch does not hold, nobody answered."""
        sent = self._lines[-1]["questions"]
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
            answer = found.answer if isinstance(found, Fault) else found
            self._emit(session.answer(answer))
        self._note({"done": batch})

    async def _fetch(self, batch: str) -> dict[tuple[str, str], Answer | Fault]:
        """Gives what came of a batch, by question and token."""
        judge = self._service.judge()

        async def fetch() -> dict[tuple[str, str], Answer | Fault]:
            texts = await self._service.contents(batch)
            lines = (line for text in texts for line in text.split("\n") if line.strip())
            replies = (json.loads(line) for line in lines)
            return {
                _parted(str(look(reply, "custom_id"))): judge(self._service.result(reply))
                for reply in replies
            }

        found: dict[tuple[str, str], Answer | Fault] = await self._attempt(fetch)
        return found

    async def _attempt(self, call: Callable[[], Awaitable[Any]]) -> Any:
        """Makes a call about a batch, again where that may help.

        Raises:
            EngineError: If it does not help.
        """
        patience, service = self._patience, self._service
        for number in range(1, patience.attempts + 1):
            found = await service.once(call)
            if not isinstance(found, Fault):
                return found
            if found.kind != "retry" or number == patience.attempts:
                break
            pause = patience.pause(number) if found.wait is None else found.wait
            await asyncio.sleep(min(pause, patience.cap))
        raise EngineError(
            f"{service.model.name}: the batch interface of {service.place}: "
            f"{service.clean(found.reason)}. What was sent is kept: run the same command again."
        )

    # ---- The file of ids ---------------------------------------------------------------

    def _read(self) -> list[dict[str, Any]]:
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

    def _note(self, line: dict[str, Any]) -> None:
        self._lines.append(line)
        # Whole: a torn last line is written over.
        content = "".join(json.dumps(each) + "\n" for each in self._lines)
        with replacing(self._path) as part, part.open("wb") as file:
            file.write(content.encode())
            file.flush()
            os.fsync(file.fileno())


def _question_id(prompt: Prompt) -> str:
    """Names a question within a batch: the same for the same question, and for no other."""
    place = f"{prompt.dialogue}\x1f{prompt.turn}\x1f{prompt.key}"
    return hashlib.sha256(place.encode()).hexdigest()[:32]


def _parted(name: str) -> tuple[str, str]:
    question, _, token = name.partition("-")
    return question, token
