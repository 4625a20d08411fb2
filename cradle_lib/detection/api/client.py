"""The API engines' shared part: the connection to a service, one call, and the run.

The SDKs' own retries are switched off (``max_retries=0``), because they retry calls that can't
succeed, wait as long as a server asks, and limit the time of a read, not of a call. Here every call
has a total deadline, and :mod:`.dispatch` decides about retries: an answer is written before the
next question of its dialogue is asked, and Ctrl-C lets calls in flight end and keeps their answers.

Bodies are sent with the SDK's own ``post``, and replies read as plain JSON: the typed methods
don't know every parameter that services know, and turn an unexpected reply into objects that lack
what their types promise.
"""

from __future__ import annotations

import asyncio
import importlib
from abc import abstractmethod
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from dataclasses import replace
from typing import Any, ClassVar, Final, Self
from urllib.parse import urlsplit

from cradle_lib.corpus import Corpus
from cradle_lib.detection.api.dispatch import Dispatcher, Patience
from cradle_lib.detection.api.faults import Fault, error_in, fault_in_reply, fault_of_error
from cradle_lib.detection.api.keys import Redactor, find_key
from cradle_lib.detection.api.network import find_proxy, place_of, tls_for
from cradle_lib.detection.api.replies import lookup
from cradle_lib.detection.engine import (
    Emit,
    Engine,
    Options,
    Questions,
    failure,
    require_packages,
    short_reason,
)
from cradle_lib.detection.local.quiet import no_request_logs
from cradle_lib.detection.model import Decoding, Model
from cradle_lib.detection.parsing import Outcome
from cradle_lib.detection.session import Answer, Prompt
from cradle_lib.errors import CradleError, EngineError

CONNECT: Final = 10.0  # Seconds to make a connection.
# Characters of a prompt for each token: about four in English, one or two in Chinese.
_MOST_PER_TOKEN: Final = 8
# Packages that the SDKs use, and that would log requests.
_CARRIERS: Final = ("httpx2", "aiohttp")


class Remote(Engine):
    """Drives many sessions at once against one endpoint.

    Raises:
        EngineError: If the SDK is not installed, the key is not in the environment or is part of
            ``base_url``, or the environment's proxy or certificates can't be used.

    Attributes:
        patience: How long to go on with a service that does not answer.
        place: The service's host and port, and the proxy's, for sentences.
        lost: Called with a failed prediction for each call that brought no answer, although it may
            be charged, and is made again or given up. The question stays open.
    """

    kind = "service"
    needs_weights = True
    package: str
    client: str
    path: str
    # Path under which a server lists its models; empty if the interface has none.
    listing: ClassVar[str] = ""

    @classmethod
    def create(cls, model: Model, corpus: Corpus, options: Options) -> Self:
        """Makes the engine; the package and the key must be there."""
        return cls(model, options)

    def __init__(self, model: Model, options: Options) -> None:
        require_packages(self.package, "aiohttp", extra="api", model=model)
        self.model = model
        self.decoding = model.decoding or Decoding()
        self.options = options
        self.patience = Patience.of(options.deadline)
        self.base = (model.base_url or self.endpoint).rstrip("/")
        self._key = find_key(model)
        self._hide = Redactor(self._key)
        path = urlsplit(self.base).path
        if self._hide(path) != path:
            raise EngineError(
                f"{model.name}: 'base_url' in models.yml contains the key. Remove it: a key comes "
                "from the environment only."
            )
        self._proxy = find_proxy(self.base)
        through = f" through the proxy {place_of(self._proxy)}" if self._proxy else ""
        self.place = f"{place_of(self.base)}{through}"
        self._tls = tls_for(self.base, self._proxy)
        self._sdk = importlib.import_module(self.package)
        wanted = {name: value for name, value in self.settings().items() if value is not None}
        self._parameters = wanted | self.decoding.extra
        self._dispatcher: Dispatcher | None = None
        self._reported: set[str] = set()
        # The model that answered first, as the service calls it.
        self._served: str | None = None
        # The last prompt of each dialogue that the server has not cut, and its tokens.
        self._last_uncut: dict[str, tuple[Prompt, int]] = {}
        self.lost: Emit = lambda _: None

    @abstractmethod
    def headers(self) -> dict[str, Any]:
        """Gives the headers that differ from the SDK's own."""

    @abstractmethod
    def settings(self) -> dict[str, Any]:
        """Gives the entry's settings as parameters of a call; ``None`` is not sent."""

    def messages(self, prompt: Prompt) -> list[dict[str, Any]]:
        """Makes the messages of a call."""
        return prompt.messages

    def body(self, prompt: Prompt) -> dict[str, Any]:
        """Makes the body of a call: the model's name, the messages, and the parameters."""
        messages = self.messages(prompt)
        return {"model": self.model.weights, "messages": messages, **self._parameters}

    @abstractmethod
    def read(self, reply: object) -> Answer:
        """Reads the reply to a call: any JSON or text without an error in it."""

    def stop(self, why: str) -> None:
        """Ends the run: calls in flight come back and are written, no further one begins.

        May be called from ``emit`` or any thread. :meth:`answer_all` then raises an error, with
        the first reason given.
        """
        if self._dispatcher is not None:
            self._dispatcher.stop(why)

    def answer_all(self, sessions: Iterable[Questions], emit: Emit) -> None:
        """Asks many dialogues at once, each of them one turn after the other.

        Raises:
            EngineError: If the service can't be used or reached, failed too often in a row, did
                not answer for too long, or the run was stopped.
            KeyboardInterrupt: After Ctrl-C, when the calls in flight have ended, or after a
                second one.
        """
        self._dispatcher = dispatcher = Dispatcher(self, emit)
        # A separate thread, because a notebook's kernel already runs an event loop.
        with (
            no_request_logs(self.package, *_CARRIERS),
            ThreadPoolExecutor(max_workers=1) as pool,
        ):
            future = pool.submit(asyncio.run, self._drive(dispatcher, list(sessions)))
            try:
                future.result()
            except KeyboardInterrupt:
                try:
                    dispatcher.stop("interrupted")
                    self.options.notice(
                        "Interrupted: waiting for the calls in flight. Run the same command again "
                        "to go on. Another Ctrl-C cancels these calls."
                    )
                    wait([future])
                except KeyboardInterrupt:
                    dispatcher.give_up()
                raise

    async def _drive(self, dispatcher: Dispatcher, sessions: Sequence[Questions]) -> None:
        for session in sessions:
            for stored in session.taken:
                self._report_other_model(stored.served)
        async with self.connect() as self._client:
            if self.listing and self.model.base_url is not None and not self.model.remote:
                await self._require_served()
            await dispatcher.run(sessions)

    def connect(self) -> Any:
        """Makes the SDK's client, without its retries, over the proxy that the user agreed to."""
        import httpx2

        timeout = httpx2.Timeout(None, connect=CONNECT)
        client = self._sdk.DefaultAioHttpClient(
            timeout=timeout, verify=self._tls, trust_env=False, proxy=self._proxy
        )
        return getattr(self._sdk, self.client)(
            api_key=self._key or "none",
            base_url=self.base,
            max_retries=0,
            timeout=timeout,
            http_client=client,
            default_headers=self.headers(),
        )

    async def _require_served(self) -> None:
        """Refuses a local server that lists its models, if this one is not among them.

        If it has no such list, or can't be reached, the first question reports it.
        """
        options = {"follow_redirects": False}
        try:
            async with asyncio.timeout(CONNECT):
                address = self.base + self.listing
                reply = await self._client.get(address, cast_to=object, options=options)
        except Exception:  # Whatever an SDK raises for a server that has no such list.
            return
        found = lookup(reply, "data")
        listed = [lookup(each, "id") for each in found] if isinstance(found, list) else []
        names = [self.clean(name) for name in listed if isinstance(name, str)]
        wanted = self.model.weights
        if names and wanted not in names:
            raise EngineError(
                f"{self.place} serves {', '.join(names[:5])}, and {self.model.id} asks for "
                f"{wanted}. Start it with --served-model-name {wanted}, or ask for the model that "
                "it serves."
            )

    async def call(self, prompt: Prompt) -> Answer | Fault:
        """Asks one question, and removes the key from whatever comes back."""
        clock = asyncio.get_running_loop().time
        started = clock()
        found = await self._post(prompt)
        seconds = clock() - started
        if isinstance(found, Answer):
            found = self._require_untruncated(prompt, found)
            if found.ending is not None and found.outcome is not Outcome.FAILED:
                self._report_once(
                    "ending",
                    f"{self.place} does not say how its answers end. They count as complete, and "
                    'each is recorded with "ending": "missing".',
                )
            served = self.clean(found.served) if found.served else None
            self._report_other_model(served)
            return replace(
                found,
                text=self._hide(found.text),
                reason=None if found.reason is None else self.clean(found.reason),
                served=served,
                seconds=seconds,
            )
        return replace(found, reason=self.clean(found.reason), seconds=seconds)

    async def _post(self, prompt: Prompt) -> Answer | Fault:
        """Sends a question within the deadline, and reads the reply or the error.

        Raises:
            CradleError: One that this library raised on the way.
        """
        import httpx2

        # Text goes to the host that was agreed to, and not to where that host redirects.
        options = {"follow_redirects": False}
        address, body = self.base + self.path, self.body(prompt)
        try:
            async with asyncio.timeout(self.patience.deadline):
                response = await self._client.post(
                    address, body=body, cast_to=httpx2.Response, options=options
                )
            # As the SDKs decide it; an HTML page of a gateway is no answer.
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            reply = response.json() if kind.endswith("json") else response.text
            error = error_in(reply)
            return self.read(reply) if error is None else fault_in_reply(error, response.headers)
        except TimeoutError:
            return Fault("retry", f"no answer within {self.patience.deadline:g} s")
        except CradleError:
            raise
        except Exception as error:
            if (fault := fault_of_error(self._sdk, error)) is not None:
                return fault
            # This program or an SDK has a bug. The exception's own message may quote the key.
            answer = failure(error, self._hide)
            shown = EngineError(answer.reason or "").with_traceback(error.__traceback__)
            return replace(answer, error=shown)

    def _report_other_model(self, served: str | None) -> None:
        """Reports that a run's answers come from different models, providers or versions."""
        self._served = self._served or served
        if served not in (None, self._served):
            self._report_once(
                "served",
                f"some answers come from {self._served}, others from {served}. Each is recorded "
                "with its own. If the service can be asked for one model and one provider, do so "
                "under `extra`, and start the run again.",
            )

    def _report_once(self, topic: str, sentence: str) -> None:
        if topic not in self._reported:
            self._reported.add(topic)
            self.options.notice(f"{self.model.name}: {sentence}")

    def _require_untruncated(self, prompt: Prompt, answer: Answer) -> Answer:
        """Fails an answer to a prompt that the server has silently cut to its context length.

        Servers such as Ollama drop the beginning of a prompt that is too long, where the
        instruction is, and answer as if nothing had happened. So the reported number of tokens must
        fit the characters of the prompt and, where it repeats an earlier one and adds to it, the
        characters that are new.
        """
        if answer.tokens_in is None or answer.outcome is Outcome.FAILED:
            return answer
        size = new = len(prompt.text)
        tokens = answer.tokens_in
        before, counted = self._last_uncut.get(prompt.dialogue, (None, 0))
        # Prompts of other tasks have no history, and need not contain the ones before them.
        past = prompt.history
        if before is not None and past != before.history and past.startswith(before.history):
            new, tokens = size - len(before.text), tokens - counted
        if tokens * _MOST_PER_TOKEN >= new:
            self._last_uncut[prompt.dialogue] = (prompt, answer.tokens_in)
            return answer
        reason = (
            f"the server reports {answer.tokens_in:,} tokens for a prompt of {size:,} characters: "
            "it has cut the prompt, or counts wrongly. Give it a longer context (Ollama: "
            "OLLAMA_CONTEXT_LENGTH), and start the run again"
        )
        return replace(answer, text="", outcome=Outcome.FAILED, reason=reason)

    def clean(self, text: str) -> str:
        """Removes the key from a service's message, and then shortens it."""
        return short_reason(text, self._hide)
